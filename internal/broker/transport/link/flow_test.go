package link

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

func TestSeveralBatchesAreUnderWayAtOnce(t *testing.T) {
	t.Parallel()
	const most = 10
	far := newReceiver()
	all := make(chan struct{})
	var open atomic.Int32
	far.hold = func(ctx context.Context, _ transport.Batch) error {
		if open.Add(1) == most {
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	var asking sync.WaitGroup
	for i := range most {
		asking.Go(func() { deliver(t, l, batch(run(byte(i), int64(i), "a"))) })
	}
	asking.Wait()
	if far.openMost != most {
		t.Errorf("%d at once, want %d", far.openMost, most)
	}
}

// Random batches and fragments from many at once, with peers that come and go so that the window changes: the accepting end closes
// one that exceeds its window, and it never has to.
func TestALinkNeverExceedsTheWindowOfItsPeer(t *testing.T) {
	t.Parallel()
	config := plaintext()
	config.Window, config.Memory = smallestWindow, 3*smallestWindow
	server, address := serve(t, newReceiver(), config)
	var asking sync.WaitGroup
	for n := range 6 {
		l := connect(t, address, config)
		for m := range 4 {
			random := rand.New(rand.NewPCG(uint64(n), uint64(m)))
			asking.Go(func() {
				for i := range 15 {
					size := random.IntN(1 << (1 + random.IntN(20)))
					if random.IntN(2) == 0 {
						deliver(t, l, batch(run(byte(m), int64(i), string(make([]byte, size)))))
					} else if _, err := l.DeliverFragment(t.Context(), fragment(0, size+1, 2<<20), transport.Outset()); err != nil {
						t.Error(err)
					}
					for _, state := range server.Connections() {
						if state.OpenBytes > state.Window {
							t.Errorf("%d bytes are open in a window of %d", state.OpenBytes, state.Window)
						}
					}
				}
			})
		}
	}
	asking.Wait()
	if c := server.Counters(); c.Corrupted != 0 || c.Accepted != 6 {
		t.Errorf("counters %+v", c)
	}
}

// fragment makes a part of a large message.
func fragment(offset, length, size int) transportstore.Fragment {
	return transportstore.Fragment{
		Speaker: speaker(), ConversationID: parley.UUID{0xC0, 0xF0}, Sequence: 1, Offset: int64(offset), Size: int64(size),
		Data: make([]byte, length), ToService: "stock",
	}
}

// A message of 100 MB goes past: its fragments are not taken in, as if the far database were slow with them; batches are.
func TestALargeMessageDoesNotStallOthers(t *testing.T) {
	t.Parallel()
	const size, part, atOnce = 100 << 20, 1 << 20, 16
	far := newReceiver()
	release := make(chan struct{})
	far.holdPart = func(ctx context.Context, _ transportstore.Fragment) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	server, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	var sending sync.WaitGroup
	for first := 0; first < atOnce*part; first += part {
		sending.Go(func() {
			for offset := first; offset < size; offset += atOnce * part {
				stored, err := l.DeliverFragment(t.Context(), fragment(offset, min(part, size-offset), size), transport.Outset())
				if err != nil || stored != int64(min(offset+part, size)) {
					t.Errorf("fragment at %d: stored %d, %v", offset, stored, err)
				}
			}
		})
	}
	eventually(t, "fragments wait for the window", func() bool { return only(l).IsSendFlowControlled })
	for i := range 50 {
		deliver(t, l, batch(run(1, int64(i), "a small one")))
	}
	far.mu.Lock()
	if n := len(far.batches); n != 50 {
		t.Errorf("%d batches came while the large message was on its way", n)
	}
	if n := len(far.fragments); n > server.config.ParallelFragments {
		t.Errorf("%d fragments came at once", n)
	}
	far.mu.Unlock()
	close(release)
	sending.Wait()
	if n := len(far.fragments); n != size/part {
		t.Errorf("%d fragments came", n)
	}
	if only(l).IsSendFlowControlled {
		t.Error("nobody waits any more")
	}
}

func TestABatchThatIsTooLongGoesInParts(t *testing.T) {
	t.Parallel()
	far := newReceiver()
	_, address := serve(t, far, plaintext())
	l := connect(t, address, plaintext())
	sent := batch()
	for i := range 40 {
		sent.Runs = append(sent.Runs, run(byte(i), int64(1000*i), string(make([]byte, 1<<20-5000))))
	}
	for i := range 5000 {
		sent.Runs = append(sent.Runs, run(byte(i), int64(1000*i), fmt.Sprint(i)))
	}
	deliver(t, l, sent)
	if n := far.deliveries(); n < 12 {
		t.Errorf("40 MB and 5040 runs came in %d parts", n)
	}
	_, err := l.Deliver(t.Context(), batch(run(1, 0, string(make([]byte, 5<<20)))))
	wantFailure(t, err, transport.FailureToTransmit)
}

func TestTheWindowIsSharedAmongPeers(t *testing.T) {
	t.Parallel()
	config := plaintext()
	config.Window, config.Memory = 4*smallestWindow, 4*smallestWindow
	server, address := serve(t, newReceiver(), config)
	window := func(l *Link) int64 { return only(l).Window }
	one, two := connect(t, address, config), connect(t, address, config)
	deliver(t, one, batch(run(1, 0, "a")))
	if got := window(one); got != 4*smallestWindow {
		t.Errorf("alone it has %d", got)
	}
	deliver(t, two, batch(run(1, 0, "a")))
	eventually(t, "each has half", func() bool { return window(one) == 2*smallestWindow && window(two) == 2*smallestWindow })
	two.Close()
	eventually(t, "it has all again", func() bool { return window(one) == 4*smallestWindow })
	if c := server.Counters(); c.Corrupted != 0 {
		t.Errorf("counters %+v", c)
	}
}
