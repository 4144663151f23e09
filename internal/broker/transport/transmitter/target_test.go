package transmitter

import (
	"testing"
	"time"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// to makes a run for a broker.
func to(broker byte, endpoint int64) transportstore.Run {
	r := run(endpoint, 0, 1, 10)
	r.ToBroker = parley.UUID{broker}
	return r
}

func TestABatchIsForOneTarget(t *testing.T) {
	t.Parallel()
	w := newWindow()
	unbound, other := run(7, 0, 1, 10), run(8, 0, 1, 10)
	unbound.ToService, other.ToService = "one", "other"
	w.add([]transportstore.Run{to(1, 1), to(2, 2), to(1, 3), unbound, to(2, 4), other})
	for _, want := range [][]int64{{1, 3}, {2, 4}, {7}, {8}, nil} {
		var got []int64
		for _, p := range w.compose(100, 1<<20, time.Now()) {
			got = append(got, p.run.EndpointID)
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] || len(want) > 1 && got[1] != want[1] {
			t.Errorf("a batch has conversations %v, want %v", got, want)
		}
	}
}

func TestATargetThatIsLateGetsNoMoreAndKeepsNoOther(t *testing.T) {
	t.Parallel()
	w := newWindow()
	now := time.Now()
	w.add([]transportstore.Run{to(1, 1)})
	slow := w.compose(100, 1<<20, now)
	w.add([]transportstore.Run{to(1, 2), to(2, 3)})
	later := now.Add(lateTime)
	if next := w.compose(100, 1<<20, later); len(next) != 1 || next[0].run.EndpointID != 3 {
		t.Fatalf("what travels next is %+v", next)
	}
	if next := w.compose(100, 1<<20, later); len(next) != 0 {
		t.Errorf("the target that is late is sent %+v", next)
	}
	w.arrive(slow, false, later)
	if next := w.compose(100, 1<<20, later); len(next) != 1 || next[0].run.EndpointID != 2 {
		t.Errorf("when it has answered, what travels is %+v", next)
	}
}

func TestSoManyBatchesTravelToATargetAndNoMore(t *testing.T) {
	t.Parallel()
	w := newWindow()
	for n := range int64(batchesMax + 1) {
		w.add([]transportstore.Run{to(1, n)})
		if sent := len(w.compose(100, 1<<20, time.Now())); sent == 1 != (n < batchesMax) {
			t.Errorf("%d pieces travel when %d batches do", sent, n)
		}
	}
	w.add([]transportstore.Run{to(2, 100)})
	if sent := w.compose(100, 1<<20, time.Now()); len(sent) != 1 || sent[0].run.EndpointID != 100 {
		t.Errorf("to another target travels %+v", sent)
	}
}

// Otherwise a window that is full of what is for a slow target would keep the lane from everybody.
func TestWhatIsForALateTargetDoesNotFillTheWindow(t *testing.T) {
	t.Parallel()
	w := newWindow()
	now := time.Now()
	for n := range int64(windowRows) {
		w.add([]transportstore.Run{to(1, n)})
	}
	w.compose(100, 1<<20, now)
	if w.hasRoom(now) {
		t.Error("a full window has room")
	}
	if next := w.nextLate(now); !next.Equal(now.Add(lateTime)) {
		t.Errorf("it has room again at %v, want %v", next, now.Add(lateTime))
	}
	if next := w.nextLate(now.Add(lateTime)); !next.IsZero() {
		t.Errorf("nothing more becomes late, and yet at %v", next)
	}
	if !w.hasRoom(now.Add(lateTime)) {
		t.Error("others have to wait for the target that is late")
	}
	for n := range int64((widest - 1) * windowRows) {
		w.add([]transportstore.Run{to(1, windowRows+n)})
	}
	if w.hasRoom(now.Add(lateTime)) {
		t.Error("the window grows without end")
	}
}

func TestNothingIsRememberedOfATargetThatHasAll(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{to(1, 1), to(2, 2)})
	for range 2 {
		pieces := w.compose(100, 1<<20, time.Now())
		w.arrive(pieces, false, time.Now())
		w.answer(pieces, []transportstore.Result{accepted(1)}, time.Now())
	}
	if len(w.targets) != 0 || w.rows != 0 || w.bytes != 0 {
		t.Errorf("%d targets, %d rows and %d bytes are left", len(w.targets), w.rows, w.bytes)
	}
}
