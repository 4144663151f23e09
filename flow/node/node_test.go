package node_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	"github.com/parley-broker/parley/flow/node"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// loft is an adapter of a program: its pigeons arrive at once.
type loft struct {
	mu     sync.Mutex
	bodies []string
}

func (l *loft) kind() adapter.Kind {
	return adapter.Kind{
		Name:      "PIGEON",
		Guarantee: map[adapter.Direction]string{adapter.Send: "At least once"},
		Key:       map[adapter.Direction]string{adapter.Send: "none"},
		Check: func(_ adapter.Direction, _ string, settings json.RawMessage, secrets []string) []adapter.Problem {
			return append(adapter.CheckSettings(settings, &struct{}{}), adapter.OnlySecrets(secrets)...)
		},
		NewSender: func(adapter.Endpoint) (adapter.Sender, error) { return l, nil },
	}
}

// Send has pigeons carry messages.
func (l *loft) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	for i, m := range messages {
		body, err := adaptertest.Read(ctx, m)
		if deliveries[i].Err = err; err == nil {
			l.mu.Lock()
			l.bodies = append(l.bodies, body)
			l.mu.Unlock()
		}
	}
	return deliveries
}

// Close has nothing to give back.
func (l *loft) Close() error { return nil }

func (l *loft) received() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.bodies...)
}

func TestAProgramServesAHostWithAnAdapterOfItsOwn(t *testing.T) {
	t.Parallel()
	rules := &loft{}
	adaptertest.CheckKind(t, rules.kind())
	adaptertest.CheckSender(t, adaptertest.Destination{Kind: rules.kind(), Received: rules.received})

	b := sqltest.NewBroker(t)
	role := b.Role("send")
	b.Exec("select parley_flow.apply($1::jsonb)", strings.ReplaceAll(`{"application": {"Orders": {}}, "host": {"Send": {"role": "$"}},
		"send port": {"Out": {"application": "Orders", "host": "Send", "adapter": "PIGEON", "address": "loft",
			"filter": [[{"property": "MessageType", "operator": "exists"}]]}}}`, "$", role))
	l := &loft{}
	serving, err := node.New(node.Config{Pool: b.Pool, Hosts: []string{"Send"}, Adapters: []adapter.Kind{l.kind()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serving.Run(ctx) }()
	b.Exec("select parley_flow.publish('coo'::text, message_type => 'urn:o#Order')")
	parleytest.Until(t, "the pigeon has arrived", func() bool { return len(l.received()) == 1 && l.received()[0] == "coo" })
	stop()
	if err := parleytest.Receive(t, ended, "the end of the node"); err != nil {
		t.Error(err)
	}
}
