package transport_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// newConfiguredWithRoute returns a fixture with a broker configuration service, and a route to //far/Service on another server.
func newConfiguredWithRoute(t *testing.T) *sqltest.Broker {
	t.Helper()
	b := sqltest.NewConfigured(t)
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	return b
}

// requireNoRequest requires that nobody asks the broker configuration service for anything.
func requireNoRequest(s sqltest.Session) {
	s.Helper()
	for _, m := range s.Receive("Configuring") {
		if m.MessageTypeName != sqltest.ErrorMessage {
			s.Errorf("asked: %+v", m)
		}
	}
}

func isBound(s sqltest.Session, handle string) bool {
	s.Helper()
	return sqltest.Value[bool](s, "select remote_service_binding_id is not null from parley._p_endpoint where conversation_handle = $1::uuid", handle)
}

func TestMissingBindingIsAskedForOnceAndWhatWaitsIsSealed(t *testing.T) {
	t.Parallel()
	for _, encryption := range []bool{true, false} {
		t.Run(fmt.Sprintf("encryption %t", encryption), func(t *testing.T) {
			t.Parallel()
			b := newConfiguredWithRoute(t)
			role := b.Role("far")
			begin := func() string {
				return sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//far/Service', '//test/Work', encryption => $1)", encryption)
			}
			first, second := begin(), begin()
			b.Send(first, sqltest.Request, "1")
			b.Send(second, sqltest.Request, "a")
			b.Send(first, sqltest.Request, "2")
			b.RequireLanes()
			b.RequireDelayed(sqltest.AskedForBinding)
			handle := b.BindingRequest()
			requireNoRequest(b.Session)

			tx := b.Begin()
			tx.Exec("select parley.create_remote_service_binding('found', '//far/Service', $1, true)", role)
			tx.End(handle)
			tx.Commit()
			b.RequireDelayed()
			b.RequireLanes("tcp://far:4022: 1 2 a")
			for _, dialog := range []string{first, second} {
				sqltest.Equal(b.Session, "anonymous", `
					select p.mode from parley._p_endpoint as e cross join lateral parley._p_plan_dialogs(array[e.endpoint_id], true) as p
					where e.conversation_handle = $1::uuid`, dialog)
				if !isBound(b.Session, dialog) {
					t.Errorf("the daemon is not notified that it is bound")
				}
			}
			b.Exec("select parley.fire_timers()")
			b.Send(begin(), sqltest.Request, "b")
			requireNoRequest(b.Session)
			b.Exec("select parley.drop_remote_service_binding('found')")
		})
	}
}

// Where there is none dialogs go on as they would without dynamic routing, and are not held up by the same question for a while.
func TestAnswerWithoutABindingLetsDialogsGoOn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		answer func(s sqltest.Session, handle string)
		pause  string
	}{
		{"an end", sqltest.Session.End, "00:01:00"},
		{"an error", func(s sqltest.Session, handle string) { s.EndWithError(handle, 1, "unknown") }, "00:10:00"},
		{"its lifetime", func(s sqltest.Session, _ string) {
			s.Exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'lifetime'")
			s.Exec("select parley._p_fire_alarms(null, 100)")
		}, "00:10:00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newConfiguredWithRoute(t)
			handle := b.DialogWithFar()
			b.Send(handle, sqltest.Request, "1")
			test.answer(b.Session, b.BindingRequest())
			b.Exec("select parley.fire_timers()")
			b.RequireDelayed()
			b.RequireLanes("tcp://far:4022: 1")
			sqltest.Equal(b.Session, test.pause, "select pause::text from parley._p_configuration_request")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where service_id < 65536")

			// A binding that comes now is too late for what may have left.
			role := b.Role("far")
			b.Exec("select parley.create_remote_service_binding('late', '//far/Service', $1, true)", role)
			b.Send(handle, sqltest.Request, "2")
			if isBound(b.Session, handle) {
				t.Error("a dialog under way is sealed all at once")
			}
			b.Exec("select parley.drop_remote_service_binding('late')")

			b.Send(b.DialogWithFar(), sqltest.Request, "3")
			b.RequireDelayed()
			requireNoRequest(b.Session)
			b.Exec("update parley._p_configuration_request set answered_at = answered_at - pause - interval '1 second'")
			b.Exec("select parley.fire_timers()")
			b.Send(b.DialogWithFar(), sqltest.Request, "4")
			b.RequireDelayed(sqltest.AskedForBinding)
			b.BindingRequest()
		})
	}
}

func TestBindingIsAskedForOnlyWhereItCouldCount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		setUp func(b *sqltest.Broker)
		lane  string
	}{
		{"no route to the configuration service", func(b *sqltest.Broker) { b.Exec("select parley.drop_route('configuration')") }, "tcp://far:4022: 1"},
		{"an expired one", func(b *sqltest.Broker) {
			b.Exec("update parley._p_route set expires_at = clock_timestamp() where name = 'configuration'")
		}, "tcp://far:4022: 1"},
		{"another database of the daemon", func(b *sqltest.Broker) {
			b.Exec("select parley.alter_route('far', address => 'LOCAL')")
			b.Exec("insert into parley._p_neighbour_service (service_name, address) values ('//far/Service', 'broker:' || $1)", sqltest.Other)
		}, "broker:" + sqltest.Other + ": 1"},
		{"a binding that is there", func(b *sqltest.Broker) {
			b.Exec("select parley.create_remote_service_binding('b', '//far/Service', $1, true)", b.Role("far"))
			b.Cleanup(func() { _, _ = b.Pool.Exec(context.Background(), "select parley.drop_remote_service_binding('b')") })
		}, "tcp://far:4022: 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newConfiguredWithRoute(t)
			test.setUp(b)
			b.Send(b.DialogWithFar(), sqltest.Request, "1")
			b.RequireLanes(test.lane)
			requireNoRequest(b.Session)
		})
	}
}

// The service that is asked is reached without a binding of its own, or asking would never begin.
func TestConfigurationServiceThatIsFarAwayIsAskedForBindings(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoute("configuration", "tcp://directory:4022", sqltest.ConfigurationService)
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	b.Send(b.DialogWithFar(), sqltest.Request, "1")
	b.RequireLanes(fmt.Sprintf("tcp://directory:4022: %s", sqltest.MissingBinding))
	b.RequireDelayed(sqltest.AskedForBinding)
}

// The daemon finds routes that SQL does not see: what it binds waits for bindings as well.
func TestConversationThatTheDaemonBindsWaitsForItsBinding(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	b.CreateRoutes(sqltest.Route{Address: "LOCAL", Service: sqltest.Far}, sqltest.Route{Address: "tcp://far:4022", Service: sqltest.Far})
	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	b.Send(b.DialogWithFar(), sqltest.Request, "1")
	const bind = `select parley._p_bind_conversations(1, array(select u.endpoint_id from parley._p_unresolved(10) as u), '', '')`
	sqltest.Equal(b.Session, true, bind)
	b.RequireLanes()
	b.RequireDelayed(sqltest.AskedForBinding)
	b.End(b.BindingRequest())
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, true, bind)
	b.RequireLanes("tcp://far:4022: 1")
}

func TestTwoSessionsThatMissABindingAtOnceWaitForBothAnswers(t *testing.T) {
	t.Parallel()
	b := newConfiguredWithRoute(t)
	first, second := b.Begin(), b.Begin()
	handles := []string{b.DialogWithFar(), b.DialogWithFar(), b.DialogWithFar()}
	first.Send(handles[0], sqltest.Request, "1")
	// It does not wait for the first, and does not leave unsealed either.
	second.Exec("set local lock_timeout = '5s'")
	second.Send(handles[1], sqltest.Request, "2")
	second.RequireDelayed(sqltest.AskedForBinding)
	second.Commit()
	b.RequireLanes()
	first.Commit()
	b.Send(handles[2], sqltest.Request, "3")
	b.RequireLanes()
	// Neither saw that the other had asked; the third did.
	one, another := b.BindingRequest(), b.BindingRequest()
	requireNoRequest(b.Session)
	sqltest.Equal(b.Session, 2, "select count(*) from parley._p_configuration_request")
	b.End(one)
	b.Exec("select parley.fire_timers()")
	b.RequireLanes()
	b.End(another)
	b.Exec("select parley.fire_timers()")
	b.RequireLanes("tcp://far:4022: 1 2 3")
}

// The session that asks first may fail: nobody relies on a request that is not committed.
func TestBindingIsAskedForThoughWhoAskedFirstRolledBack(t *testing.T) {
	t.Parallel()
	b := newConfiguredWithRoute(t)
	tx := b.Begin()
	tx.Send(b.DialogWithFar(), sqltest.Request, "1")
	b.Send(b.DialogWithFar(), sqltest.Request, "2")
	b.RequireDelayed(sqltest.AskedForBinding)
	tx.Rollback()
	b.BindingRequest()
	requireNoRequest(b.Session)
	b.RequireLanes()
}

// Reading requests gives no right to answer them: a role that may not create bindings, or is not the role that is to stand for the service,
// changes nothing.
func TestReaderOfRequestsNeedsTheRightToCreateBindings(t *testing.T) {
	t.Parallel()
	b := newConfiguredWithRoute(t)
	reader, role := b.Role("reader"), b.Role("far")
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Configuring', $1)", reader)
	defer b.Exec("select parley.revoke('RECEIVE', 'queue', 'Configuring', $1)", reader)
	b.Send(b.DialogWithFar(), sqltest.Request, "1")
	s := b.As(reader)
	s.BindingRequest()
	const create = "select parley.create_remote_service_binding('found', '//far/Service', $1, true)"
	s.Refuses(229, create, role)
	b.Exec("select parley.grant('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", reader)
	defer b.Exec("select parley.revoke('CREATE REMOTE SERVICE BINDING', 'database', null, $1)", reader)
	s.Refuses(229, create, role)
	b.RequireLanes()
	b.RequireDelayed(sqltest.AskedForBinding)
	b.Exec("grant " + sqltest.Quote(role) + " to " + sqltest.Quote(reader))
	s.Exec(create, role)
	b.RequireLanes("tcp://far:4022: 1")
	b.Exec("select parley.drop_remote_service_binding('found')")
}
