package conversation_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// unrouted is a name to which nothing leads; every way of sending to it is to be refused alike.
const unrouted = "//far/Mistyped"

var waysToBegin = map[string]string{
	"begin_dialog":          "select parley.begin_dialog('//test/Asker', $1)",
	"begin_and_send":        "select parley.begin_and_send('//test/Asker', $1, body => 'x')",
	"begin_and_send bytes":  "select parley.begin_and_send('//test/Asker', $1, message_type => 'DEFAULT', body => 'x'::bytea)",
	"send_and_end":          "select parley.send_and_end('//test/Asker', $1, body => 'x')",
	"send_and_end bytes":    "select parley.send_and_end('//test/Asker', $1, message_type => 'DEFAULT', body => 'x'::bytea)",
	"get_conversation":      "select parley.get_conversation('//test/Asker', $1)",
	"with a key":            "select parley.begin_dialog('//test/Asker', $1, deduplication_key => 'k')",
	"first send with a key": "select parley.begin_and_send('//test/Asker', $1, body => 'x', deduplication_key => 'k')",
	"sent later":            "select parley.begin_and_send('//test/Asker', $1, body => 'x', deliver_at => now() + interval '1 hour')",
}

func TestNoDialogBeginsToWhereNothingLeads(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for name, statement := range waysToBegin {
		t.Run(name, func(t *testing.T) {
			s := sqltest.Session{T: t, DB: b.DB}
			s.Refuses(9796, statement, unrouted)
		})
	}
	sqltest.Equal(b.Session, int64(0), "select count(*) from parley._p_endpoint")
	sqltest.Equal(b.Session, int64(0), "select count(*) from parley._p_conversation_group")
	sqltest.Equal(b.Session, int64(0), "select count(*) from parley._p_deduplication_key")
}

// The setting restores SQL Server's behaviour for all of them: what is sent waits, and arrives when the service is created.
func TestSettingLetsDialogsBeginBeforeTheirTargets(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s := b.Connection()
	for _, on := range []string{"on", "TRUE", "yes", "1"} {
		s.Exec("set parley.allow_unknown_targets = '" + on + "'")
		s.Exec(sqltest.BeginTo, unrouted)
	}
	for _, off := range []string{"off", "", "maybe"} {
		s.Exec("set parley.allow_unknown_targets = '" + off + "'")
		s.Refuses(9796, sqltest.BeginTo, unrouted)
	}
	s.Exec("set parley.allow_unknown_targets = on")
	for _, statement := range waysToBegin {
		s.Exec(statement, unrouted)
	}
	s.Refuses(9796, "select parley.begin_dialog('//test/Asker', $1, allow_unknown_target => false)", unrouted)
	b.Exec("select parley.create_service($1, 'Answering', array['DEFAULT'])", unrouted)
	sqltest.Equal(b.Session, true, "select count(*) > 0 from parley.receive('Answering', top => 100)")
}

// A call says it for itself alone, and each way of beginning can.
func TestCallLetsItsDialogBeginBeforeItsTarget(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for name, statement := range waysToBegin {
		if name == "get_conversation" {
			continue // it has the setting alone: a conversation that is there already has its target
		}
		b.Exec(strings.TrimSuffix(statement, ")")+", allow_unknown_target => true)", unrouted)
		b.Refuses(9796, "select parley.begin_dialog('//test/Asker', $1)", unrouted)
	}
}

func TestDialogBeginsWhereSomethingMayLead(t *testing.T) {
	t.Parallel()
	const other = "'7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f'"
	for _, c := range []struct {
		name, arrange, to, instance string
		number                      int // of the refusal, 0 for none
	}{
		{name: "a service of this database", to: "//test/Answerer"},
		{name: "a service of this database, by its instance", to: "//test/Answerer", instance: "'current database'"},
		{name: "a service here, of another instance", to: "//test/Answerer", instance: other, number: 9795},
		{name: "no service, of this instance", to: unrouted, instance: "'current database'", number: 9796},
		{name: "no service, of another instance", to: unrouted, instance: other, number: 9795},
		{name: "a route that names it", to: unrouted, arrange: "select parley.create_route('r', 'tcp://far:4022', '//far/Mistyped')"},
		{name: "a LOCAL route that names it", to: unrouted, arrange: "select parley.create_route('r', 'LOCAL', '//far/Mistyped')"},
		{
			name: "a route that names it and has expired", to: unrouted,
			arrange: `select parley.create_route('r', 'tcp://far:4022', '//far/Mistyped', lifetime => 1);
				update parley._p_route set expires_at = now() - interval '1 minute' where name = 'r'`,
		},
		{name: "a route that names another", to: unrouted, arrange: "select parley.create_route('r', 'tcp://far:4022', '//far/Other')", number: 9796},
		{
			name: "an inbound route", to: unrouted, number: 9796,
			arrange: "select parley.create_route('r', 'tcp://far:4022', '//far/Mistyped', is_inbound => true)",
		},
		{
			name: "a route to its instance", to: unrouted, instance: other,
			arrange: "select parley.create_route('r', 'tcp://far:4022', '//far/Mistyped', " + other + ")",
		},
		{
			name: "a route to another instance of it", to: unrouted, instance: other, number: 9795,
			arrange: "select parley.create_route('r', 'tcp://far:4022', '//far/Mistyped', '00000000-0000-0000-0000-00000000000a')",
		},
		{name: "a route for any service", to: unrouted, arrange: "select parley.create_route('r', 'tcp://hub:4022')"},
		{name: "TRANSPORT, and a name with an address", to: "tcp://far:4022/x", arrange: "select parley.create_route('r', 'TRANSPORT')"},
		{name: "TRANSPORT, and a name without", to: unrouted, arrange: "select parley.create_route('r', 'TRANSPORT')", number: 9796},
		{
			name: "TRANSPORT alone, and a name without", to: unrouted, number: 9785,
			arrange: "select parley.create_route('r', 'TRANSPORT'), parley.drop_route('AutoCreatedLocal')",
		},
		{name: "no route at all", to: unrouted, arrange: "select parley.drop_route('AutoCreatedLocal')", number: 9750},
		{
			name: "the broker configuration service", to: unrouted,
			arrange: "select parley.create_route('r', 'tcp://far:4022', 'SQL/ServiceBroker/BrokerConfiguration')",
		},
		{name: "a daemon of several databases", to: unrouted, arrange: "select parley._p_lead('d', 0, 60000, true)"},
		{name: "a daemon of several databases, another instance", to: unrouted, instance: other, arrange: "select parley._p_lead('d', 0, 60000, true)"},
		{
			name: "a daemon of several databases, this instance", to: unrouted, instance: "'current database'", number: 9796,
			arrange: "select parley._p_lead('d', 0, 60000, true)",
		},
		{
			name: "a daemon of several databases, no LOCAL", to: unrouted, number: 9750,
			arrange: "select parley._p_lead('d', 0, 60000, true), parley.drop_route('AutoCreatedLocal')",
		},
		{
			name: "a daemon of several databases that has stopped", to: unrouted,
			arrange: "select parley._p_resign(parley._p_lead('d', 0, 60000, true))",
		},
		{name: "a daemon of this database", to: unrouted, arrange: "select parley._p_lead('d', 0, 60000, false)", number: 9796},
		{
			name: "a daemon of this database now, and another one that was", to: unrouted, number: 9796,
			arrange: `insert into parley._p_neighbour_service (service_name, address) values ('//far/Other', 'broker:x');
				select parley._p_lead('d', 0, 60000, false)`,
		},
		{
			name: "another database that has answered", to: unrouted,
			arrange: "insert into parley._p_neighbour_service (service_name, address) values ('//far/Other', 'broker:x')",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			for statement := range strings.SplitSeq(c.arrange, ";") {
				if strings.TrimSpace(statement) != "" {
					b.Exec(statement)
				}
			}
			statement := sqltest.BeginTo
			if c.instance != "" {
				statement = "select parley.begin_dialog('//test/Asker', $1, broker_instance => " + c.instance + ")"
			}
			if c.number != 0 {
				b.Refuses(c.number, statement, c.to)
				return
			}
			b.Exec(statement, c.to)
		})
	}
}

// The refusal names the service that was meant, the route, and the setting; a role gets only names that it may see.
func TestRefusedTargetNamesTheNearestServiceAndTheCures(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	hint := b.Refuses(9796, sqltest.BeginTo, "//test/Ansewrer").Hint
	for _, want := range []string{
		`Did you mean "//test/Answerer"?`, "parley.create_route('//test/Ansewrer', 'tcp://<host>:4022', '//test/Ansewrer')",
		"allow_unknown_target => true", "set parley.allow_unknown_targets = on",
	} {
		if !strings.Contains(hint, want) {
			t.Errorf("the hint does not have %q: %s", want, hint)
		}
	}
	role := b.Role("asker")
	b.Grant(sqltest.RightTo("RECEIVE", "queue", "Asking"), role)
	s, _ := b.Noticing(role)
	if hint := s.Refuses(9796, sqltest.BeginTo, "//test/Ansewrer").Hint; strings.Contains(hint, "Answerer") {
		t.Errorf("a role that may not see the service gets its name: %s", hint)
	}
}

// A role that may not begin a dialog at all gets no answer to whether a name is known.
func TestRefusedTargetIsBehindTheRights(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s, _ := b.Noticing(b.Role("outsider"))
	s.Refuses(229, sqltest.BeginTo, unrouted)
	s.Refuses(229, sqltest.BeginTo, "//test/Answerer")
}
