package transport_test

import (
	"slices"
	"testing"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const farService = "//far/Service"

func (s *side) dialogWith(service string) string {
	s.Helper()
	return one[string](s, "select parley.begin_dialog('//test/Asker', $1, '//test/Work', allow_unknown_target => true)::text", service)
}

// number gives numbers to what waits, for the one destination that there is.
func (s *side) number() {
	s.Helper()
	destinations, err := transportstore.ReadDestinations(s.Context(), s.db)
	s.noError(err)
	if len(destinations) != 1 {
		s.Fatalf("the destinations are %v", destinations)
	}
	_, err = transportstore.TakeRuns(s.Context(), s.db, s.term, destinations[0].ID, 1000, 1<<20)
	s.noError(err)
}

// takeOnly takes what there is for an address, the only one that anything is for.
func (s *side) takeOnly(address string) []transportstore.Run {
	s.Helper()
	destinations, err := transportstore.ReadDestinations(s.Context(), s.db)
	s.noError(err)
	if len(destinations) != 1 || destinations[0].Address != address {
		s.Fatalf("the destinations are %v", destinations)
	}
	return s.takeAt(address)
}

// bindUnresolved takes conversations whose route is LOCAL where their routes lead otherwise, and returns how many there were.
func (s *side) bindUnresolved() int {
	s.Helper()
	unresolved, err := transportstore.ReadUnresolved(s.Context(), s.db, 100)
	s.noError(err)
	for _, one := range unresolved {
		s.noError(transportstore.BindConversations(s.Context(), s.db, s.term, []int64{one.EndpointID}, "", ""))
	}
	return len(unresolved)
}

// A message that has its number keeps it, and goes first.
func TestAlteredRouteTakesAConversationElsewhereInOrder(t *testing.T) {
	t.Parallel()
	asker, _ := newSides(t)
	asker.CreateRoute("far", "tcp://old:4022", farService)
	asker.CreateRoute("other", "tcp://old:4022", "//other/Service")
	asker.Send(asker.dialogWith("//other/Service"), request, "stays")
	handle := asker.dialogWith(farService)
	for _, text := range []string{"1", "2"} {
		asker.Send(handle, request, text)
	}
	asker.number()
	asker.Send(handle, request, "3")
	asker.Exec("select parley.alter_route('far', 'tcp://new:4022')")
	asker.Send(handle, request, "4")
	equal(asker, 0, "select count(*)::integer from parley._p_transmission")
	asker.RequireLanes("tcp://new:4022: 1 2 3 4", "tcp://old:4022: stays")
}

// Once a message has its number for another database, no other far side may be made for the conversation.
func TestConversationThatHasBegunElsewhereDoesNotComeBack(t *testing.T) {
	t.Parallel()
	asker, _ := newSides(t)
	asker.CreateRoute("far", "tcp://far:4022", farService)
	handle := asker.dialogWith(farService)
	asker.Send(handle, request, "1")
	asker.number()
	asker.Exec("select parley.create_service('//far/Service', 'Asking', array['//test/Work'])")
	asker.Exec("select parley.drop_route('far')")
	asker.Send(handle, request, "2")
	equal(asker, `The conversation has begun with another database, and now there is no route to its service "//far/Service" but here.`,
		"select distinct t.transmission_status from parley._p_transmission as t")
	asker.CreateRoute("far", "tcp://far:4023", farService)
	asker.RequireLanes("tcp://far:4023: 1 2")
}

// refused gives an asker whose dialog with a service no other database has any more was parked, with two messages that have their
// numbers.
func refused(t *testing.T) (asker, answerer *side, handle string, runs []transportstore.Run) {
	t.Helper()
	asker, answerer = newSides(t)
	earlier := asker.dialog()
	asker.Send(earlier, request, "earlier")
	asker.exchange(answerer)
	answerer.Exec("select parley.drop_service('//test/Answerer')")
	answerer.exchange(asker)
	asker.receivedTexts("Asking")
	asker.End(earlier)
	asker.exchange(answerer)
	asker.Exec("select parley.create_queue('Here')")
	handle = asker.dialog()
	asker.Send(handle, request, "1")
	asker.Send(handle, request, "2")
	runs = asker.take(answerer)
	asker.acknowledge(runs, answerer.deliver(asker.speaker(), runs...))
	equal(asker, true, "select transmission_status like '%does not exist%' from parley.transmission_queue limit 1")
	return asker, answerer, handle, runs
}

const createHere = "select parley.create_service('//test/Answerer', 'Here', array['//test/Work'])"

// createServiceBehindTheScenes makes the service without classifying again what waits for it.
func (s *side) createServiceBehindTheScenes() {
	s.Helper()
	s.Exec("select parley.create_service('//test/Other', 'Here', array['//test/Work'])")
	s.Exec("update parley._p_service set name = '//test/Answerer' where name = '//test/Other'")
}

// The service has moved into the database of the sender. Messages that its old database did not take go to the new one, at once and in
// order.
func TestConversationComesBackWhenItsTargetTookNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		then func(asker *side, handle string)
		want []string
	}{
		{"the service is created", func(asker *side, handle string) {
			asker.Send(handle, request, "3")
			asker.Exec(createHere)
		}, []string{"1", "2", "3"}},
		{"it has ended before", func(asker *side, handle string) {
			asker.End(handle)
			asker.Exec(createHere)
		}, []string{"1", "2", "EndDialog"}},
		{"its time has come", func(asker *side, _ string) {
			asker.createServiceBehindTheScenes()
			asker.Exec("update parley._p_parked set due_at = clock_timestamp()")
			asker.takeAt(one[string](asker, "select d.address from parley._p_destination as d join parley._p_parked as p using (destination_id)"))
		}, []string{"1", "2"}},
		{"it sends", func(asker *side, handle string) {
			asker.createServiceBehindTheScenes()
			asker.Send(handle, request, "3")
		}, []string{"1", "2", "3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asker, answerer, handle, runs := refused(t)
			c.then(asker, handle)
			if got := asker.receivedTexts("Here"); !slices.Equal(got, c.want) {
				t.Errorf("received %q, want %q", got, c.want)
			}
			for _, table := range []string{"_p_transit", "_p_send_progress", "_p_parked", "_p_transmission"} {
				equal(asker, 0, "select count(*)::integer from parley."+table)
			}
			// Answers from elsewhere are no answers any more.
			for _, late := range []transportstore.Result{
				{Outcome: transportstore.Accepted, Next: 2, Broker: answerer.guid, Epoch: answerer.speaker().Epoch}, {Outcome: transportstore.Refused, ErrorNumber: 8494, Description: "late"},
			} {
				asker.acknowledge(runs, slices.Repeat([]transportstore.Result{late}, len(runs)))
			}
			equal(asker, 0, "select count(*)::integer from parley.conversation_endpoints where state = 'ER'")
			target := one[string](asker, "select conversation_handle::text from parley.conversation_endpoints where is_initiator = 0 and state <> 'CD'")
			asker.End(target)
			asker.receivedTexts("Asking")
			asker.Exec("select parley.end_conversation(conversation_handle) from parley.conversation_endpoints where state = 'DI'")
			asker.requireForgotten()
		})
	}
}

// It is being tried once more: only when that is refused too may it have its far side here.
func TestConversationThatIsUnderWayAgainDoesNotComeBack(t *testing.T) {
	t.Parallel()
	asker, answerer, handle, _ := refused(t)
	asker.Exec("update parley._p_parked set due_at = clock_timestamp()")
	again := asker.take(answerer)
	if len(again) == 0 {
		t.Fatal("it is not tried again")
	}
	asker.Exec(createHere)
	asker.Send(handle, request, "3")
	if got := asker.receivedTexts("Here"); got != nil {
		t.Errorf("received %q", got)
	}
	asker.acknowledge(again, answerer.deliver(asker.speaker(), again...))
	asker.Exec("select parley.fire_timers()")
	if got := asker.receivedTexts("Here"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("received %q", got)
	}
}

// LOCAL comes first where any database of the daemon has the service; only then the default forwarder gets it (spec 6.3).
func TestForwarderGetsWhatNoDatabaseOfTheDaemonHas(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	asker.CreateRoute("hub", "tcp://hub:4022", "")
	asker.Send(asker.dialogWith(farService), request, "away")
	asker.Send(asker.dialogWith("//test/Answerer"), request, "next door")
	asker.RequireLanes()
	unresolved, err := transportstore.ReadUnresolved(t.Context(), asker.db, 100)
	if err != nil || len(unresolved) != 2 {
		t.Fatalf("unresolved are %v, %v", unresolved, err)
	}
	for _, u := range unresolved {
		address := ""
		if u.ToService == "//test/Answerer" {
			address = "broker:" + answerer.guid.String()
		}
		if err := transportstore.BindConversations(t.Context(), asker.db, asker.term, []int64{u.EndpointID}, address, "nobody has it"); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"broker:" + answerer.guid.String() + ": next door", "tcp://hub:4022: away"}
	asker.RequireLanes(want...)
	// They stay where they are when routes change that do not concern them.
	asker.CreateRoute("other", "tcp://other:4022", "//other/Service")
	asker.CreateRoute("hub 2", "TCP://Hub:4022/", "")
	asker.RequireLanes(want...)
	equal(asker, 0, "select count(*)::integer from parley._p_transmission")
}

func TestDatabaseThatMovesToAnotherServerIsFollowed(t *testing.T) {
	t.Parallel()
	asker, answerer := newSides(t)
	asker.Send(asker.dialogWith("//test/Answerer"), request, "1")
	asker.resolve(answerer)
	asker.RequireLanes("broker:" + answerer.guid.String() + ": 1")
	asker.CreateRoute("moved", "tcp://new:4022", "//test/Answerer")
	asker.RequireLanes("tcp://new:4022: 1")
}

// The daemon has read what was in transit to an address when it began, and goes by what is on the lane from then on.
func TestWhatWasInTransitIsTakenAgainWhereItsRouteLeadsNow(t *testing.T) {
	t.Parallel()
	asker, _ := newSides(t)
	asker.CreateRoute("far", "tcp://old:4022", farService)
	handle := asker.dialogWith(farService)
	for _, text := range []string{"1", "2"} {
		asker.Send(handle, request, text)
	}
	asker.number()
	asker.Send(handle, request, "3")
	asker.Exec("select parley.alter_route('far', 'tcp://new:4022')")
	if texts := textsOf(asker.takeOnly("tcp://new:4022")); !slices.Equal(texts, []string{"1", "2", "3"}) {
		t.Errorf("took %v", texts)
	}
}

// A parked conversation finds its way anew, and as long as LOCAL comes first that takes the daemon, which is to be notified although all
// that waits has its number.
func TestWhatWasParkedInTransitIsTriedAgainByTheDefaultForwarder(t *testing.T) {
	t.Parallel()
	asker, _ := newSides(t)
	asker.CreateRoute("hub", "tcp://hub:4022", "")
	find := func() {
		t.Helper()
		if unresolved := asker.bindUnresolved(); unresolved != 1 {
			t.Fatalf("%d conversations are unresolved", unresolved)
		}
	}
	asker.Send(asker.dialogWith(farService), request, "1")
	find()
	refuse := func() {
		t.Helper()
		runs := asker.takeOnly("tcp://hub:4022")
		if len(runs) != 1 || len(runs[0].Bodies) != 1 {
			t.Fatalf("took %v", runs)
		}
		asker.acknowledge(runs, []transportstore.Result{{Outcome: transportstore.Held, ErrorNumber: 9749, Description: "no memory"}})
	}
	refuse()
	equal(asker, "no memory", "select transmission_status from parley.transmission_queue")
	asker.Exec("update parley._p_parked set due_at = clock_timestamp()")
	// It is tried before its way is found, and refused again.
	refuse()
	find()
	refuse()
}
