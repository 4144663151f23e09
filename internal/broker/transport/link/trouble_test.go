package link

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/parleytest"
)

// Wherever the connection is cut: a call returns the right results, or an error.
func TestACutGivesErrorsAndNoWrongResult(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	_, address := serve(t, far, plaintext())
	var errorsSeen, good atomic.Int64
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		left := map[bool]int{false: 200 + random.IntN(20000), true: 200 + random.IntN(5000)}
		var mu sync.Mutex
		r := newRelay(t, address, func(isAnswer bool, n int) int {
			mu.Lock()
			defer mu.Unlock()
			n = min(n, left[isAnswer])
			left[isAnswer] -= n
			return n
		})
		l := connect(t, r.address(), plaintext())
		var asking sync.WaitGroup
		for i := range 8 {
			sent := batch(run(byte(i), int64(seed), "a", "b"), run(byte(i), 1000+int64(i), string(make([]byte, 100*i))))
			asking.Go(func() {
				for range 5 {
					results, err := l.Deliver(t.Context(), sent)
					if err != nil {
						errorsSeen.Add(1)
						continue
					}
					good.Add(1)
					checkResults(t, sent, results)
				}
			})
		}
		asking.Wait()
		l.Close()
	}
	if errorsSeen.Load() == 0 || good.Load() == 0 {
		t.Errorf("%d errors and %d results: the test tests nothing", errorsSeen.Load(), good.Load())
	}
}

func TestWhatIsCutOffIsNoResult(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	arrived := make(chan struct{})
	far.hold = func(context.Context, transport.Batch) error {
		awaitReleased(t, arrived)
		return nil
	}
	_, address := serve(t, far, plaintext())
	r := newRelay(t, address, nil)
	l := connect(t, r.address(), plaintext())
	answer := make(chan error, 1)
	go func() {
		_, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
		answer <- err
	}()
	parleytest.Receive(t, far.came, "the batch")
	r.cut()
	wantFailure(t, parleytest.Receive(t, answer, "the answer"), transport.FailureToReceive)
	close(arrived)
	deliver(t, l, batch(run(1, 0, "a"))) // over a new connection
}

// A peer from which nothing comes any more is given up, whichever direction is lost, by both ends.
func TestAPeerThatIsSilentIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, isAnswer := range map[string]bool{"questions are lost": false, "answers are lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := plaintext()
			config.DeadAfter = deadAfterLeast
			server, address := serve(t, newReceiver(), config)
			r := newRelay(t, address, nil)
			l := connect(t, r.address(), config)
			deliver(t, l, batch(run(1, 0, "a")))
			r.stall(isAnswer)
			_, err := l.Deliver(t.Context(), batch(run(1, 1, "a")))
			wantFailure(t, err, transport.FailureToReceive, transport.FailureToSend)
			eventually(t, "both ends know", func() bool { return len(server.Connections()) == 0 && len(l.Connections()) == 0 })
		})
	}
}

// Silence alone is no reason: pings keep what nobody uses.
func TestAConnectionThatNobodyUsesIsNotDead(t *testing.T) {
	t.Parallel()
	config := plaintext()
	config.DeadAfter = deadAfterLeast
	_, address := serve(t, newReceiver(), config)
	l := connect(t, address, config)
	deliver(t, l, batch(run(1, 0, "a")))
	before := only(l)
	eventually(t, "it is older than a dead one gets", func() bool {
		return time.Since(before.ConnectTime) > 2*deadAfterLeast
	})
	deliver(t, l, batch(run(1, 1, "a")))
	if after := only(l); after.ConnectionID != before.ConnectionID {
		t.Error("it was made anew")
	}
}

func TestADatabaseThatFailsIsAnErrorAndNotTheEndOfTheConnection(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	var fails atomic.Bool
	fails.Store(true)
	far.hold = func(context.Context, transport.Batch) error {
		if fails.Load() {
			return errors.New("the database is restarting")
		}
		return nil
	}
	_, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	_, err := l.Deliver(t.Context(), batch(run(1, 0, "a")))
	wantFailure(t, err, transport.FailureToDispatch)
	before := only(l).ConnectionID
	fails.Store(false)
	deliver(t, l, batch(run(1, 0, "a")))
	if only(l).ConnectionID != before {
		t.Error("the connection was made anew")
	}
}

func TestAnAddressWhereNobodyAnswersIsAFailure(t *testing.T) {
	t.Parallel()
	// A port that a listener of a test has closed may be another's at once.
	_, err := connect(t, "127.0.0.1:1", plaintext()).Deliver(t.Context(), batch(run(1, 0, "a")))
	wantFailure(t, err, transport.FailureToConnect)
	_, err = connect(t, "tcp://no-such-host.invalid:4022", plaintext()).Deliver(t.Context(), batch(run(1, 0, "a")))
	wantFailure(t, err, transport.FailureToResolve, transport.FailureToConnect)
	for _, wrong := range []string{"", "tcp://", "host", "host:", ":4022", "host:0", "host:70000", "http://host:80", "a:1,b:2,c:3"} {
		_, err = New(wrong, plaintext())
		wantFailure(t, err, transport.FailureOfAddress)
	}
}

// A server that accepts and then sends nothing.
func TestAServerThatSendsNoHelloIsGivenUp(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := plaintext()
	config.ConnectTimeout = 100 * time.Millisecond
	_, err = connect(t, listener.Addr().String(), config).Deliver(t.Context(), batch(run(1, 0, "a")))
	wantFailure(t, err, transport.FailureToConnect)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestACallThatIsCancelledKeepsTheConnection(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	release := make(chan struct{})
	far.hold = func(_ context.Context, b transport.Batch) error {
		if b.Runs[0].FirstSequence == 0 {
			awaitReleased(t, release)
		}
		return nil
	}
	_, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := l.Deliver(ctx, batch(run(1, 0, "a")))
		answer <- err
	}()
	parleytest.Receive(t, far.came, "the batch")
	cancel()
	if err := parleytest.Receive(t, answer, "the answer"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if state := only(l); state.OpenBytes == 0 || state.SendsPosted != 1 {
		t.Errorf("the peer still has it, but it does not count: %+v", state)
	}
	close(release)
	eventually(t, "the answer has come", func() bool { return only(l).SendsPosted == 0 })
	deliver(t, l, batch(run(1, 1, "a")))
	if state := only(l); state.OpenBytes != 0 {
		t.Errorf("it still counts: %+v", state)
	}
}

// A far end that answers pings and nothing else is given up too.
func TestAPeerThatNeverAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	release := make(chan struct{})
	far.hold = func(context.Context, transport.Batch) error { awaitReleased(t, release); return nil }
	server, address := serve(t, far, plaintext())
	config := plaintext()
	config.DeliverTimeout = 20 * time.Millisecond
	l := connect(t, address, config)
	eventually(t, "another connection is made", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := l.Deliver(ctx, batch(run(1, 0, "a")))
		return err != nil && server.Counters().Accepted > 1
	})
	close(release)
	deliver(t, l, batch(run(1, 0, "a")))
}
