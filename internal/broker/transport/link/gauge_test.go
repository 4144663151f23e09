package link

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// The open questions never exceed the window, but for a single question that is longer than the window; and each question that waits is
// admitted at last.
func TestTheWindowIsNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 100).Draw(t, "window")
		g := &gauge{window: window}
		var open, openFragments atomic.Int64
		var asking sync.WaitGroup
		enter := func(c class, cost int64) {
			n := open.Add(cost)
			if n > window && n != cost {
				t.Errorf("%d are open in a window of %d", n, window)
			}
			if c == forFragments {
				if n := openFragments.Add(cost); n > window/2 && n != cost {
					t.Errorf("fragments of %d are open in a window of %d", n, window)
				}
			}
		}
		leave := func(c class, cost int64) {
			open.Add(-cost)
			if c == forFragments {
				openFragments.Add(-cost)
			}
			g.release(c, cost)
		}
		costs := rapid.SliceOfN(rapid.Int64Range(1, 60), 1, 40).Draw(t, "costs")
		for i, cost := range costs {
			c := class(i % int(classes))
			asking.Go(func() {
				if g.acquire(context.Background(), c, cost, nil) {
					enter(c, cost)
					leave(c, cost)
				}
			})
		}
		asking.Wait()
		if n, _, isWaiting := g.state(); n != 0 || isWaiting {
			t.Errorf("%d are open at the end, somebody waits: %t", n, isWaiting)
		}
	})
}

func TestAQuestionThatIsGivenUpLeavesItsPlace(t *testing.T) {
	t.Parallel()
	for range 100 {
		g := &gauge{window: 10}
		if !g.acquire(t.Context(), forBatches, 10, nil) {
			t.Fatal("there was room")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			if g.acquire(ctx, forBatches, 5, nil) {
				g.release(forBatches, 5)
			}
		})
		asking.Go(cancel)
		if rand.IntN(2) == 0 {
			asking.Go(func() { g.release(forBatches, 10); g.acquire(context.Background(), forBatches, 10, nil) })
		}
		asking.Wait()
		g.release(forBatches, 10)
		if n, _, isWaiting := g.state(); n != 0 || isWaiting {
			t.Fatalf("%d are open at the end, somebody waits: %t", n, isWaiting)
		}
	}
}

// posed puts a question into the line and returns what is closed when it is admitted.
func posed(g *gauge, c class, cost int64) *waiter {
	w := &waiter{cost: cost, admitted: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[c] = append(g.waiting[c], w)
	g.admit()
	return w
}

func (w *waiter) isAdmitted() bool {
	select {
	case <-w.admitted:
		return true
	default:
		return false
	}
}

func TestFragmentsLeaveRoomForBatches(t *testing.T) {
	t.Parallel()
	g := &gauge{window: 100}
	fragments := 0
	for range 10 {
		if posed(g, forFragments, 20).isAdmitted() {
			fragments++
		}
	}
	if fragments != 2 {
		t.Errorf("%d fragments of 20 were admitted to half of 100", fragments)
	}
	for range 3 {
		if !posed(g, forBatches, 20).isAdmitted() {
			t.Error("a batch was not admitted beside the fragments")
		}
	}
}

func TestBatchesDoNotStarveFragments(t *testing.T) {
	t.Parallel()
	g := &gauge{window: 100}
	for range 10 {
		posed(g, forBatches, 10)
	}
	fragment := posed(g, forFragments, 40)
	for range 10 {
		posed(g, forBatches, 10)
	}
	for range 4 { // as batches are answered
		g.release(forBatches, 10)
	}
	if !fragment.isAdmitted() {
		t.Error("batches that came later went before the fragment")
	}
}

func TestASmallerWindowHoldsForWhatComesNext(t *testing.T) {
	t.Parallel()
	g := &gauge{window: 100}
	for range 4 {
		posed(g, forBatches, 20)
	}
	g.grant(50)
	next := posed(g, forBatches, 20)
	g.release(forBatches, 20)
	g.release(forBatches, 20)
	if next.isAdmitted() {
		t.Error("60 are open in a window of 50")
	}
	g.grant(60)
	if !next.isAdmitted() {
		t.Error("there is room again")
	}
}
