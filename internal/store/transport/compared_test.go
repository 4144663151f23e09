package transport_test

import (
	"slices"
	"testing"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

// Keeps T5: by the time a probe comes again the numbers in it are long past.
func TestProbeThatComesAgainBreaksNothing(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, target := talking(t)
	answerer.resolve(asker)
	asker.Exec("select parley._p_begin_epoch()")
	probes := asker.probes()
	speaker := asker.speaker()
	asker.acknowledge(probes, answerer.deliver(speaker, probes...))
	for range 3 {
		asker.Send(initiator, request, "more")
		answerer.Send(target, reply, "more")
		asker.exchange(answerer)
	}
	if results := answerer.deliver(speaker, probes...); len(results) != 1 || results[0].Outcome != transportstore.Accepted {
		t.Errorf("got %+v", results)
	}
	asker.Send(initiator, request, "last")
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got[len(got)-2:], []string{"more", "last"}) {
		t.Errorf("received %v", got)
	}
}

// Keeps F2: what arrived after the question was asked would make the question report a loss.
func TestWhatIsComparedDoesNotMoveMeanwhile(t *testing.T) {
	t.Parallel()
	asker, answerer, _, target := talking(t)
	answerer.Send(target, reply, "on its way")
	runs := answerer.take(asker)
	asker.Exec("select parley._p_begin_epoch()")
	probes := asker.probes()
	if results := asker.deliver(answerer.speaker(), runs...); results[0].Outcome != transportstore.Held || results[0].ErrorNumber != 0 {
		t.Errorf("what arrives before the answer got %+v", results)
	}
	results := answerer.deliver(asker.speaker(), probes...)
	if len(results) != 1 || results[0].Outcome != transportstore.Accepted {
		t.Fatalf("got %+v", results)
	}
	asker.acknowledge(probes, results)
	if results := asker.deliver(answerer.speaker(), runs...); results[0].Outcome != transportstore.Accepted {
		t.Errorf("what arrives after the answer got %+v", results)
	}
	if got := asker.receivedTexts("Asking"); !slices.Contains(got, "on its way") {
		t.Errorf("received %v", got)
	}
}

// Keeps F2: a database that has forgotten a conversation altogether cannot ask about it.
func TestANewEpochIsAnsweredByAskingWhetherConversationsAreKnown(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, target := talking(t)
	answerer.Send(target, reply, "known")
	asker.exchange(answerer)
	lost := one[string](asker, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1", initiator)
	asker.Exec("select parley._p_forget_far_side(e.endpoint_id) from parley._p_endpoint as e")
	asker.Exec("delete from parley._p_endpoint")
	asker.Exec("select parley._p_begin_epoch()")
	// Another conversation makes the epoch known to the answerer.
	other := asker.dialog()
	asker.Send(other, request, "other")
	answerer.deliver(asker.speaker(), asker.take(answerer)...)
	probes := answerer.probes()
	if len(probes) != 1 || probes[0].ConversationID.String() != lost {
		t.Fatalf("the answerer asks about %+v, want %s", probes, lost)
	}
	answerer.ask(asker)
	if got := answerer.receivedTexts("Answering"); !slices.Contains(got, "Error") {
		t.Errorf("the answerer received %v", got)
	}
	equal(answerer, "ER", "select state from parley.conversation_endpoints where conversation_handle = $1", target)
}

// Keeps T5, F2: the answer that reports it may be lost, and what is asked then is answered otherwise.
func TestRefusalWhoseAnswerWasLostIsReportedAllTheSame(t *testing.T) {
	t.Parallel()
	t.Run("LostHistory", func(t *testing.T) {
		t.Parallel()
		asker, answerer, initiator, target := talking(t)
		asker.Send(initiator, request, "second")
		answerer.Send(target, reply, "second")
		asker.exchange(answerer)
		answerer.Exec("update parley._p_accept_progress set sequence = 1")
		answerer.Exec("select parley._p_doubt(null)")
		asker.Exec("select parley._p_begin_epoch()")
		if results := answerer.deliver(asker.speaker(), asker.probes()...); results[0].Outcome != transportstore.Refused {
			t.Fatalf("got %+v", results)
		}
		asker.ask(answerer)
		answerer.ask(asker)
		asker.exchange(answerer)
		if got := asker.receivedTexts("Asking"); !slices.Contains(got, "Error") {
			t.Errorf("the asker received %v", got)
		}
		asker.End(initiator)
		answerer.End(target)
		asker.exchange(answerer)
		asker.requireForgotten()
		answerer.requireForgotten()
	})
	t.Run("BadMessage", func(t *testing.T) {
		t.Parallel()
		asker, answerer, initiator, _ := talking(t)
		answerer.Exec("select parley.alter_message_type('//test/Request', 'WELL_FORMED_XML')")
		asker.Send(initiator, request, "<no XML")
		runs := asker.take(answerer)
		if results := answerer.deliver(asker.speaker(), runs...); results[0].Outcome != transportstore.Refused {
			t.Fatalf("got %+v", results)
		}
		asker.acknowledge(runs, answerer.deliver(asker.speaker(), runs...))
		asker.exchange(answerer)
		if got := asker.receivedTexts("Asking"); !slices.Contains(got, "Error") {
			t.Errorf("the asker received %v", got)
		}
	})
}

// Keeps S11: when the last answer has come nothing else ever comes back to a side that has ended.
func TestSideThatHasEndedGoesThoughSomebodyHeldItWhenTheAnswerCame(t *testing.T) {
	t.Parallel()
	asker, answerer, initiator, _ := talking(t)
	asker.End(initiator)
	runs := asker.take(answerer)
	results := answerer.deliver(asker.speaker(), runs...)
	holder, err := asker.db.Begin(t.Context())
	asker.noError(err)
	_, err = holder.Exec(t.Context(), "select from parley._p_endpoint for no key update")
	asker.noError(err)
	asker.acknowledge(runs, results)
	asker.noError(holder.Rollback(t.Context()))
	asker.Exec("select parley.fire_timers()")
	asker.requireForgotten()
}

// Keeps S4: a take whose client was cut off may hold the first messages for a while, and then give them back.
func TestTakeDoesNotPassByWhatAnotherTakeHolds(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	dialog := asker.dialog()
	for _, text := range []string{"first", "second", "third"} {
		asker.Send(dialog, request, text)
	}
	asker.resolve(answerer)
	destinations, err := transportstore.ReadDestinations(t.Context(), asker.db)
	asker.noError(err)
	cutOff, err := asker.db.Begin(t.Context())
	asker.noError(err)
	if held, err := transportstore.TakeRuns(t.Context(), cutOff, asker.term, destinations[0].ID, 1, 1<<20); err != nil || len(held) != 1 {
		t.Fatalf("took %+v, %v", held, err)
	}
	var taken []transportstore.Run
	taking := make(chan error, 1)
	go func() {
		var err error
		taken, err = transportstore.TakeRuns(t.Context(), asker.db, asker.term, destinations[0].ID, 1000, 1<<20)
		taking <- err
	}()
	const waiting = "select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
	for len(taking) == 0 && one[int](asker, waiting) == 0 {
		continue
	}
	asker.noError(cutOff.Rollback(t.Context()))
	asker.noError(parleytest.Receive(asker, taking, "the end of the transaction that takes"))
	asker.acknowledge(taken, answerer.deliver(asker.speaker(), taken...))
	asker.exchange(answerer)
	if got := answerer.receivedTexts("Answering"); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("received %v", got)
	}
}
