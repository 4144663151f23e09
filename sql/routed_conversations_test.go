package sql_test

import (
	"fmt"
	"slices"
	"testing"
)

// lanes reports what waits for, or is on its way to, each destination: "address: bodies in order".
func (s session) lanes() []string {
	s.Helper()
	return values[string](s, `
		select d.address || ': ' || string_agg(convert_from(f.body, 'UTF8'), ' ' order by m.is_waiting, m.n, i)
		from parley._p_destination as d
		join (
			select m.lane / 16, true, m.position, coalesce(m.frame, array[m.body]) from parley._p_message as m
			union all
			select t.destination_id, false, t.first_sequence, coalesce(t.frame, array[t.body]) from parley._p_transit as t
		) as m (destination_id, is_waiting, n, frame) using (destination_id)
		cross join lateral unnest(m.frame) with ordinality as f (body, i)
		group by d.address
		order by d.address`)
}

func (s session) requireLanes(want ...string) {
	s.Helper()
	if got := s.lanes(); !slices.Equal(got, want) {
		s.Errorf("on their way are %q, want %q", got, want)
	}
}

// delayed gives the texts with which messages wait, each once.
func (s session) requireDelayed(want ...string) {
	s.Helper()
	got := values[string](s, "select distinct t.transmission_status from parley._p_transmission as t order by 1")
	if !slices.Equal(got, want) {
		s.Errorf("messages wait with %q, want %q", got, want)
	}
}

func (s session) dialogWithFar() string {
	s.Helper()
	return value[string](s, "select parley.begin_dialog('//test/Asker', '//far/Service', '//test/Work', allow_unknown_target => true)")
}

const missingFar = `The target service "//far/Service" does not exist in this database, and there is no route to it.`

func TestRouteTakesAConversationToItsAddress(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.createRoute("far", "TCP://Far:4022", far)
	b.send(b.dialogWithFar(), request, "hello")
	b.requireLanes("tcp://far:4022: hello")
	b.requireDelayed()
}

func TestCreatedRouteTakesWhatHasWaited(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialogWithFar()
	for _, text := range []string{"1", "2", "3"} {
		b.send(handle, request, text)
	}
	b.requireDelayed(missingFar)
	b.createRoute("other", "tcp://other:4022", "//other/Service")
	b.requireDelayed(missingFar)
	b.createRoute("far", "tcp://far:4022", far)
	b.send(handle, request, "4")
	b.requireLanes("tcp://far:4022: 1 2 3 4")
	b.requireDelayed()
}

func TestConversationWaitsWhenItsRouteIsDropped(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.createRoute("far", "tcp://far:4022", far)
	handle := b.dialogWithFar()
	b.send(handle, request, "1")
	b.exec("select parley.drop_route('far')")
	b.requireLanes()
	b.requireDelayed(missingFar)
	b.send(handle, request, "2")
	b.createRoute("again", "tcp://far:4022", far)
	b.requireLanes("tcp://far:4022: 1 2")
}

// It never left, so it may as well have its far side here.
func TestConversationComesBackToWhatIsHere(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		last func(b *broker, handle string)
		want []string
	}{
		{"when a service is created", func(b *broker, _ string) {
			b.exec("select parley.create_service('//far/Service', 'Answering', array['//test/Work'])")
		}, []string{"1", "2"}},
		{"when it sends", func(b *broker, handle string) {
			b.exec("update parley._p_service set name = '//far/Service' where name = '//test/Answerer'")
			b.send(handle, request, "3")
		}, []string{"1", "2", "3"}},
		{"when it ends", func(b *broker, handle string) {
			b.exec("update parley._p_service set name = '//far/Service' where name = '//test/Answerer'")
			b.end(handle)
		}, []string{"1", "2", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.createRoute("far", "tcp://far:4022", far)
			handle := b.dialogWithFar()
			b.send(handle, request, "1")
			b.exec("select parley.drop_route('far')")
			b.send(handle, request, "2")
			test.last(b, handle)
			if got := b.bodies("Answering"); !slices.Equal(got, test.want) {
				t.Errorf("received %q, want %q", got, test.want)
			}
			b.requireLanes()
			b.requireDelayed()
		})
	}
}

// A route that is LOCAL and names another instance is for that instance, whatever this database has.
func TestLocalRouteToAnotherInstanceIsNotServedHere(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.createRoutes(route{address: "LOCAL", service: here, instance: other})
	b.send(b.dialog(), request, "x")
	if got := b.bodies("Answering"); len(got) > 0 {
		t.Errorf("received %q", got)
	}
	equal(b.session, other, "select to_broker::text from parley._p_unresolved(100)")
}

func TestMessagesWaitForTheBrokerConfigurationService(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	handle := b.dialogWithFar()
	b.send(handle, request, "1")
	b.requireDelayed(asked)
	configuring := b.request(missingRoute)
	b.send(handle, request, "2")
	tx := b.begin()
	tx.exec("select parley.create_route('found', 'tcp://far:4022', $1, lifetime => 300)", far)
	tx.end(configuring)
	tx.commit()
	// The way is known; whether the dialog is to be sealed is asked next.
	b.requireLanes()
	b.requireDelayed(askedForBinding)
	b.end(b.bindingRequest())
	b.exec("select parley.fire_timers()")
	b.requireLanes("tcp://far:4022: 1 2")
	b.requireDelayed()
}

// The service itself may be elsewhere.
func TestBrokerConfigurationServiceMayBeFarAway(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.createRoute("configuration", "tcp://directory:4022", configurationService)
	b.send(b.dialogWithFar(), request, "1")
	b.requireLanes(fmt.Sprintf("tcp://directory:4022: %s", missingRoute))
	b.requireDelayed(asked)
}
