package sql_test

import (
	"context"
	"fmt"
	"testing"
)

const (
	askedForBinding = `The broker configuration service was asked for a remote service binding for the service "//far/Service",` +
		` and has not answered yet.`
	missingBinding = `<MissingRemoteServiceBinding xmlns="` + notices + `/MissingRemoteServiceBinding">` +
		`<SERVICE_NAME>//far/Service</SERVICE_NAME></MissingRemoteServiceBinding>`
)

// newConfiguredWithRoute returns a fixture with a broker configuration service, and a route to //far/Service on another server.
func newConfiguredWithRoute(t *testing.T) *broker {
	t.Helper()
	b := newConfigured(t)
	b.createRoute("far", "tcp://far:4022", far)
	return b
}

// bindingRequest takes the one request that the broker configuration service has got, which is for a binding, and gives its handle.
func (s session) bindingRequest() string {
	s.Helper()
	got := s.receive("Configuring")
	if len(got) != 1 || got[0].MessageTypeName != notices+"/MissingRemoteServiceBinding" || string(got[0].MessageBody) != missingBinding ||
		got[0].ServiceContractName != notices {
		s.Fatalf("the broker configuration service received %+v", got)
	}
	return got[0].ConversationHandle
}

// requireNoRequest requires that nobody asks the broker configuration service for anything.
func (s session) requireNoRequest() {
	s.Helper()
	for _, m := range s.receive("Configuring") {
		if m.MessageTypeName != errorMessage {
			s.Errorf("asked: %+v", m)
		}
	}
}

func (s session) isBound(handle string) bool {
	s.Helper()
	return value[bool](s, "select remote_service_binding_id is not null from parley._p_endpoint where conversation_handle = $1::uuid", handle)
}

func TestMissingBindingIsAskedForOnceAndWhatWaitsIsSealed(t *testing.T) {
	t.Parallel()
	for _, encryption := range []bool{true, false} {
		t.Run(fmt.Sprintf("encryption %t", encryption), func(t *testing.T) {
			t.Parallel()
			b := newConfiguredWithRoute(t)
			role := b.role("far")
			begin := func() string {
				return value[string](b.session, "select parley.begin_dialog('//test/Asker', '//far/Service', '//test/Work', encryption => $1)", encryption)
			}
			first, second := begin(), begin()
			b.send(first, request, "1")
			b.send(second, request, "a")
			b.send(first, request, "2")
			b.requireLanes()
			b.requireDelayed(askedForBinding)
			handle := b.bindingRequest()
			b.requireNoRequest()

			tx := b.begin()
			tx.exec("select parley.create_remote_service_binding('found', '//far/Service', $1, true)", role)
			tx.end(handle)
			tx.commit()
			b.requireDelayed()
			b.requireLanes("tcp://far:4022: 1 2 a")
			for _, dialog := range []string{first, second} {
				equal(b.session, "anonymous", `
					select p.mode from parley._p_endpoint as e cross join lateral parley._p_plan_dialogs(array[e.endpoint_id], true) as p
					where e.conversation_handle = $1::uuid`, dialog)
				if !b.isBound(dialog) {
					t.Errorf("the daemon is not notified that it is bound")
				}
			}
			b.exec("select parley.fire_timers()")
			b.send(begin(), request, "b")
			b.requireNoRequest()
			b.exec("select parley.drop_remote_service_binding('found')")
		})
	}
}

// Where there is none dialogs go on as they would without dynamic routing, and are not held up by the same question for a while.
func TestAnswerWithoutABindingLetsDialogsGoOn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		answer func(s session, handle string)
		pause  string
	}{
		{"an end", session.end, "00:01:00"},
		{"an error", func(s session, handle string) { s.endWithError(handle, 1, "unknown") }, "00:10:00"},
		{"its lifetime", func(s session, _ string) {
			s.exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'lifetime'")
			s.exec("select parley._p_fire_alarms(null, 100)")
		}, "00:10:00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newConfiguredWithRoute(t)
			handle := b.dialogWithFar()
			b.send(handle, request, "1")
			test.answer(b.session, b.bindingRequest())
			b.exec("select parley.fire_timers()")
			b.requireDelayed()
			b.requireLanes("tcp://far:4022: 1")
			equal(b.session, test.pause, "select pause::text from parley._p_configuration_request")
			equal(b.session, 0, "select count(*) from parley.conversation_endpoints where service_id < 65536")

			// A binding that comes now is too late for what may have left.
			role := b.role("far")
			b.exec("select parley.create_remote_service_binding('late', '//far/Service', $1, true)", role)
			b.send(handle, request, "2")
			if b.isBound(handle) {
				t.Error("a dialog under way is sealed all at once")
			}
			b.exec("select parley.drop_remote_service_binding('late')")

			b.send(b.dialogWithFar(), request, "3")
			b.requireDelayed()
			b.requireNoRequest()
			b.exec("update parley._p_configuration_request set answered_at = answered_at - pause - interval '1 second'")
			b.exec("select parley.fire_timers()")
			b.send(b.dialogWithFar(), request, "4")
			b.requireDelayed(askedForBinding)
			b.bindingRequest()
		})
	}
}

func TestBindingIsAskedForOnlyWhereItCouldCount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		setUp func(b *broker)
		lane  string
	}{
		{"no route to the configuration service", func(b *broker) { b.exec("select parley.drop_route('configuration')") }, "tcp://far:4022: 1"},
		{"an expired one", func(b *broker) {
			b.exec("update parley._p_route set expires_at = clock_timestamp() where name = 'configuration'")
		}, "tcp://far:4022: 1"},
		{"another database of the daemon", func(b *broker) {
			b.exec("select parley.alter_route('far', address => 'LOCAL')")
			b.exec("insert into parley._p_neighbour_service (service_name, address) values ('//far/Service', 'broker:' || $1)", other)
		}, "broker:" + other + ": 1"},
		{"a binding that is there", func(b *broker) {
			b.exec("select parley.create_remote_service_binding('b', '//far/Service', $1, true)", b.role("far"))
			b.Cleanup(func() { _, _ = b.pool.Exec(context.Background(), "select parley.drop_remote_service_binding('b')") })
		}, "tcp://far:4022: 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newConfiguredWithRoute(t)
			test.setUp(b)
			b.send(b.dialogWithFar(), request, "1")
			b.requireLanes(test.lane)
			b.requireNoRequest()
		})
	}
}

// The service that is asked is reached without a binding of its own, or asking would never begin.
func TestConfigurationServiceThatIsFarAwayIsAskedForBindings(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.createRoute("configuration", "tcp://directory:4022", configurationService)
	b.createRoute("far", "tcp://far:4022", far)
	b.send(b.dialogWithFar(), request, "1")
	b.requireLanes(fmt.Sprintf("tcp://directory:4022: %s", missingBinding))
	b.requireDelayed(askedForBinding)
}

// The daemon finds routes that SQL does not see: what it binds waits for bindings as well.
func TestConversationThatTheDaemonBindsWaitsForItsBinding(t *testing.T) {
	t.Parallel()
	b := newConfigured(t)
	b.createRoutes(route{address: "LOCAL", service: far}, route{address: "tcp://far:4022", service: far})
	equal(b.session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	b.send(b.dialogWithFar(), request, "1")
	const bind = `select parley._p_bind_conversations(1, array(select u.endpoint_id from parley._p_unresolved(10) as u), '', '')`
	equal(b.session, true, bind)
	b.requireLanes()
	b.requireDelayed(askedForBinding)
	b.end(b.bindingRequest())
	b.exec("select parley.fire_timers()")
	equal(b.session, true, bind)
	b.requireLanes("tcp://far:4022: 1")
}

func TestTwoSessionsThatMissABindingAtOnceWaitForBothAnswers(t *testing.T) {
	t.Parallel()
	b := newConfiguredWithRoute(t)
	first, second := b.begin(), b.begin()
	handles := []string{b.dialogWithFar(), b.dialogWithFar(), b.dialogWithFar()}
	first.send(handles[0], request, "1")
	// It does not wait for the first, and does not leave unsealed either.
	second.exec("set local lock_timeout = '5s'")
	second.send(handles[1], request, "2")
	second.requireDelayed(askedForBinding)
	second.commit()
	b.requireLanes()
	first.commit()
	b.send(handles[2], request, "3")
	b.requireLanes()
	// Neither saw that the other had asked; the third did.
	one, another := b.bindingRequest(), b.bindingRequest()
	b.requireNoRequest()
	equal(b.session, 2, "select count(*) from parley._p_configuration_request")
	b.end(one)
	b.exec("select parley.fire_timers()")
	b.requireLanes()
	b.end(another)
	b.exec("select parley.fire_timers()")
	b.requireLanes("tcp://far:4022: 1 2 3")
}

// Who asks first may fail: nobody relies on a request that is not committed.
func TestBindingIsAskedForThoughWhoAskedFirstRolledBack(t *testing.T) {
	t.Parallel()
	b := newConfiguredWithRoute(t)
	tx := b.begin()
	tx.send(b.dialogWithFar(), request, "1")
	b.send(b.dialogWithFar(), request, "2")
	b.requireDelayed(askedForBinding)
	tx.rollback()
	b.bindingRequest()
	b.requireNoRequest()
	b.requireLanes()
}

// Reading requests gives no right to answer them: a role that may not create bindings, or is not the role that is to stand for the service,
// changes nothing.
func TestReaderOfRequestsNeedsTheRightToCreateBindings(t *testing.T) {
	t.Parallel()
	b := newConfiguredWithRoute(t)
	reader, role := b.role("reader"), b.role("far")
	b.exec("select parley.grant('RECEIVE', 'queue', 'Configuring', $1)", reader)
	defer b.exec("select parley.revoke('RECEIVE', 'queue', 'Configuring', $1)", reader)
	b.send(b.dialogWithFar(), request, "1")
	s := b.as(reader)
	s.bindingRequest()
	const create = "select parley.create_remote_service_binding('found', '//far/Service', $1, true)"
	s.refuses(229, create, role)
	b.exec("select parley.grant('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", reader)
	defer b.exec("select parley.revoke('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", reader)
	s.refuses(229, create, role)
	b.requireLanes()
	b.requireDelayed(askedForBinding)
	b.exec("grant " + quote(role) + " to " + quote(reader))
	s.exec(create, role)
	b.requireLanes("tcp://far:4022: 1")
	b.exec("select parley.drop_remote_service_binding('found')")
}
