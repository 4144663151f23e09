package tcp

import (
	"encoding/json"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

func TestTheRulesOfAdaptersAreKept(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	endpoint := func(address string) adapter.Endpoint {
		return adapter.Endpoint{
			Name: "Orders", Address: address, Settings: json.RawMessage(`{}`), Permission: everywhere, Logger: slog.New(slog.DiscardHandler),
			Secret: secretsOf(nil),
		}
	}
	client := port(t, address, `{}`, nil)
	var sent atomic.Int64
	adaptertest.CheckKind(t, Kind)
	adaptertest.CheckReceiver(t, adaptertest.Source{
		Kind: Kind, Endpoint: endpoint(address), HasKeys: true,
		Put: func(body string) {
			m := message(sent.Add(1), body)
			go func() {
				for client.Send(t.Context(), []*adapter.Message{m})[0].Err != nil && t.Context().Err() == nil {
					<-time.After(20 * time.Millisecond)
				}
			}()
		},
	})
	in := &adaptertest.Intake{}
	destination, _ := serve(t, in, `{}`, nil)
	adaptertest.CheckSender(t, adaptertest.Destination{Kind: Kind, Endpoint: endpoint(destination), Received: in.Bodies})
}
