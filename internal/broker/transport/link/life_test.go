package link

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

func TestAConnectionIsMadeWhenItIsNeededAndClosedWhenItIsNot(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	config := plaintext()
	config.IdleAfter = 50 * time.Millisecond
	server, address := serve(t, far, config)
	l := connect(t, address, config)
	if n := len(l.Connections()); n != 0 {
		t.Errorf("%d connections before there is anything to say", n)
	}
	for i := range int64(3) {
		deliver(t, l, batch(run(1, i, "a")))
		eventually(t, "it is closed at both ends", func() bool { return len(l.Connections()) == 0 && len(server.Connections()) == 0 })
	}
	if here, there := l.Totals(), server.Totals(); here.TotalFragmentsSent != 3 || there.TotalFragmentsReceived != 3 || here.TotalBytesSent == 0 {
		t.Errorf("over three connections went %+v, %+v", here, there)
	}
	if c := server.Counters(); c.Accepted != 3 || c.Corrupted != 0 || c.Rejected != 0 {
		t.Errorf("counters %+v", c)
	}
}

// While an answer is awaited a connection is in use, however long that takes.
func TestAConnectionThatIsWaitedOnIsNotIdle(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	config := plaintext()
	config.IdleAfter = time.Millisecond
	var server *Server
	far.hold = func(ctx context.Context, _ transport.Batch) error {
		started := time.NewTimer(100 * time.Millisecond)
		defer started.Stop()
		select {
		case <-started.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	server, address := serve(t, far, config)
	deliver(t, connect(t, address, config), batch(run(1, 0, "a")))
	if c := server.Counters(); c.Accepted != 1 {
		t.Errorf("counters %+v", c)
	}
}

func TestAServerThatStopsAnswersWhatItHas(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	release := make(chan struct{})
	far.hold = func(_ context.Context, b transport.Batch) error {
		if b.Runs[0].ConversationID == run(1, 0).ConversationID {
			awaitReleased(t, release)
		}
		return nil
	}
	server, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	var asking sync.WaitGroup
	asking.Go(func() { deliver(t, l, batch(run(1, 0, "a"))) })
	parleytest.Receive(t, far.came, "the batch")
	stopped := make(chan struct{})
	go func() { defer close(stopped); server.Shutdown(t.Context()) }()
	eventually(t, "it takes nothing new", func() bool {
		_, err := l.Deliver(t.Context(), batch(run(2, 0, "a")))
		return err != nil
	})
	close(release)
	asking.Wait()
	parleytest.Receive(t, stopped, "the end of the server")
	if n := len(server.Connections()); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestAServerThatIsClosedGivesUpWhatItHas(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	far.hold = func(ctx context.Context, _ transport.Batch) error { <-ctx.Done(); return ctx.Err() }
	server, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	answer := make(chan error, 1)
	go func() {
		_, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
		answer <- err
	}()
	parleytest.Receive(t, far.came, "the batch")
	server.Close()
	wantFailure(t, parleytest.Receive(t, answer, "the answer"), transport.FailureToReceive, transport.FailureToDispatch, transport.ClosedByFarEnd)
}

func TestALinkThatIsClosedReturnsErrors(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	release := make(chan struct{})
	defer close(release)
	far.hold = func(context.Context, transport.Batch) error { awaitReleased(t, release); return nil }
	_, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	answer := make(chan error, 1)
	go func() {
		_, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
		answer <- err
	}()
	parleytest.Receive(t, far.came, "the batch")
	l.Close()
	if err := parleytest.Receive(t, answer, "the answer"); err == nil {
		t.Error("a result after the end")
	}
	if _, err := l.Deliver(t.Context(), batch(run(1, 0, "a"))); err == nil {
		t.Error("a result after the end")
	}
}

func TestAPeerCanBeDisconnected(t *testing.T) {
	t.Parallel()
	server, address := serve(t, newReceiver(), plaintext())
	l := connect(t, address, plaintext())
	deliver(t, l, batch(run(1, 0, "a")))
	server.Disconnect(func(s ConnectionState) bool { return s.Software == "another" })
	if n := len(server.Connections()); n != 1 {
		t.Errorf("%d connections", n)
	}
	server.Disconnect(func(ConnectionState) bool { return true })
	eventually(t, "both ends know", func() bool { return len(server.Connections()) == 0 && len(l.Connections()) == 0 })
	deliver(t, l, batch(run(1, 0, "a")))
	l.Disconnect(func(ConnectionState) bool { return true })
	eventually(t, "both ends know", func() bool { return len(server.Connections()) == 0 && len(l.Connections()) == 0 })
}

func TestMorePeersThanAllowedAreTurnedAway(t *testing.T) {
	t.Parallel()
	config := plaintext()
	config.Peers = 1
	server, address := serve(t, newReceiver(), config)
	deliver(t, connect(t, address, config), batch(run(1, 0, "a")))
	_, err := connect(t, address, config).Deliver(t.Context(), batch(run(1, 0, "a")))
	wantFailure(t, err, transport.FailureToReceive)
	if c := server.Counters(); c.RefusedPeers != 1 {
		t.Errorf("counters %+v", c)
	}
}

// serving is a configuration that serves a broker.
func serving(software string) Config {
	return Config{
		Plaintext: true, Software: software, Brokers: func() []wire.Broker { return []wire.Broker{{Instance: parley.UUID{0xB0}, Epoch: 1}} },
	}
}

func TestTheMirrorIsUsedWhenTheOtherIsGone(t *testing.T) {
	t.Parallel()
	one, two := newReceiver(), newReceiver()
	first, firstAddress := serve(t, one, serving("first"))
	_, secondAddress := serve(t, two, serving("second"))
	l := connect(t, "tcp://"+firstAddress+",tcp://"+secondAddress, plaintext())
	deliver(t, l, batch(run(1, 0, "a")))
	if one.deliveries() != 1 {
		t.Error("the first address was not the first")
	}
	first.Close()
	eventually(t, "the mirror is used", func() bool {
		_, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
		return err == nil && two.deliveries() > 0
	})
	if state := only(l); state.Software != "second" {
		t.Errorf("connection %+v", state)
	}
}

func TestTheServerOfAStandbyIsPassedOver(t *testing.T) {
	t.Parallel()
	one, two := newReceiver(), newReceiver()
	_, firstAddress := serve(t, one, plaintext()) // serves no broker
	_, secondAddress := serve(t, two, serving("second"))
	l := connect(t, firstAddress+","+secondAddress, plaintext())
	deliver(t, l, batch(run(1, 0, "a")))
	if one.deliveries() != 0 || two.deliveries() != 1 {
		t.Errorf("%d and %d batches came", one.deliveries(), two.deliveries())
	}
}

func TestTheMirrorIsTriedWhenNothingIsKnownHere(t *testing.T) {
	t.Parallel()
	one, two := newReceiver(), newReceiver()
	one.outcome = transportstore.Unroutable
	_, firstAddress := serve(t, one, serving("first"))
	_, secondAddress := serve(t, two, serving("second"))
	l := connect(t, firstAddress+","+secondAddress, plaintext())
	results, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
	if err != nil || results[0].Outcome != transportstore.Unroutable {
		t.Fatalf("results %+v, %v", results, err)
	}
	deliver(t, l, batch(run(1, 0, "a")))
	if two.deliveries() != 1 {
		t.Error("the mirror was not tried")
	}
}

func TestConnectionsReportWhatTheyHaveCarried(t *testing.T) {
	t.Parallel()
	server, address := serve(t, newReceiver(), serving("far"))
	near := serving("near")
	l := connect(t, address, near)
	deliver(t, l, batch(run(1, 0, "a", "b"), run(2, 0, "c")))
	if _, err := l.DeliverFragment(t.Context(), fragment(0, 1<<20, 2<<20), transport.Outset()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the far end has counted", func() bool { return server.Connections()[0].OpenBytes == 0 })
	here, there := l.Connections()[0], server.Connections()[0]
	for name, state := range map[string]ConnectionState{"here": here, "there": there} {
		if state.State != LoggedIn || state.State.String() != "LOGGED_IN" || state.Version != 1 || state.EncryptionAlgorithm != "NONE" ||
			state.ConnectionID.IsZero() || state.ConnectTime.IsZero() || state.LoginTime.Before(state.ConnectTime) || len(state.Brokers) != 1 ||
			state.LastActivityTime.Before(state.ConnectTime) || state.OpenBytes != 0 || state.Window == 0 {
			t.Errorf("%s: %+v", name, state)
		}
	}
	if here.IsAccept || !there.IsAccept || here.Software != "far" || there.Software != "near" || here.Address != address {
		t.Errorf("here %+v, there %+v", here, there)
	}
	if here.TotalFragmentsSent != 4 || there.TotalFragmentsReceived != 4 || here.TotalSends != 3 || there.TotalReceives != 3 {
		t.Errorf("here %+v, there %+v", here, there)
	}
	if here.TotalBytesSent < 1<<20 || there.TotalBytesReceived < 1<<20 || here.TotalReceives != 3 || there.TotalSends != 3 {
		t.Errorf("here %+v, there %+v", here, there)
	}
}
