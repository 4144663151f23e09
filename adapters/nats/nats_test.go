package nats

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-broker/parley/flow/adapter"
	"github.com/parley-broker/parley/flow/adaptertest"
	page "github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

func TestTheAdapterKeepsTheRulesOfDefinitions(t *testing.T) {
	t.Parallel()
	adaptertest.CheckKind(t, Kind)
	secrets := []string{passwordSecret, tokenSecret, credentialsSecret, "authority", "certificate", "private_key"}
	page.CheckPage(t, Kind, adapter.Receive, receiveDefaults(), secrets...)
	page.CheckPage(t, Kind, adapter.Send, sendDefaults(), secrets...)
	page.CheckExamples(t, Kind)
}

// start starts a server in this process, with a stream of some subjects, and gives its host:port.
func start(t *testing.T, subjects ...string) (host string, stream jetstream.Stream, js jetstream.JetStream) {
	t.Helper()
	s, err := natsd.NewServer(&natsd.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(adaptertest.Patience) {
		t.Fatal("the server of NATS does not start")
	}
	host = s.Addr().String()
	conn, err := nats.Connect("nats://" + host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	stream, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: subjects})
	if err != nil {
		t.Fatal(err)
	}
	return host, stream, js
}

func endpointOf(address, settings string, host string) adapter.Endpoint {
	return adapter.Endpoint{
		Name: "Test", Address: address, Settings: json.RawMessage(settings), Permission: adapter.Permission{Connect: []string{host}},
		Logger: slog.New(slog.DiscardHandler),
	}
}

func TestALocationKeepsTheRules(t *testing.T) {
	t.Parallel()
	host, _, js := start(t, "orders.>")
	adaptertest.CheckReceiver(t, adaptertest.Source{
		Kind: Kind, Endpoint: endpointOf("nats://"+host+"/ORDERS", `{"consumer": "parley", "ack_wait": "1 second"}`, host), HasKeys: true,
		Put: func(body string) {
			if _, err := js.Publish(context.WithoutCancel(t.Context()), "orders.new", []byte(body)); err != nil {
				t.Error(err)
			}
		},
	})
}

func TestAPortKeepsTheRules(t *testing.T) {
	t.Parallel()
	host, stream, _ := start(t, "out")
	adaptertest.CheckSender(t, adaptertest.Destination{
		Kind: Kind, Endpoint: endpointOf("nats://"+host+"/out", `{}`, host), Received: func() []string { return bodiesOf(t, stream) },
	})
	// The stream has refused the repeat of the message by its header.
	count := 0
	for _, body := range bodiesOf(t, stream) {
		if body == "two" {
			count++
		}
	}
	if count != 1 {
		t.Errorf("a message that was sent again is there %d times", count)
	}
}

// bodiesOf reads a stream from its beginning.
func bodiesOf(t *testing.T, stream jetstream.Stream) (bodies []string) {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := info.State.FirstSeq; n > 0 && n <= info.State.LastSeq; n++ {
		m, err := stream.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(m.Data))
	}
	return bodies
}

func TestASubjectThatNoStreamTakesIsAFailure(t *testing.T) {
	t.Parallel()
	host, _, _ := start(t, "out")
	made, err := Kind.NewSender(endpointOf("nats://"+host+"/elsewhere", `{}`, host))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = made.Close() }()
	err = made.Send(t.Context(), []*adapter.Message{adaptertest.Message(1, "one")})[0].Err
	if failure, is := errors.AsType[*adapter.Failure](err); !is || failure.Code != "send.refused" || !strings.Contains(err.Error(), "no stream") {
		t.Errorf("the failure is %v", err)
	}
}

// A stream that is made anew counts from 1 again. Its first message is no repeat of that of the old one.
func TestAStreamThatIsMadeAnewHasNewMessages(t *testing.T) {
	t.Parallel()
	host, _, js := start(t, "orders.>")
	in := &adaptertest.Intake{}
	for _, body := range []string{"old", "new"} {
		ctx, stop := context.WithCancel(t.Context())
		if _, err := js.Publish(ctx, "orders.new", []byte(body)); err != nil {
			t.Fatal(err)
		}
		made, err := Kind.NewReceiver(endpointOf("nats://"+host+"/ORDERS", `{"consumer": "parley"}`, host))
		if err != nil {
			t.Fatal(err)
		}
		before, ended := len(in.Bodies()), make(chan error, 1)
		go func() { ended <- made.Run(ctx, in) }()
		for deadline := time.Now().Add(adaptertest.Patience); len(in.Bodies()) == before && time.Now().Before(deadline); {
			<-time.After(10 * time.Millisecond)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := js.DeleteStream(t.Context(), "ORDERS"); err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(in.Bodies(), " "); got != "old new" {
		t.Errorf("taken are %q", got)
	}
}
