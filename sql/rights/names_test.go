package rights_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// hiddenName is an object of catalogScene, and a statement that names it with another case. It is executed by a role that may RECEIVE from
// the queue Asking and ALTER it.
type hiddenName struct {
	class, name string
	statement   string
}

func hiddenNames(b *sqltest.Broker) []hiddenName {
	b.Helper()
	dialog := b.Dialog()
	return []hiddenName{
		{"message type", "//hidden/Note", "select parley.alter_message_type('//HIDDEN/Note', 'NONE')"},
		{"message type", "//hidden/Note", "select parley.drop_message_type('//HIDDEN/Note')"},
		{"message type", "//hidden/Note", "select parley.send('" + dialog + "'::uuid, '//HIDDEN/Note', 'x')"},
		{"contract", "//hidden/Work", "select parley.drop_contract('//HIDDEN/Work')"},
		{"contract", "//hidden/Work", "select parley.begin_dialog('//test/Asker', '//nowhere', '//HIDDEN/Work', allow_unknown_target => true)"},
		{"queue", "Hidden", "select parley.drop_queue('HIDDEN')"},
		{"queue", "Hidden", "select parley.receive('HIDDEN')"},
		{"queue", "Hidden", "select parley.grant('RECEIVE', 'queue', 'HIDDEN', 'PUBLIC')"},
		{"queue", "Hidden", "select parley.drop_event_notification('x', 'HIDDEN')"},
		{"queue", "Hidden", "select parley.notify_activation('HIDDEN')"},
		{"service", "//hidden/Service", "select parley.drop_service('//HIDDEN/Service')"},
		{"service", "//hidden/Service", "select parley.begin_dialog('//HIDDEN/Service', '//nowhere', allow_unknown_target => true)"},
		{"service", "//hidden/Service", "select parley.create_event_notification('x', 'Asking', 'QUEUE_ACTIVATION', '//HIDDEN/Service')"},
		{"route", "Hidden", "select parley.drop_route('HIDDEN')"},
		{"certificate", "Hidden", "select parley.drop_certificate('HIDDEN')"},
		{"remote service binding", "Hidden", "select parley.drop_remote_service_binding('HIDDEN')"},
	}
}

func newHiddenNames(t *testing.T) (b *sqltest.Broker, reader sqltest.Session, role string) {
	t.Helper()
	b = sqltest.NewWorld(t)
	b.Exec(catalogScene)
	far := b.Role("far")
	b.Exec("select parley.create_remote_service_binding('Hidden', '//hidden/Far', $1)", far)
	b.Install("Hidden", far, false)
	role = b.Role("reader")
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Asking"), role)
	b.Grant(sqltest.RightTo("ALTER", "queue", "Asking"), role)
	return b, b.As(role), role
}

// A name that is wrong by case alone is corrected for roles that find the right one in the catalog.
func TestRightsNamesAreSuggestedToThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	b, reader, role := newHiddenNames(t)
	for _, h := range hiddenNames(b) {
		suggestion := fmt.Sprintf("Did you mean %q?", h.name)
		detail := func(s sqltest.Session) string {
			var refusal *pgconn.PgError
			if err := s.Try(h.statement); !errors.As(err, &refusal) {
				t.Fatalf("%s: got %v, want a refusal", h.statement, err)
			}
			return refusal.Detail
		}
		if got := detail(reader); strings.Contains(got, h.name) || strings.Contains(got, "Did you mean") {
			t.Errorf("%s: a role that may not see the %s gets its name: %s", h.statement, h.class, got)
		}
		b.Grant(sqltest.RightTo("VIEW DEFINITION", h.class, h.name), role)
		if got := detail(reader); !strings.Contains(got, suggestion) {
			t.Errorf("%s: a role that may see the %s does not get it: %s", h.statement, h.class, got)
		}
		b.Revoke(sqltest.RightTo("VIEW DEFINITION", h.class, h.name), role)
		if got := detail(b.Connection()); !strings.Contains(got, suggestion) {
			t.Errorf("%s: an administrator does not get it: %s", h.statement, got)
		}
	}
}

// A caller that gives the name of a service for that of its queue gets the queue named, if the catalog shows it both.
func TestRightsServiceGivenForItsQueueIsShownToThoseWhoMaySeeBoth(t *testing.T) {
	t.Parallel()
	b, reader, role := newHiddenNames(t)
	b.Exec("select parley.create_service('http://hidden.example.com/Service', 'Hidden')")
	for service, number := range map[string]int{"//hidden/Service": 208, "http://hidden.example.com/Service": 9609} {
		hint := func(s sqltest.Session, asked string) string {
			var refusal *pgconn.PgError
			if err := s.Try("select parley.receive('" + asked + "')"); !errors.As(err, &refusal) || refusal.Code != sqltest.SQLState(number) {
				t.Fatalf("receiving from %s: got %v, want error %d", asked, err, number)
			}
			return refusal.Hint
		}
		want := fmt.Sprintf(`"%s" is a service; its queue is "Hidden".`, service)
		b.Grant(sqltest.RightTo("VIEW DEFINITION", "service", service), role)
		if got := hint(reader, service); strings.Contains(got, "Hidden") {
			t.Errorf("a role that may not see the queue gets: %s", got)
		}
		b.Grant(sqltest.RightTo("RECEIVE", "queue", "Hidden"), role)
		if got := hint(reader, service); got != want {
			t.Errorf("a role that may see both gets %q, want %q", got, want)
		}
		b.Revoke(sqltest.RightTo("VIEW DEFINITION", "service", service), role)
		if got := hint(reader, service); strings.Contains(got, "Hidden") {
			t.Errorf("a role that may not see the service gets: %s", got)
		}
		b.Revoke(sqltest.RightTo("RECEIVE", "queue", "Hidden"), role)
		if got := hint(b.Connection(), service); got != want {
			t.Errorf("an administrator gets %q, want %q", got, want)
		}
	}
}

// The reader of why a message waits is not known when it is written, and the sender may be far away: what all may see is suggested.
func TestRightsNamesAreSuggestedInAStatusWhenEverybodyMaySeeThem(t *testing.T) {
	t.Parallel()
	b, reader, role := newHiddenNames(t)
	const suggestion = `Did you mean "//hidden/Service"?`
	begin := func() string {
		handle := sqltest.Value[string](reader, "select parley.begin_dialog('//test/Asker', '//HIDDEN/Service', encryption => false, allow_unknown_target => true)")
		reader.Exec("select parley.send($1::uuid, 'DEFAULT', 'x')", handle)
		return handle
	}
	status := func(handle string) string {
		return sqltest.Value[string](reader, "select parley.get_transmission_status($1::uuid)", handle)
	}
	explained := func(handle string) string {
		return strings.Join(sqltest.Values[string](reader, "select coalesce(answer, '') from parley.explain_conversation($1::uuid)", handle), "\n")
	}
	refused := func() string {
		return sqltest.Value[string](b.Session, `
			select parley._p_refuse_first(jsonb_populate_record(null::parley._p_arriving_run, jsonb_build_object(
				'message_type', 'DEFAULT', 'contract', 'DEFAULT', 'to_service', '//HIDDEN/Service', 'to_broker', gen_random_uuid(),
				'identity', 'peer:' || repeat('b2', 32))))::text`)
	}
	b.Exec("select parley.trust_peer(repeat('b2', 32), 'far', role => $1)", role)
	handle := begin()
	for _, got := range []string{status(handle), explained(handle), refused()} {
		if got == "" || strings.Contains(got, "//hidden/Service") {
			t.Errorf("a role that may not see the service gets %q", got)
		}
	}
	b.Grant(sqltest.RightTo("SEND", "service", "//hidden/Service"), role)
	if got := status(begin()); strings.Contains(got, "//hidden/Service") {
		t.Errorf("everybody who reads the status gets %q", got)
	}
	for _, got := range []string{explained(handle), refused()} {
		if !strings.Contains(got, suggestion) && !strings.Contains(got, strings.ReplaceAll(suggestion, `"`, `""`)) {
			t.Errorf("a role that may see the service gets %q", got)
		}
	}
	b.Grant(sqltest.RightTo("SEND", "service", "//hidden/Service"), "PUBLIC")
	if got := status(begin()); !strings.Contains(got, suggestion) {
		t.Errorf("what everybody may see is not suggested: %q", got)
	}
}

// The function that decides what may be named has the rule of the catalog's views.
func TestRightsWhatIsVisibleIsTheSameInFunctionsAndViews(t *testing.T) {
	t.Parallel()
	b, _, granted := newHiddenNames(t)
	nobody, group, member, monitor, anyRoute, definitions, owner :=
		b.Role("nobody"), b.Role("group"), b.Role("member"), b.Role("monitor"), b.Role("any route"), b.Role("definitions"), b.Role("owner")
	b.Exec("grant " + sqltest.Quote(group) + " to " + sqltest.Quote(member))
	b.Exec("grant pg_monitor to " + sqltest.Quote(monitor))
	b.Grant(sqltest.RightTo("SEND", "service", "//hidden/Service"), group)
	b.Grant(sqltest.RightTo("REFERENCES", "contract", "//hidden/Work"), "PUBLIC")
	b.Grant(sqltest.RightTo("ALTER ANY ROUTE", "database", ""), anyRoute)
	b.Grant(sqltest.RightTo("VIEW DEFINITION", "database", ""), definitions)
	b.Exec("select parley.alter_authorization('queue', 'Hidden', $1)", owner)
	const inViews = `
		select class || ' ' || name from (
			select 'message type' as class, name from parley.service_message_types
			union all select 'contract', name from parley.service_contracts
			union all select 'queue', name from parley.service_queues
			union all select 'service', name from parley.services
			union all select 'route', name from parley.routes
			union all select 'certificate', name from parley.certificates
			union all select 'remote service binding', name from parley.remote_service_bindings
		) as v
		order by 1`
	const inFunctions = `
		select o.class || ' ' || o.name
		from parley._p_named_object as o
		cross join pg_roles as r
		where r.rolname = $1 and parley._p_is_visible(r.oid, o.class, o.object_id, o.owner)
		order by 1`
	seen := map[string]bool{}
	for _, role := range []string{nobody, granted, group, member, monitor, anyRoute, definitions, owner} {
		want := strings.Join(sqltest.Values[string](b.As(role), inViews), "\n")
		if got := strings.Join(sqltest.Values[string](b.Session, inFunctions, role), "\n"); got != want {
			t.Errorf("%s: functions and views differ:\n%s", role, sqltest.Difference(want, got))
		}
		seen[want] = true
	}
	if len(seen) < 6 {
		t.Errorf("the roles see %d different sets of objects: the test shows nothing", len(seen))
	}
}

// The number of a queue is easily guessed.
func TestRightsStateOfAQueueIsShownToThoseWhoSeeIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("insert into parley._p_set_aside (endpoint_id, service_id, position, moved_position, rollbacks) select e.endpoint_id, e.service_id, 0, 0, 5 "+
		"from parley._p_endpoint as e where e.conversation_handle = $1", b.Dialog())
	id := sqltest.Value[int](b.Session, "select object_id from parley.service_queues where name = 'Asking'")
	role := b.Role("outsider")
	outsider := b.As(role)
	for _, c := range []struct{ function, shown string }{
		{"_p_sees_poisoned", "false"},
		{"_p_sees_set_aside", "1"},
		{"_p_is_poisoned", "permission denied"},
	} {
		ask := func() string {
			o := call(outsider, fmt.Sprintf("select parley.%s(%d)::text", c.function, id))
			if o.err != nil {
				return o.err.Error()
			}
			return o.text
		}
		if got := ask(); got != "" && !strings.Contains(got, "permission denied") {
			t.Errorf("%s shows %q to a role that may not see the queue", c.function, got)
		}
		b.Grant(sqltest.RightTo("REFERENCES", "queue", "Asking"), role)
		if got := ask(); !strings.Contains(got, c.shown) {
			t.Errorf("%s shows %q to a role that may see the queue, want %q", c.function, got, c.shown)
		}
		b.Revoke(sqltest.RightTo("REFERENCES", "queue", "Asking"), role)
	}
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Asking"), role)
	sqltest.Equal(outsider, "true 1",
		"select is_receive_enabled || ' ' || set_aside_conversations from parley.service_queues where name = 'Asking'")
}

// An object that is still used is not dropped. Its user is named to roles to which the catalog shows that user.
func TestRightsUserOfAnObjectIsNamedToThoseWhoMaySeeIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("select parley.create_message_type('//own'), parley.create_contract('//hidden/contract', array['//own'])")
	b.Exec("select parley.create_contract('//own', array['DEFAULT']), parley.create_queue('Own')")
	b.Exec("select parley.create_service('//hidden/service', 'Own', array['//own'])")
	b.Exec("select parley.create_service('//own', 'Own'), parley.create_broker_priority('hidden/priority', local_service_name => '//own')")
	role := b.Role("owner")
	for _, class := range []string{"message type", "contract", "queue", "service"} {
		name := "//own"
		if class == "queue" {
			name = "Own"
		}
		t.Run(class, func(t *testing.T) {
			b := &sqltest.Broker{Session: sqltest.Session{T: t, DB: b.DB}, Pool: b.Pool}
			drop := "select parley.drop_" + strings.ReplaceAll(class, " ", "_") + "($1)"
			b.Exec("select parley.grant('CONTROL', $1, $2, $3)", class, name, role)
			if shown := b.Refuses(3716, drop, name).Detail; class != "queue" && !strings.Contains(shown, "hidden") {
				t.Errorf("an administrator gets %q", shown)
			}
			if hidden := b.As(role).Refuses(3716, drop, name); strings.Contains(hidden.Detail+hidden.Hint, "hidden") {
				t.Errorf("who may not see it gets %q", hidden.Detail)
			}
			b.Exec("select parley.revoke('CONTROL', $1, $2, $3)", class, name, role)
		})
	}
}
