package kafka

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	page "github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestTheAdapterKeepsTheRulesOfDefinitions(t *testing.T) {
	t.Parallel()
	adaptertest.CheckKind(t, Kind)
	secrets := []string{passwordSecret, "authority", "certificate", "private_key"}
	page.CheckPage(t, Kind, adapter.Receive, receiveDefaults(), secrets...)
	page.CheckPage(t, Kind, adapter.Send, sendDefaults(), secrets...)
	page.CheckExamples(t, Kind)
}

// start starts a cluster in this process, with a topic.
func start(t *testing.T) (hosts []string, client *kgo.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	hosts = cluster.ListenAddrs()
	client, err = kgo.NewClient(kgo.SeedBrokers(hosts...), kgo.ConsumeTopics("orders"), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return hosts, client
}

func endpointOf(hosts []string, settings string) adapter.Endpoint {
	return adapter.Endpoint{
		Name: "Test", Address: "kafka://" + strings.Join(hosts, ",") + "/orders", Settings: json.RawMessage(settings),
		Permission: adapter.Permission{Connect: hosts}, Logger: slog.New(slog.DiscardHandler),
	}
}

func TestALocationKeepsTheRules(t *testing.T) {
	t.Parallel()
	hosts, client := start(t)
	adaptertest.CheckReceiver(t, adaptertest.Source{
		Kind: Kind, Endpoint: endpointOf(hosts, `{"group": "parley"}`), HasKeys: true,
		Put: func(body string) {
			if err := client.ProduceSync(context.WithoutCancel(t.Context()), kgo.StringRecord(body)).FirstErr(); err != nil {
				t.Error(err)
			}
		},
	})
}

func TestAPortKeepsTheRules(t *testing.T) {
	t.Parallel()
	hosts, client := start(t)
	var mu sync.Mutex
	var bodies []string
	ids := map[string][]string{}
	go func() {
		for {
			fetched := client.PollFetches(context.WithoutCancel(t.Context()))
			if fetched.IsClientClosed() {
				return
			}
			mu.Lock()
			fetched.EachRecord(func(r *kgo.Record) {
				bodies = append(bodies, string(r.Value))
				for _, h := range r.Headers {
					if h.Key == "parley-message-id" {
						ids[string(r.Value)] = append(ids[string(r.Value)], string(h.Value))
					}
				}
			})
			mu.Unlock()
		}
	}()
	adaptertest.CheckSender(t, adaptertest.Destination{
		Kind: Kind, Endpoint: endpointOf(hosts, `{}`),
		Received: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(bodies)
		},
	})
	mu.Lock()
	defer mu.Unlock()
	if got := ids["two"]; !slices.Equal(slices.Compact(got), []string{"Test:2"}) {
		t.Errorf("a message that was sent again has the ids %q", got)
	}
}
