package pairing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/parleytest"
)

// A question during a poll gets the answer of the next one, and all that wait for that share it.
func TestManyQuestionsShareAPoll(t *testing.T) {
	t.Parallel()
	var g gate
	var polls atomic.Int64
	begun, goOn := make(chan struct{}, 10), make(chan struct{})
	poll := func(context.Context) bool {
		polls.Add(1)
		begun <- struct{}{}
		select {
		case <-goOn:
		case <-t.Context().Done():
		}
		return polls.Load() > 1
	}
	first := make(chan bool, 1)
	go func() { first <- g.ask(t.Context(), poll) }()
	parleytest.Receive(t, begun, "the first poll")
	var asking sync.WaitGroup
	var open atomic.Int64
	for range 1000 {
		asking.Go(func() {
			if g.ask(t.Context(), poll) {
				open.Add(1)
			}
		})
	}
	goOn <- struct{}{}
	if parleytest.Receive(t, first, "the answer of the first poll") {
		t.Error("the first one got the answer of a later poll")
	}
	close(goOn)
	asking.Wait()
	// Those that came when the second poll had begun got the third one; there is a quarter of a second between two.
	if n := polls.Load(); n > 20 || open.Load() != 1000 {
		t.Errorf("%d polls, %d of 1000 got the answer that it is open", n, open.Load())
	}
}

func TestPollsAreSomeTimeApart(t *testing.T) {
	t.Parallel()
	var g gate
	var last time.Time
	for range 3 {
		g.ask(t.Context(), func(context.Context) bool { return false })
		g.mu.Lock()
		if apart := g.begunAt.Sub(last); apart < gateInterval {
			t.Errorf("two polls are %s apart", apart)
		}
		last = g.begunAt
		g.mu.Unlock()
	}
}

func TestQuestionEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	var g gate
	ctx, cancel := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	defer close(goOn)
	time.AfterFunc(time.Millisecond, cancel)
	if g.ask(ctx, func(context.Context) bool { <-goOn; return true }) {
		t.Error("an answer before there was one")
	}
}

func TestCallsOfOneHostAreLimited(t *testing.T) {
	t.Parallel()
	var c calls
	now := time.Unix(1_000_000, 0)
	answered := func(host string, times int) (n int) {
		for range times {
			if c.allow(host, now) {
				n++
			}
		}
		return n
	}
	if n := answered("one", 100); n != callsMost {
		t.Errorf("%d calls were answered", n)
	}
	if n := answered("two", 1); n != 1 {
		t.Error("a call of another host was not answered")
	}
	now = now.Add(callsPeriod)
	if n := answered("one", 100); n != callsMost {
		t.Errorf("%d calls were answered in the next period", n)
	}
	for i := range 2 * hostsMost {
		c.allow(fmt.Sprint("host ", i), now)
	}
	if len(c.of) > hostsMost+1 {
		t.Errorf("%d hosts are remembered", len(c.of))
	}
}

// Unknown peers call without end, and no pairing is open: the database is asked a few times.
func TestUnknownPeersCannotMakeTheDatabaseBusy(t *testing.T) {
	t.Parallel()
	a, b := newBroker(t, "a"), newBroker(t, "b")
	token := b.invite(truststore.PairingChoice{})
	b.exec("update parley._p_pairing set expires_at = now()")
	for range callsMost {
		if _, err := a.call(b.address, token); err == nil {
			t.Fatal("paired without a pairing")
		}
	}
	b.exec("update parley._p_pairing set expires_at = now() + interval '1 hour'")
	if _, err := a.call(b.address, token); err == nil {
		t.Error("a host that has called too often is answered")
	}
}
