package send // Which ways are kept is not exported.

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// kept is a way that says when it is closed.
type kept struct {
	Way
	closed chan struct{}
	once   sync.Once
}

func newKept() *kept { return &kept{closed: make(chan struct{})} }

func (k *kept) Close() { k.once.Do(func() { close(k.closed) }) }

func (k *kept) isClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// await waits until so many of some ways are closed.
func await(t *testing.T, closed int, ways ...*kept) {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		n := 0
		for _, way := range ways {
			if way.isClosed() {
				n++
			}
		}
		if n == closed {
			return
		}
		if n > closed {
			t.Fatalf("%d ways are closed, want %d", n, closed)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("%d ways are closed, want %d", n, closed)
		}
	}
}

// Of a connector as many ways are kept as it may have; those of others stay.
func TestWaysOfAConnectorAreBounded(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{0: 0, 1: 1, 3: 3, 4: 4, 9: 4} {
		w := newIdleWays()
		hops := []Hop{{"DNS", "a.example", "full"}, {"DNS", "b.example", "full"}}
		var ways []*kept
		for i := range 4 {
			ways = append(ways, newKept())
			w.keep(hops[i%2], ways[i], time.Hour)
		}
		other := newKept()
		w.keep(Hop{"DNS", "a.example", "other"}, other, time.Hour)
		w.bound("DNS/full/", most)
		open := 0
		for range 4 {
			for _, hop := range hops {
				if w.take(hop) != nil {
					open++
				}
			}
		}
		await(t, 4-want, ways...)
		if open != want || other.isClosed() || w.take(Hop{"DNS", "a.example", "other"}) != Way(other) {
			t.Errorf("at most %d: %d are open", most, open)
		}
		if len(w.ways) != 0 {
			t.Errorf("at most %d: hops without ways are remembered", most)
		}
	}
}

func TestWaysAreClosed(t *testing.T) {
	t.Parallel()
	w, hop := newIdleWays(), Hop{"DNS", "a.example", "c"}
	brief, long, late := newKept(), newKept(), newKept()
	w.keep(hop, brief, time.Millisecond)
	await(t, 1, brief)
	if w.take(hop) != nil {
		t.Error("a way outlasts its time")
	}
	w.keep(hop, long, time.Hour)
	w.close()
	w.keep(hop, late, time.Hour)
	if !long.isClosed() || !late.isClosed() {
		t.Error("a way stays open when all are closed")
	}
}

func TestSlotsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSlots()
	ctx, cancel := context.WithCancel(t.Context())
	for want := 1; want <= 2; want++ {
		if used, free := s.take(ctx, "a", 2); !free || used != want {
			t.Fatalf("slot %d: %d, %v", want, used, free)
		}
	}
	if _, free := s.take(ctx, "b", 1); !free {
		t.Error("another connector has no slot")
	}
	if used, free := s.take(ctx, "c", 0); !free || used != 1 {
		t.Errorf("without a bound: %d, %v", used, free)
	}
	waited := make(chan int)
	go func() { used, _ := s.take(ctx, "a", 2); waited <- used }()
	select {
	case <-waited:
		t.Fatal("a third slot of two was given")
	case <-time.After(20 * time.Millisecond):
	}
	s.give("a")
	select {
	case used := <-waited:
		if used != 2 {
			t.Errorf("the slot that was given back is %d", used)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a slot that was given back is not taken")
	}
	cancel()
	if _, free := s.take(ctx, "a", 2); free {
		t.Error("a slot was given after the end")
	}
	s.give("a")
	s.give("a")
	s.give("b")
	s.give("c")
	if len(s.used) != 0 {
		t.Errorf("remembered are %v", s.used)
	}
}

// asking remembers what it was asked for.
type asking struct {
	Store
	mu    sync.Mutex
	asked [][2]int
	limit time.Duration
}

func (a *asking) Claim(_ context.Context, hops, each int, lease time.Duration, _ []string) ([]Batch, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked, a.limit = append(a.asked, [2]int{hops, each}), lease
	return nil, nil
}

// How much is claimed at once: 50 hops, 20 messages of each, by free connections.
func TestClaimIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config Config
		under  int
		want   [2]int
	}{
		{Config{}, 0, [2]int{50, 20}},
		{Config{}, 999, [2]int{1, 20}},
		{Config{}, 960, [2]int{40, 20}},
		{Config{Connections: 3, Each: 7}, 1, [2]int{2, 7}},
		{Config{Connections: 3}, 3, [2]int{}},
	} {
		store := new(asking)
		c.config.Store, c.config.Carriers = store, map[string]Carrier{"DNS": nil}
		d, err := NewDispatcher(c.config)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.under {
			d.leases[int64(i)] = d.leases[int64(i)] // whatever is kept of one
		}
		if _, err := d.claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := slices.DeleteFunc([][2]int{c.want}, func(w [2]int) bool { return w == [2]int{} }); !slices.Equal(store.asked, want) {
			t.Errorf("%d under way: asked for %v, want %v", c.under, store.asked, want)
		}
	}
}

func TestModesAreThoseByName(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]bool{"OPPORTUNISTIC": true, "off": true, "Required": true, "VERIFIED": true, "DANE": true, "TLS": false, "": false} {
		if _, err := ParseTLSMode(name); (err == nil) != is {
			t.Errorf("the mode %q: %v", name, err)
		}
	}
}
