package rights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// catalogScene has an object of each class, and what stands beside them in the catalog.
const catalogScene = `
	select parley.create_message_type('//hidden/Note');
	select parley.create_contract('//hidden/Work', '{"//hidden/Note": "ANY"}');
	select parley.create_queue('Hidden');
	select parley.create_service('//hidden/Service', 'Hidden', array['//hidden/Work']);
	select parley.create_broker_priority('Hidden', '//hidden/Work', '//hidden/Service');
	select parley.create_route('Hidden', 'tcp://far:4022', '//hidden/Far');
	select parley.create_service('//hidden/Listener', 'Hidden', array['http://schemas.microsoft.com/SQL/Notifications/PostEventNotification']);
	select parley.create_event_notification('hidden', 'Hidden', 'QUEUE_ACTIVATION', '//hidden/Listener');
	select parley.create_queue('Program');
	select parley.create_program_activation('Program', array['/opt/reader']);
	select parley.trust_peer(repeat('a1', 32), 'friend', broker_instances => array[gen_random_uuid()]);
	select parley._p_report_certificate('daemon', repeat('c3', 32), now() - interval '1 day', now() + interval '1 day', null);
	select parley.send(parley.begin_dialog('//hidden/Service', '//hidden/Service', '//hidden/Work'), '//hidden/Note', 'x');
`

// The rows that each view shows besides those that the system owns.
var catalogRows = map[string]string{
	"service_message_types":           `select name from parley.service_message_types where message_type_id >= 65536`,
	"service_contracts":               `select name from parley.service_contracts where service_contract_id >= 65536`,
	"service_contract_message_usages": `select 'usage' from parley.service_contract_message_usages where service_contract_id >= 65536`,
	"services":                        `select name from parley.services where service_id >= 65536`,
	"service_contract_usages":         `select 'usage' from parley.service_contract_usages where service_id >= 65536`,
	"service_queue_usages":            `select 'usage' from parley.service_queue_usages where service_id >= 65536`,
	"service_queues":                  `select name from parley.service_queues where object_id >= 65536`,
	"routes":                          `select name from parley.routes`,
	"certificates":                    `select name from parley.certificates`,
	"remote_service_bindings":         `select name from parley.remote_service_bindings`,
}

// Views without rights of their own: each has the reason why every role may read all of it.
var forEverybody = map[string]string{
	"databases":        "the database that one is connected with",
	"diagnosis_checks": "a list of what diagnose can find, the same everywhere",
	"errors":           "the texts of errors, the same everywhere",
	"broker_sessions":  "what pg_stat_activity shows to the same role",
}

// A role without grants finds nothing in any view but what the system owns.
func TestRightsCatalogShowsNothingToARoleWithoutGrants(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(catalogScene)
	outsider := b.As(b.Role("outsider"))
	views := sqltest.Values[string](b.Session, `
		select c.relname::text from pg_class as c
		where c.relnamespace = 'parley'::regnamespace and c.relkind = 'v' and c.relname not like '\_p\_%'
		order by 1`)
	if len(views) < 30 {
		t.Fatalf("only the views %q were found", views)
	}
	for _, view := range views {
		if forEverybody[view] != "" {
			continue
		}
		query := catalogRows[view]
		if query == "" {
			query = "select v::text from parley." + sqltest.Quote(view) + " as v"
		}
		if rows := sqltest.Values[string](outsider, query); len(rows) != 0 {
			t.Errorf("parley.%s shows %q to a role without grants", view, rows)
		}
	}
}

// Any permission on an object shows it, and nothing else of its class (spec 7.6).
func TestRightsAnyPermissionShowsTheObject(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(catalogScene)
	b.Exec("select parley.create_message_type('//other')")
	b.Exec("select parley.create_contract('//other', array['//other'])")
	b.Exec("select parley.create_queue('Other')")
	b.Exec("select parley.create_service('//other', 'Other')")
	b.Exec("select parley.create_route('Other', 'tcp://far:4022', '//other')")
	far := b.Role("far")
	b.Exec("select parley.create_remote_service_binding('Hidden', '//hidden/Far', $1)", far)
	b.Exec("select parley.create_remote_service_binding('Other', '//other', $1)", far)
	b.Install("Hidden", far, false)
	b.Install("Other", far, false)
	name := b.Role("reader")
	reader := b.As(name)
	for _, c := range []struct {
		sqltest.Right
		view  string
		shown string
	}{
		{sqltest.RightTo("VIEW DEFINITION", "message type", "//hidden/Note"), "service_message_types", "//hidden/Note"},
		{sqltest.RightTo("REFERENCES", "message type", "//hidden/Note"), "service_message_types", "//hidden/Note"},
		{sqltest.RightTo("REFERENCES", "contract", "//hidden/Work"), "service_contracts", "//hidden/Work"},
		{sqltest.RightTo("REFERENCES", "contract", "//hidden/Work"), "service_contract_message_usages", "usage"},
		{sqltest.RightTo("SEND", "service", "//hidden/Service"), "services", "//hidden/Service"},
		{sqltest.RightTo("SEND", "service", "//hidden/Service"), "service_contract_usages", "usage"},
		{sqltest.RightTo("ALTER", "service", "//hidden/Service"), "service_queue_usages", "usage"},
		{sqltest.RightTo("RECEIVE", "queue", "Hidden"), "service_queues", "Hidden"},
		{sqltest.RightTo("TAKE OWNERSHIP", "route", "Hidden"), "routes", "Hidden"},
		{sqltest.RightTo("VIEW DEFINITION", "certificate", "Hidden"), "certificates", "Hidden"},
		{sqltest.RightTo("CONTROL", "remote service binding", "Hidden"), "remote_service_bindings", "Hidden"},
	} {
		other := sqltest.RightTo(c.Permission, c.Class, "Other")
		if strings.HasPrefix(c.Object, "//") {
			other.Object = "//other"
		}
		b.Grant(other, far)
		for _, grantee := range []string{name, "PUBLIC"} {
			b.Grant(c.Right, grantee)
			rows := sqltest.Values[string](reader, catalogRows[c.view])
			// A service accepts the DEFAULT contract too.
			if rows = slices.Compact(rows); !slices.Equal(rows, []string{c.shown}) {
				t.Errorf("with %v, granted to %s, parley.%s shows %q, want %q", c.Right, grantee, c.view, rows, c.shown)
			}
			b.Revoke(c.Right, grantee)
			if rows := sqltest.Values[string](reader, catalogRows[c.view]); len(rows) != 0 {
				t.Errorf("after %v was revoked parley.%s shows %q", c.Right, c.view, rows)
			}
		}
	}
	b.Grant(sqltest.RightTo("SEND", "service", "//hidden/Service"), far)
	monitor := b.As("pg_monitor")
	sqltest.Equal(monitor, 3, "select count(*) from parley.service_queues where object_id >= 65536")
	sqltest.Equal(monitor, 3, "select count(*) from parley.services where service_id >= 65536")
	sqltest.Equal(monitor, 0, "select count(*) from parley.service_contracts where service_contract_id >= 65536")
	// Objects that belong to the queue are shown with it.
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Hidden"), name)
	sqltest.Equal(reader, 1, "select count(*) from parley.event_notifications")
}

// ALTER ANY shows a class, VIEW DEFINITION on the database everything, and ownership what is owned.
func TestRightsOverAClassShowAllOfIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(catalogScene)
	name := b.Role("reader")
	reader := b.As(name)
	services := "select count(*) from parley.services where service_id >= 65536"
	contracts := "select count(*) from parley.service_contracts where service_contract_id >= 65536"
	beside := "select (select count(*) from parley.conversation_priorities) + (select count(*) from parley.peers) + " +
		"(select count(*) from parley.peer_certificates) + (select count(*) from parley.peer_brokers) + (select count(*) from parley.broker_certificates)"
	for _, c := range []struct {
		right                       sqltest.Right
		services, contracts, beside int
	}{
		{sqltest.RightTo("ALTER ANY SERVICE", "database", ""), 2, 0, 0},
		{sqltest.RightTo("CREATE SERVICE", "database", ""), 0, 0, 0},
		{sqltest.RightTo("VIEW DEFINITION", "database", ""), 2, 1, 5},
	} {
		b.Grant(c.right, name)
		sqltest.Equal(reader, c.services, services)
		sqltest.Equal(reader, c.contracts, contracts)
		sqltest.Equal(reader, c.beside, beside)
		b.Revoke(c.right, name)
	}
	b.Grant(sqltest.RightTo("VIEW DEFINITION", "database", ""), name)
	sqltest.Equal(reader, 1, "select count(*) from parley.external_activations")
	b.Revoke(sqltest.RightTo("VIEW DEFINITION", "database", ""), name)
	b.Exec("select parley.alter_authorization('service', '//hidden/Listener', $1)", name)
	sqltest.Equal(reader, "//hidden/Listener", "select name from parley.services where service_id >= 65536")
	// A peer is shown to the role that it acts as.
	b.Exec("select parley.alter_peer('friend', role => $1)", name)
	sqltest.Equal(reader, 3, beside)
	b.Exec("select parley.alter_peer('friend', role => 'PUBLIC')")
	b.Exec("select parley.alter_authorization('service', '//hidden/Listener', current_user)")
}

// A role sees what it holds, has granted, or may change; not which others may use an object that it may use.
func TestRightsOfOthersAreShownToWhoeverRulesTheObject(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(catalogScene)
	one, two := b.Role("one"), b.Role("two")
	first, second := b.As(one), b.As(two)
	shown := "select count(*) from parley.permissions"
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Hidden"), one)
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Hidden"), two)
	sqltest.Equal(first, 1, shown)
	sqltest.Equal(second, 1, shown)
	b.Grant(sqltest.RightTo("VIEW DEFINITION", "queue", "Hidden"), two)
	sqltest.Equal(first, 1, shown)
	sqltest.Equal(second, 3, shown)
	b.Grant(sqltest.RightTo("SEND", "service", "//hidden/Service"), "PUBLIC")
	sqltest.Equal(first, "//hidden/Service", "select object_name from parley.permissions where grantee = 'PUBLIC'")
	b.Grant(sqltest.RightTo("CREATE QUEUE", "database", ""), two)
	sqltest.Equal(first, 2, shown)
	b.Grant(sqltest.RightTo("VIEW DEFINITION", "database", ""), one)
	sqltest.Equal(first, 6, shown)
}
