package s3

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/parley-broker/parley/adapters/endpoint/endpointtest"
	"github.com/parley-broker/parley/flow/adapter"
)

func TestAServerIsTrustedAndLogsInByItsSecrets(t *testing.T) {
	t.Parallel()
	config, authority := endpointtest.Server(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("orders"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend).Server()
	// The double checks no signatures.
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=the-key/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>InvalidAccessKeyId</Code><Message>There is no such key.</Message></Error>`))
			return
		}
		store.ServeHTTP(w, r)
	}))
	server.TLS, server.Config.ErrorLog = config, slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.StartTLS()
	t.Cleanup(server.Close)
	host := endpointtest.Host + strings.TrimPrefix(server.Listener.Addr().String(), "127.0.0.1")
	at := func(scheme, last string) adapter.Endpoint {
		return adapter.Endpoint{
			Name: "Test", Address: scheme + "://" + host + "/orders/" + last, Settings: json.RawMessage(`{"timeout": "5 seconds"}`),
			Permission: adapter.Permission{Connect: []string{host}}, Logger: slog.New(slog.DiscardHandler),
		}
	}
	endpointtest.Check(t, endpointtest.Login{
		Kind: Kind, Send: at("https", "out/%MessageID%.xml"), Receive: at("https", "in/*.xml"), Wrong: accessKeySecret,
		Good:  map[string]string{accessKeySecret: "the-key", secretKeySecret: "the-secret", "authority": authority},
		Plain: at("http", "out/%MessageID%.xml").Address,
	})
}
