package dynamic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/file"
)

// net is an adapter of tests: what it sends is in a list.
type net struct {
	mu     sync.Mutex
	sent   []string
	dialed map[string]int
	closed int
	isDown bool
}

type netSettings struct {
	Size  int    `json:"size"`
	Level string `json:"level"`
}

func (n *net) kind() adapter.Kind {
	return adapter.Kind{
		Name: "NET",
		Check: func(_ adapter.Direction, _ string, settings json.RawMessage, secrets []string) []adapter.Problem {
			var s netSettings
			problems := adapter.CheckSettings(settings, &s)
			return append(problems, adapter.OnlySecrets(secrets, "token")...)
		},
		NewSender: func(e adapter.Endpoint) (adapter.Sender, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.dialed[e.Address]++
			_, err := e.Permission.CheckConnect(strings.Split(e.Address, "/")[2] + ":443")
			return &netSender{n, e}, err
		},
	}
}

type netSender struct {
	net *net
	e   adapter.Endpoint
}

func (s *netSender) Close() error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.net.closed++
	return nil
}

func (s *netSender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	for i, m := range messages {
		if s.net.isDown && strings.Contains(s.e.Address, "down") {
			deliveries[i].Err = &adapter.Failure{Code: "send.unreachable", Unreachable: true, Err: errors.New("no route")}
			continue
		}
		token, _, _ := s.e.Secret(ctx, "token")
		s.net.sent = append(s.net.sent, fmt.Sprintf("%d %s %s%s", m.ID, s.e.Address, s.e.Settings, token))
	}
	return deliveries
}

func (n *net) find(name string) (adapter.Kind, bool) {
	kinds := map[string]adapter.Kind{"NET": n.kind(), "FILE": file.Kind}
	kind, known := kinds[name]
	return kind, known
}

func message(id int64, properties ...string) *adapter.Message {
	m := &adapter.Message{
		ID: id, ReceivedAt: time.Now(), Size: 1, Promoted: map[string]string{},
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil },
	}
	for pair := range slices.Chunk(properties, 2) {
		m.Promoted[pair[0]] = pair[1]
	}
	return m
}

func newPort(t *testing.T, n *net, address, settings, folder string) adapter.Sender {
	t.Helper()
	if problems := Kind(n.find).Check(adapter.Send, address, json.RawMessage(settings), nil); problems != nil {
		t.Fatalf("%+v", problems)
	}
	s, err := Kind(n.find).NewSender(adapter.Endpoint{
		Name: "Anywhere", Address: address, Settings: json.RawMessage(settings), Logger: slog.New(slog.DiscardHandler),
		Permission: adapter.Permission{Connect: []string{"a.example:443", "down.example:443"}, Folders: []string{folder}},
		Secret:     func(_ context.Context, name string) (string, bool, error) { return " secret", name == "token", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func outcomes(deliveries []adapter.Delivery) string {
	var all []string
	for _, d := range deliveries {
		f, is := errors.AsType[*adapter.Failure](d.Err)
		switch {
		case d.Err == nil:
			all = append(all, "sent")
		case !is:
			all = append(all, d.Err.Error())
		case f.Permanent:
			all = append(all, f.Code+" for good")
		case f.Unreachable:
			all = append(all, "the port waits")
		default:
			all = append(all, f.Code)
		}
	}
	return strings.Join(all, ", ")
}

func TestEachMessageGoesWhereItSaysAndThePortPermits(t *testing.T) {
	t.Parallel()
	n := &net{dialed: map[string]int{}}
	s := newPort(t, n, "https://*", `{"adapters": {"NET": {"settings": {"level": "high"}, "properties": {"size": "urn:p#Size"}}}}`, t.TempDir())
	got := outcomes(s.Send(t.Context(), []*adapter.Message{
		message(1, "Transport.Address", "https://a.example/1", "urn:p#Size", "7"),
		message(2),
		message(3, "Transport.Address", "http://a.example/1"),
		message(4, "Transport.Address", "https://thief.example/1"),
		message(5, "Transport.Address", "https://a.example/1", "Transport.Adapter", "FILE"),
		message(6, "Transport.Address", "https://a.example/x/%2E./y"),
		message(7, "Transport.Address", "https://a.example/1", "urn:p#Size", "much"),
		message(8, "Transport.Address", "https://a.example/1", "urn:p#Size", "7"),
	}))
	refused := "send.refused for good"
	if want := strings.Join([]string{"sent", refused, refused, refused, refused, refused, refused, "sent"}, ", "); got != want {
		t.Errorf("messages are %s, and not %s", got, want)
	}
	if got, want := strings.Join(n.sent, "; "), `1 https://a.example/1 {"level":"high","size":7}; 8 https://a.example/1 {"level":"high","size":7}`; got != want {
		t.Errorf("sent are %s, and not %s: a secret goes only where the port gives it", got, want)
	}
	if n.dialed["https://a.example/1"] != 1 {
		t.Errorf("one destination was dialled %d times", n.dialed["https://a.example/1"])
	}
	if err := s.Close(); err != nil || n.closed != 1 {
		t.Errorf("%d senders are closed, %v", n.closed, err)
	}
}

func TestAnAddressThatIsAwayHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	n := &net{dialed: map[string]int{}, isDown: true}
	s := newPort(t, n, "https://*", `{"adapters": {"NET": {}}, "rest": "200 milliseconds"}`, t.TempDir())
	batch := []*adapter.Message{
		message(1, "Transport.Address", "https://down.example/1"), message(2, "Transport.Address", "https://a.example/1"),
	}
	for range 2 { // the second time it rests
		if got := outcomes(s.Send(t.Context(), batch)); got != "send.unreachable, sent" {
			t.Errorf("messages are %s", got)
		}
	}
	n.mu.Lock()
	n.isDown = false
	n.mu.Unlock()
	for deadline := time.Now().Add(adaptertest.Patience); ; {
		if got := outcomes(s.Send(t.Context(), batch)); got == "sent, sent" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("messages are %s still", got)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestFilesStayBelowTheFolderOfThePort(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, folder := range []string{"out", "other"} {
		if err := os.Mkdir(filepath.Join(top, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := newPort(t, &net{}, top+"/out/*", `{"address_property": "urn:p#To", "adapters": {"FILE": {"settings": {"fsync": false}}}}`, top)
	got := outcomes(s.Send(t.Context(), []*adapter.Message{
		message(1, "urn:p#To", top+"/out/%MessageID%.xml"), message(2, "urn:p#To", top+"/out/../other/2.xml"),
		message(3, "urn:p#To", top+"/other/3.xml"), message(4, "Transport.Address", top+"/out/4.xml"), message(5, "urn:p#To", top+"/outer/5"),
	}))
	if want := "sent" + strings.Repeat(", send.refused for good", 4); got != want {
		t.Errorf("messages are %s, and not %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(top, "out", "1.xml")); err != nil {
		t.Error(err)
	}
}

func TestSendersThatWereNotUsedForLongAreClosed(t *testing.T) {
	t.Parallel()
	n := &net{dialed: map[string]int{}}
	s := newPort(t, n, "https://*", `{"adapters": {"NET": {}}}`, t.TempDir())
	for i := range mostDestinations + 5 {
		s.Send(t.Context(), []*adapter.Message{message(1, "Transport.Address", fmt.Sprintf("https://a.example/%d", i))})
	}
	if n.closed != 5 {
		t.Errorf("%d senders are closed", n.closed)
	}
}

func TestPortsThatWouldSendAnythingAnywhereAreRefused(t *testing.T) {
	t.Parallel()
	n := &net{}
	for _, c := range []struct {
		address, settings string
		secrets           []string
		want              string
	}{
		{"https://a.example/*", `{"adapters": {"NET": {"secrets": ["token"]}}}`, []string{"token"}, ""},
		{"https://*", `{"adapters": {"NET": {"secrets": ["token"]}}}`, []string{"token"}, "address"},
		{"*", `{"adapters": {"NET": {}}}`, nil, "address"},
		{"https://a.example*", `{"adapters": {"NET": {}}}`, nil, "address"},
		{"https://*.example/*", `{"adapters": {"NET": {}}}`, nil, "address"},
		{"https://*", `{}`, nil, "settings adapters"},
		{"https://*", `{"adapters": {"Dynamic": {}}}`, nil, "settings adapters Dynamic"},
		{"https://*", `{"adapters": {"NET": {"settings": {"size": "x"}}}}`, nil, "settings adapters NET settings size"},
		{"https://*", `{"adapters": {"NET": {"settings": {"size": 1}, "properties": {"size": "urn:p#S"}}}}`, nil, "settings adapters NET properties size"},
		{"https://*", `{"adapters": {"NET": {"secrets": ["token"]}}}`, nil, "settings adapters NET secrets"},
	} {
		var paths []string
		for _, p := range Kind(n.find).Check(adapter.Send, c.address, json.RawMessage(c.settings), c.secrets) {
			paths = append(paths, strings.Join(p.Path, " "))
		}
		if c.want == "" && paths != nil || c.want != "" && !slices.Contains(paths, c.want) {
			t.Errorf("%s %s: problems at %q, and not at %s", c.address, c.settings, paths, c.want)
		}
	}
}

func TestThePageOfAdaptersSaysWhatTheCodeDoes(t *testing.T) {
	t.Parallel()
	adaptertest.CheckPage(t, Kind((&net{}).find), adapter.Send, sendDefaults())
}
