package transport_test

import (
	"slices"
	"testing"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// takeAt takes what there is for an address, as the worker of a daemon that has long read what was in transit.
func (s *side) takeAt(address string) (runs []transportstore.Run) {
	s.Helper()
	destinations, err := transportstore.ReadDestinations(s.Context(), s.db)
	s.noError(err)
	for _, d := range destinations {
		if d.Address == address {
			runs, err = transportstore.TakeRuns(s.Context(), s.db, s.term, d.ID, 1000, 1<<20)
			s.noError(err)
		}
	}
	return runs
}

// textsOf gives the bodies of runs.
func textsOf(runs []transportstore.Run) (texts []string) {
	for _, run := range runs {
		for _, body := range run.Bodies {
			texts = append(texts, string(body))
		}
	}
	return texts
}

// Between the two the conversation has no destination, and nothing on a lane that would show it.
func TestWhatWasInTransitGoesOnWhenItsRouteWasDroppedAndMadeAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, address    string
		isParked, hasEnd bool
	}{
		{"elsewhere", "tcp://new:4022", false, false},
		{"elsewhere, though it was put aside", "tcp://new:4022", true, false},
		{"elsewhere, with its end", "tcp://new:4022", false, true},
		{"at the same address", "tcp://old:4022", false, false},
		{"at the same address, though it was put aside", "tcp://old:4022", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asker, _ := newSides(t)
			asker.CreateRoute("far", "tcp://old:4022", farService)
			handle := asker.dialogWith(farService)
			want := []string{"1", "2"}
			asker.Send(handle, request, "1")
			asker.Send(handle, request, "2")
			if c.hasEnd {
				asker.End(handle)
				want = append(want, "")
			}
			runs := asker.takeAt("tcp://old:4022")
			if c.isParked {
				held := make([]transportstore.Result, len(runs))
				for i := range held {
					held[i] = transportstore.Result{Outcome: transportstore.Held, ErrorNumber: 11219, Description: "the queue is disabled"}
				}
				asker.acknowledge(runs, held)
			}
			asker.Exec("select parley.drop_route('far')")
			asker.CreateRoute("far", c.address, farService)
			if got := textsOf(asker.takeAt(c.address)); !slices.Equal(got, want) {
				t.Errorf("took %q, want %q", got, want)
			}
			if c.address != "tcp://old:4022" {
				if got := textsOf(asker.takeAt("tcp://old:4022")); len(got) > 0 {
					t.Errorf("at the old address are %q", got)
				}
			}
		})
	}
}

// The answer was on its way when the route was altered.
func TestAnAnswerOfTheOldAddressDoesNotStopTheRestAtTheNewOne(t *testing.T) {
	t.Parallel()
	asker, _ := newSides(t)
	asker.CreateRoute("far", "tcp://old:4022", farService)
	handle := asker.dialogWith(farService)
	asker.Send(handle, request, "1")
	asker.Send(handle, request, "2")
	runs := asker.takeAt("tcp://old:4022")
	if len(runs) != 2 {
		t.Fatalf("took %v", runs)
	}
	asker.Exec("select parley.alter_route('far', 'tcp://new:4022')")
	asker.acknowledge(runs[:1], []transportstore.Result{{Outcome: transportstore.Accepted, Next: 1}})
	if got := textsOf(asker.takeAt("tcp://new:4022")); !slices.Equal(got, []string{"2"}) {
		t.Errorf("took %q, want the second message", got)
	}
}

// Where LOCAL comes first, the daemon finds the way of each send; that must not bring what was refused before its time.
func TestASendDoesNotShortenTheTimeForWhichAConversationIsParked(t *testing.T) {
	t.Parallel()
	asker, _ := newSides(t)
	asker.CreateRoute("hub", "tcp://hub:4022", "")
	handle := asker.dialogWith(farService)
	asker.Send(handle, request, "1")
	asker.bindUnresolved()
	runs := asker.takeAt("tcp://hub:4022")
	asker.acknowledge(runs, []transportstore.Result{{Outcome: transportstore.Held, ErrorNumber: 9749, Description: "no memory"}})
	asker.Exec("update parley._p_parked set due_at = clock_timestamp() + interval '1 hour'")
	asker.Send(handle, request, "2")
	asker.bindUnresolved()
	if got := textsOf(asker.takeAt("tcp://hub:4022")); len(got) > 0 {
		t.Errorf("took %q before its time", got)
	}
	asker.Exec("update parley._p_parked set due_at = clock_timestamp()")
	asker.bindUnresolved()
	got := textsOf(asker.takeAt("tcp://hub:4022"))
	asker.bindUnresolved()
	got = append(got, textsOf(asker.takeAt("tcp://hub:4022"))...)
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("took %q, want both in order", got)
	}
}
