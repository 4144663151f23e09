package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

// door is a location under test.
type door struct {
	*testing.T

	in      *adaptertest.Intake
	address string
	log     *logtest.Log
	stop    func() error // ends the location and gives what Run gave
}

var keys = map[string]string{"token": "open sesame", "other": "another one", "key": "a key of both sides", "password": "pass:word"}

func endpoint(t *testing.T, address, settings string) (adapter.Endpoint, *logtest.Log) {
	t.Helper()
	log := &logtest.Log{}
	return adapter.Endpoint{
		Name: "Orders", Address: address, Settings: json.RawMessage(settings), Logger: log.Logger(slog.LevelDebug), Node: "one",
		Secret: func(_ context.Context, name string) (string, bool, error) {
			value, ok := keys[name]
			return value + "\n", ok, nil
		},
		Permission: adapter.Permission{Listen: []string{"127.0.0.1:*"}, Connect: []string{"127.0.0.1:*", "localhost:*"}},
	}, log
}

// free gives an address of this machine where nothing listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func openAt(t *testing.T, kind adapter.Kind, in adapter.Intake, address, settings string) (stop func() error, log *logtest.Log) {
	t.Helper()
	e, log := endpoint(t, address, settings)
	receiver, err := kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- receiver.Run(ctx, in) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return parleytest.Receive(t, ended, "the end of the location")
	})
	t.Cleanup(func() { _ = stop() })
	parleytest.Until(t, "the location listens", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusMethodNotAllowed
	})
	return stop, log
}

func openDoor(t *testing.T, settings string) *door {
	t.Helper()
	d := &door{T: t, in: &adaptertest.Intake{}, address: "http://" + free(t) + "/orders"}
	d.stop, d.log = openAt(t, web.New(), d.in, d.address, settings)
	return d
}

type reply struct {
	status int
	header http.Header
	body   struct {
		Outcome   string
		MessageID int64 `json:"message_id"`
		Messages  int
		Error     string
	}
}

// post sends a body with headers, written name, value, name, value.
func (d *door) post(body string, headers ...string) reply {
	d.Helper()
	return d.do(http.MethodPost, d.address, strings.NewReader(body), headers...)
}

func (d *door) do(method, address string, body io.Reader, headers ...string) (r reply) {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), method, address, body)
	if err != nil {
		d.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		d.Fatal(err)
	}
	defer answer.Body.Close()
	r.status, r.header = answer.StatusCode, answer.Header
	if err := json.NewDecoder(answer.Body).Decode(&r.body); err != nil {
		d.Errorf("the answer %d is no JSON: %v", r.status, err)
	}
	return r
}

func (d *door) want(r reply, status int) {
	d.Helper()
	if r.status != status {
		d.Errorf("the answer is %d %q, want %d", r.status, r.body.Error, status)
	}
}

const open = `{"authentication": "none"}`
