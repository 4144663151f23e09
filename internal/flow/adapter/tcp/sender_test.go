package tcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func port(t testing.TB, address, settings string, secrets map[string]string) adapter.Sender {
	t.Helper()
	s, err := newSender(adapter.Endpoint{
		Name: "ERP", Address: address, Settings: json.RawMessage(settings), Permission: everywhere, Logger: slog.New(slog.DiscardHandler),
		Secret: secretsOf(secrets),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func message(id int64, body string) *adapter.Message {
	return &adapter.Message{ID: id, Size: int64(len(body)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(body)), nil
	}}
}

func messages(from, count int) []*adapter.Message {
	var all []*adapter.Message
	for n := range count {
		all = append(all, message(int64(from+n), fmt.Sprint(from+n)))
	}
	return all
}

func code(err error) string {
	f, is := errors.AsType[*adapter.Failure](err)
	if !is {
		return fmt.Sprint(err)
	}
	if f.Unreachable {
		return f.Code + ", unreachable"
	}
	if f.Permanent {
		return f.Code + ", permanent"
	}
	return f.Code
}

func codes(deliveries []adapter.Delivery) []string {
	var all []string
	for _, d := range deliveries {
		if d.Err != nil {
			all = append(all, code(d.Err))
		}
	}
	return all
}

func TestMessagesArePipelinedAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"in_flight": 1000}`)
	p := port(t, s.address, `{"in_flight": 20, "connections": 2}`, nil)
	var senders sync.WaitGroup
	for n := range 4 {
		senders.Go(func() {
			for _, d := range p.Send(t.Context(), messages(1+n*300, 300)) {
				if d.Err != nil || !strings.Contains(string(d.Detail), `"published"`) {
					t.Errorf("a delivery is %s, %v", d.Detail, d.Err)
				}
			}
		})
	}
	senders.Wait()
	if got := s.Keys(); len(got) != 1200 || got[0] != "ERP:1" {
		t.Errorf("%d keys are taken", len(got))
	}
	d := p.Send(t.Context(), messages(1, 1))
	if d[0].Err != nil || !strings.Contains(string(d[0].Detail), `"repeated"`) || len(s.Bodies()) != 1200 {
		t.Errorf("a repeat is %s, %v", d[0].Detail, d[0].Err)
	}
}

func TestAnswersSayWhatFollows(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{"max_size": 10}`)
	p := port(t, s.address, `{"max_size": 20}`, nil)
	deliveries := p.Send(t.Context(), []*adapter.Message{message(1, "good"), message(2, strings.Repeat("x", 11)), message(3, strings.Repeat("x", 21))})
	if got := codes(deliveries); !slices.Equal(got, []string{"send.refused, permanent", "send.refused, permanent"}) {
		t.Errorf("the failures are %q", got)
	}
	s.Refuse = func([]adapter.Input) error { return errors.New("the database is away") }
	if got := codes(p.Send(t.Context(), messages(4, 1))); !slices.Equal(got, []string{"send.transport"}) {
		t.Errorf("the failures are %q", got)
	}
}

func TestABodyThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	broken := message(1, "x")
	broken.Open = func(context.Context) (io.ReadCloser, error) {
		return nil, &adapter.Failure{Code: "send.pipeline", Permanent: true, Err: errors.New("the field is missing")}
	}
	deliveries := port(t, s.address, `{}`, nil).Send(t.Context(), []*adapter.Message{broken, message(2, "2")})
	if code(deliveries[0].Err) != "send.pipeline, permanent" || deliveries[1].Err != nil || len(s.Bodies()) != 1 {
		t.Errorf("the deliveries are %v", deliveries)
	}
}

func TestADestinationThatIsAwayLetsThePortWaitAndComesBack(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	p := port(t, s.address, `{}`, nil)
	if got := codes(p.Send(t.Context(), messages(1, 2))); got != nil {
		t.Fatalf("the failures are %q", got)
	}
	s.stop()
	if got := codes(p.Send(t.Context(), messages(3, 2))); !slices.Equal(got, []string{"send.unreachable, unreachable", "send.unreachable, unreachable"}) {
		t.Errorf("the failures are %q", got)
	}
	back, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Skip("another program has the port now")
	}
	defer func() { _ = back.Close() }()
	go func() {
		if conn, err := back.Accept(); err == nil {
			answerAll(conn, func(request, net.Conn) bool { return true })
		}
	}()
	if got := codes(p.Send(t.Context(), messages(5, 2))); got != nil {
		t.Errorf("the failures are %q", got)
	}
}

// answerAll speaks the protocol as a server, until each says no more.
func answerAll(conn net.Conn, each func(q request, conn net.Conn) bool) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		length, err := readLength(in, 4)
		if err != nil {
			return
		}
		frame, err := readBytes(in, int(length))
		if err != nil {
			return
		}
		q, err := parseRequest(frame)
		if err != nil || !each(q, conn) {
			return
		}
		if _, err := conn.Write(appendAnswer(nil, 4, answer{id: q.id, message: 1})); err != nil {
			return
		}
	}
}

// foreign is a server that is not Parley.
func foreign(t *testing.T, each func(connection int, q request, conn net.Conn) bool) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(conn, func(q request, conn net.Conn) bool { return each(n, q, conn) })
		}
	}()
	return listener.Addr().String()
}

// A connection is lost between the third request and its answer: what has keys is sent once more at once, nothing else is.
func TestAMessageWithAKeyIsRepeatedWhenItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	for _, keys := range []bool{true, false} {
		var mu sync.Mutex
		got := map[string]int{}
		address := foreign(t, func(connection int, q request, _ net.Conn) bool {
			mu.Lock()
			defer mu.Unlock()
			got[string(q.body)]++
			return connection > 0 || string(q.body) != "3"
		})
		failures := codes(port(t, address, fmt.Sprintf(`{"keys": %t}`, keys), nil).Send(t.Context(), messages(1, 4)))
		mu.Lock()
		if keys && (failures != nil || got["1"] != 1 || got["3"] != 2 || got["4"] != 1) {
			t.Errorf("with keys: the failures are %q, sent are %v", failures, got)
		}
		if !keys && (!slices.Equal(failures, []string{"send.transport", "send.transport"}) || got["3"] != 1) {
			t.Errorf("without keys: the failures are %q, sent are %v", failures, got)
		}
		mu.Unlock()
	}
}

func TestAServerThatDoesNotAnswerIsATimeout(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	address := foreign(t, func(connection int, q request, _ net.Conn) bool {
		connections.Store(int64(connection))
		if string(q.body) == "2" {
			<-t.Context().Done()
		}
		return true
	})
	p := port(t, address, `{"timeout": "100 milliseconds"}`, nil)
	if got := codes(p.Send(t.Context(), messages(1, 3))); !slices.Equal(got, []string{"send.timeout", "send.timeout"}) {
		t.Errorf("the failures are %q", got)
	}
	if got := codes(p.Send(t.Context(), messages(4, 1))); got != nil || connections.Load() != 1 {
		t.Errorf("on a new connection the failures are %q", got)
	}
}

func TestAServerThatSpeaksOtherwiseIsAFailure(t *testing.T) {
	t.Parallel()
	address := foreign(t, func(_ int, _ request, conn net.Conn) bool {
		_, err := io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		return err != nil
	})
	if got := codes(port(t, address, `{}`, nil).Send(t.Context(), messages(1, 2))); !slices.Equal(got, []string{"send.transport", "send.transport"}) {
		t.Errorf("the failures are %q", got)
	}
}

func TestSendingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	address := foreign(t, func(_ int, q request, _ net.Conn) bool {
		if string(q.body) != "1" {
			<-t.Context().Done()
		}
		return true
	})
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	p := port(t, address, `{"in_flight": 2}`, nil)
	if got := p.Send(ctx, messages(1, 4)); got[0].Err != nil || got[1].Err == nil || got[2].Err == nil || got[3].Err == nil {
		t.Errorf("the deliveries are %v", got)
	}
}

func TestAPrivateAddressIsReachedByItsNameAlone(t *testing.T) {
	t.Parallel()
	s := newServer(t, `{}`)
	_, number, _ := net.SplitHostPort(s.address)
	for permitted, want := range map[string][]string{"localhost:*": nil, "*:" + number: {"send.unreachable, unreachable"}} {
		p := port(t, "localhost:"+number, `{}`, nil).(*sender)
		p.endpoint.Permission = adapter.Permission{Connect: []string{permitted}}
		if got := codes(p.Send(t.Context(), messages(1, 1))); !slices.Equal(got, want) {
			t.Errorf("permitted is %s: the failures are %q", permitted, got)
		}
	}
}

func TestPlainFramesAndLinesAreSentWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for framing, bad := range map[string]string{"plain": "", "line": "two\nlines"} {
		settings := fmt.Sprintf(`{"framing": %q}`, framing)
		s := newServer(t, settings)
		all := messages(1, 300)
		if bad != "" {
			all[1] = message(2, bad)
		}
		got := codes(port(t, s.address, settings, nil).Send(t.Context(), all))
		if bad != "" && !slices.Equal(got, []string{"send.refused, permanent"}) || bad == "" && got != nil {
			t.Errorf("%s: the failures are %q", framing, got)
		}
		want := 300 - len(got)
		for deadline := time.Now().Add(adaptertest.Patience); len(s.Bodies()) < want && time.Now().Before(deadline); {
			<-time.After(time.Millisecond)
		}
		if bodies := s.Bodies(); len(bodies) != want || bodies[0] != "1" || bodies[want-1] != "300" {
			t.Errorf("%s: %d are taken", framing, len(bodies))
		}
	}
}
