package transmitter

import (
	"testing"
	"time"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// run makes a run of an endpoint with some bodies of a size.
func run(endpoint, first int64, bodies, size int) transportstore.Run {
	r := transportstore.Run{EndpointID: endpoint, FirstSequence: first, MessageType: "DEFAULT"}
	for range bodies {
		r.Bodies = append(r.Bodies, make([]byte, size))
	}
	return r
}

func accepted(next int64) transportstore.Result {
	return transportstore.Result{Outcome: transportstore.Accepted, Next: next}
}

func TestAConversationTravelsInOneBatchAtATime(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{run(1, 0, 1, 10), run(2, 0, 1, 10)})
	first := w.compose(100, 1<<20, time.Now())
	w.add([]transportstore.Run{run(1, 1, 1, 10), run(3, 0, 1, 10)})
	second := w.compose(100, 1<<20, time.Now())
	if len(first) != 2 || len(second) != 1 || second[0].run.EndpointID != 3 {
		t.Fatalf("%d pieces, then %d", len(first), len(second))
	}
	acknowledged, _ := w.answer(first, []transportstore.Result{accepted(1), accepted(1)}, time.Now())
	if len(acknowledged) != 2 {
		t.Errorf("the database gets %d", len(acknowledged))
	}
	third := w.compose(100, 1<<20, time.Now())
	if len(third) != 1 || third[0].run.EndpointID != 1 || third[0].run.FirstSequence != 1 {
		t.Errorf("then %+v", third)
	}
	w.answer(second, []transportstore.Result{accepted(1)}, time.Now())
	w.answer(third, []transportstore.Result{accepted(2)}, time.Now())
	if w.rows != 0 || w.bytes != 0 || len(w.conversations) != 0 {
		t.Errorf("%d rows and %d bytes are left", w.rows, w.bytes)
	}
}

func TestRunsThatFollowEachOtherTravelAsOne(t *testing.T) {
	t.Parallel()
	traced := run(1, 4, 1, 10)
	traced.TraceContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	other := run(1, 5, 1, 10)
	other.MessageType = "other"
	runs := []transportstore.Run{run(1, 0, 2, 10), run(1, 2, 2, 10), traced, other, run(1, 6, 1, 8000), run(1, 7, 1, 10)}
	w := newWindow()
	w.add(runs)
	pieces := w.compose(100, 1<<20, time.Now())
	var firsts []int64
	messages := 0
	for _, p := range pieces {
		firsts = append(firsts, p.run.FirstSequence)
		messages += len(p.run.Bodies)
	}
	if len(pieces) != 5 || len(pieces[0].run.Bodies) != 4 || messages != 8 {
		t.Errorf("pieces begin at %v, with %d messages", firsts, messages)
	}
	if len(runs[0].Bodies) != 2 {
		t.Error("merging has changed the run itself")
	}
}

func TestWhatIsExpectedAgainIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{run(1, 0, 2, 5000), run(1, 2, 2, 5000), run(1, 4, 2, 5000)})
	pieces := w.compose(100, 1<<20, time.Now())
	acknowledged, _ := w.answer(pieces, []transportstore.Result{
		accepted(2), {Outcome: transportstore.Expected, Next: 2}, {Outcome: transportstore.Expected, Next: 2},
	}, time.Now())
	if len(acknowledged) == 0 || acknowledged[0].Result.Next != 2 {
		t.Errorf("the database gets %+v", acknowledged)
	}
	w.recall(time.Now().Add(time.Hour))
	if again := w.compose(100, 1<<20, time.Now()); len(again) != 2 || again[0].run.FirstSequence != 2 {
		t.Errorf("it goes on with %+v", again)
	}
}

func TestOneThatExpectsWhatIsGoneIsLeftToTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{run(1, 7, 1, 10)})
	acknowledged, _ := w.answer(w.compose(100, 1<<20, time.Now()), []transportstore.Result{{Outcome: transportstore.Expected, Next: 3}}, time.Now())
	if len(acknowledged) != 1 || !acknowledged[0].IsAlone || acknowledged[0].Result.Next != 3 || len(w.conversations) != 0 || len(w.left) != 1 {
		t.Errorf("acknowledged %+v, %d conversations", acknowledged, len(w.conversations))
	}
}

func TestOneThatIsBusyComesAgainSoonAndKeepsNoOther(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{run(1, 0, 1, 10), run(2, 0, 1, 10)})
	now := time.Now()
	acknowledged, _ := w.answer(w.compose(100, 1<<20, time.Now()), []transportstore.Result{{Outcome: transportstore.Held}, accepted(1)}, now)
	if len(acknowledged) != 1 || acknowledged[0].EndpointID != 2 {
		t.Errorf("acknowledged %+v", acknowledged)
	}
	due := w.recall(now)
	if due.IsZero() || len(w.compose(100, 1<<20, time.Now())) != 0 {
		t.Error("it does not wait")
	}
	w.recall(due)
	if again := w.compose(100, 1<<20, time.Now()); len(again) != 1 || again[0].run.EndpointID != 1 {
		t.Errorf("then %+v", again)
	}
}

func TestALargeMessageKeepsItsPlaceAndGoesAlone(t *testing.T) {
	t.Parallel()
	w := newWindow()
	large := transportstore.Run{EndpointID: 1, FirstSequence: 1, MessageType: "DEFAULT", Size: 1 << 20}
	w.add([]transportstore.Run{run(1, 0, 1, 10), large, run(1, 2, 1, 10), run(2, 0, 1, 10)})
	if pieces := w.compose(100, 1<<20, time.Now()); len(pieces) != 2 {
		t.Errorf("%d pieces go before it", len(pieces))
	} else {
		w.answer(pieces, []transportstore.Result{accepted(1), accepted(1)}, time.Now())
	}
	if behind := w.compose(100, 1<<20, time.Now()); len(behind) != 0 {
		t.Errorf("%+v overtakes it", behind)
	}
	big, found := w.composeLarge(time.Now())
	if !found || big.run.FirstSequence != 1 {
		t.Fatalf("%+v", big)
	}
	w.answer([]piece{big}, []transportstore.Result{accepted(2)}, time.Now())
	if behind := w.compose(100, 1<<20, time.Now()); len(behind) != 1 || behind[0].run.FirstSequence != 2 {
		t.Errorf("behind it comes %+v", behind)
	}
}

// A conversation that fills several runs of a batch is acknowledged from the first of them on: what stands in transit before the last
// one would stay there otherwise.
func TestLastAnswerStandsForAllRunsOfItsConversation(t *testing.T) {
	t.Parallel()
	w := newWindow()
	w.add([]transportstore.Run{run(1, 5, 1, mergedBytesMax), run(1, 6, 1, mergedBytesMax), run(1, 7, 1, mergedBytesMax)})
	pieces := w.compose(100, 1<<20, time.Now())
	if len(pieces) != 3 {
		t.Fatalf("%d runs travel, want 3", len(pieces))
	}
	acknowledged, _ := w.answer(pieces, []transportstore.Result{accepted(6), accepted(7), accepted(8)}, time.Now())
	if len(acknowledged) != 1 || acknowledged[0].FirstSequence != 5 || acknowledged[0].Result.Next != 8 {
		t.Errorf("the database gets %+v", acknowledged)
	}
	if w.rows != 0 || len(w.conversations) != 0 {
		t.Errorf("%d rows are still in the window", w.rows)
	}
}

// Only answers without progress in a row put a conversation off: one that gets further begins to count anew.
func TestAConversationThatGetsFurtherIsNotPutOff(t *testing.T) {
	t.Parallel()
	w := newWindow()
	for n := range int64(4) {
		w.add([]transportstore.Run{run(1, n, 1, 5000)})
	}
	expects := func(next int64) {
		t.Helper()
		pieces := w.compose(100, 1<<20, time.Now())
		if len(pieces) == 0 {
			t.Fatalf("nothing is transmitted any more before %d", next)
		}
		results := make([]transportstore.Result, len(pieces))
		for i := range results {
			results[i] = transportstore.Result{Outcome: transportstore.Expected, Next: next}
		}
		w.answer(pieces, results, time.Now())
		w.arrive(pieces, false, time.Now())
		w.recall(time.Now().Add(time.Hour))
	}
	for next := range int64(3) {
		// A long link loses the first of a batch twice, and then lets it pass.
		for range retriesMax - 1 {
			expects(next)
		}
		expects(next + 1)
	}
	if len(w.left) > 0 {
		t.Errorf("it is left to the database: %v", w.left)
	}
}
