package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// Changes of definitions are used at once: ports and locations that come, change, stop and go; a wrong one stops no other.
func TestDefinitionsAreUsedHot(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.serve()
	e.take("0")
	e.untilSent(1)
	e.port("Second", `{}`)
	e.port("Wrong", `{"address": "wrong", "filter": []}`)
	parleytest.Until(t, "the second is there", func() bool { e.take("x"); return len(e.sentBy("Second")) > 0 })
	parleytest.Until(t, "the wrong one is reported", func() bool {
		return sqltest.Value[bool](e.Session, `select exists (select from parley_flow.hosts as h
			where h.report -> 'problems' @> '[{"code": "flow-node-port", "object": "Wrong", "cause": "wrong cannot be reached from here"}]')`)
	})
	sqltest.Equal(e.Session, "Wrong", "select object_name from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-node-port'")
	sqltest.Equal(e.Session, true, `select last_error ~ '^on node .*: wrong cannot be reached from here$' from parley_flow.send_ports
		where name = 'Wrong'`)
	e.port("Second", `{"batch": 7}`)
	parleytest.Until(t, "the sender is made anew and the old one closed", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.made["Second"] == 2 && e.closed["Second"] == 1
	})
	e.port("Wrong", `{"filter": []}`)
	parleytest.Until(t, "the wrong one is right", func() bool {
		return sqltest.Value[bool](e.Session, "select not exists (select from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-node-port')")
	})
	e.Exec("select parley_flow.disable('Source')")
	parleytest.Until(t, "the location is ended", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.intakes["Source"] == nil
	})
	e.Exec("select parley_flow.enable('Source')")
	e.take("again")
}

// Messages that could not be sent by a definition go by the one that mends it, at once and not when they are due.
func TestMendedPortIsTriedAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{"retry policy": {"late": {"count": 3, "interval": "1 hour"}}}`)
	e.port("Out", `{"retry_policy": "late"}`)
	e.mu.Lock()
	e.send1["Out"] = func(_ context.Context, messages []*adapter.Message) []adapter.Delivery {
		failed := make([]adapter.Delivery, len(messages))
		for i := range messages {
			failed[i] = adapter.Delivery{Err: &adapter.Failure{Code: "send.unreachable", Err: errors.New("no route"), Unreachable: true}}
		}
		return failed
	}
	e.mu.Unlock()
	e.serve()
	e.take("1", "2", "3")
	parleytest.Until(t, "the port waits", func() bool {
		return sqltest.Value[bool](e.Session, "select coalesce(next_attempt_at > now(), false) from parley_flow.send_ports where name = 'Out'")
	})
	e.mu.Lock()
	delete(e.send1, "Out")
	e.mu.Unlock()
	e.port("Out", `{"retry_policy": "late", "batch": 7}`)
	e.untilSent(3)
	e.untilEmpty()
}

// A location that cannot work is reported, and tried again.
func TestLocationThatCannotBeServedIsReported(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{"receive location": {
		"Wrong": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "wrong"},
		"Unknown": {"receive_port": "In", "host": "Receive", "adapter": "SMOKE", "address": "x"},
		"Secret": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "x", "secrets": {"password": "env:NOT_PERMITTED"}}}}`)
	e.serve()
	e.take("x")
	parleytest.Until(t, "all are reported", func() bool {
		return sqltest.Value[int](e.Session, "select count(*)::integer from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-location'") == 3
	})
	got := sqltest.Value[string](e.Session, "select string_agg(name || ': ' || last_error, '; ' order by name) from parley_flow.receive_locations where failing_since is not null")
	for _, want := range []string{
		"Wrong: wrong cannot be reached from here", `Unknown: there is no adapter "SMOKE" that takes in`,
		"Secret: the secret env:NOT_PERMITTED is not permitted by the operator of this node; permit it with --allow-secret env:NOT_PERMITTED",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	e.apply(`{"receive location": {"Wrong": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "right"}}}`)
	e.intake("Wrong")
	parleytest.Until(t, "it is well", func() bool {
		return sqltest.Value[bool](e.Session, `select failing_since is null and last_error ~ 'wrong cannot be reached' and recovered_at >= last_error_at
			from parley_flow.receive_locations where name = 'Wrong'`)
	})
}

// A message that failed in the pipeline and is resumed goes through the pipeline of its location again, also where that is disabled.
func TestResubmittedMessagesGoThroughThePipeline(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{"receive location": {"Source": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source", "pipeline": "XMLReceive"}}}`)
	e.serve()
	results, err := e.intake("Source").Take(t.Context(), []adapter.Input{{Body: []byte("<Order xmlns='urn:s'"), Promoted: map[string]any{"SourceFileName": "a.xml"}}})
	if err != nil || results[0].Outcome != adapter.Suspended || results[0].Failure == nil {
		t.Fatalf("the bad one gave %+v, %v", results, err)
	}
	sqltest.Equal(e.Session, "<Order xmlns='urn:s'", "select convert_from(parley_flow.read_message(message_id), 'UTF8') from parley_flow.suspended")
	sqltest.Equal(e.Session, 1, "select parley_flow.resume_suspended('{}')")
	parleytest.Until(t, "it is suspended again", func() bool {
		return sqltest.Value[bool](e.Session, "select exists (select from parley_flow.suspended where attempts = 1)")
	})
	e.Exec("select parley_flow.disable('Source')")
	parleytest.Until(t, "it is mended", func() bool {
		return sqltest.Value[int](e.Session, `select count(parley_flow.resubmit(suspension_id, '<Order xmlns="urn:s"><Key>k</Key></Order>'))::integer
			from parley_flow.suspended`) == 1
	})
	sent := e.untilSent(1)
	if sent[0] != `<Order xmlns="urn:s"><Key>k</Key></Order>` {
		t.Errorf("was sent %q", sent)
	}
	e.untilEmpty()
}

// A resubmitted body of which the pipeline makes no message is suspended: it does not vanish.
func TestResubmittedBodyWithoutMessagesIsSuspended(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{"pipeline": {"Csv": {"application": "Orders", "direction": "receive", "stages": {"disassemble": [
			{"component": "csv-disassembler", "settings": {"split": true}}]}}},
		"receive location": {"Source": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source", "pipeline": "Csv"}}}`)
	e.serve()
	if _, err := e.intake("Source").Take(t.Context(), []adapter.Input{{Body: []byte("a,a\n1,2\n")}}); err != nil {
		t.Fatal(err)
	}
	sqltest.Equal(e.Session, 1, "select count(parley_flow.resubmit(suspension_id, 'a,b'))::integer from parley_flow.suspended")
	parleytest.Until(t, "it is suspended again", func() bool {
		return sqltest.Value[bool](e.Session, `select exists (select from parley_flow.suspended where attempts = 1 and code = 'receive.disassemble'
			and error like '%no message%')`)
	})
}

// Under pressure, and where a person has asked for it, intake is delayed and receivers are told; sending goes on.
func TestIntakeIsThrottled(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	n := e.serve(func(c *host.Config) { c.Poll = 50 * time.Millisecond })
	e.take("0")
	in := e.intake("Source")
	if in.Throttled() {
		t.Error("it is throttled without pressure")
	}
	release := make(chan struct{})
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		<-release
		return e.record("Out")(ctx, messages)
	})
	e.Exec("select parley_flow.set_threshold('messages waiting', 2, 4, 3, 1)")
	e.take("1", "2", "3")
	state := func() float64 { return n.Counter("Message Agent", "Receive", "Message publishing throttling state") }
	e.Exec("select parley_flow.maintain()")
	parleytest.Until(t, "it is throttled", func() bool { return state() == 6 && in.Throttled() })
	if delivery := n.Counter("Message Agent", "Send", "Message delivery throttling state"); delivery != 0 {
		t.Errorf("delivery has state %v", delivery)
	}
	parleytest.Until(t, "that is found", func() bool {
		return sqltest.Value[bool](e.Session, "select exists (select from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-throttled')")
	})
	sqltest.Equal(e.Session, true, "select exists (select from parley_store.pressure_changes where system = 'flow' and resource = 'messages waiting')")
	close(release)
	e.untilSent(4)
	parleytest.Until(t, "it is throttled no more", func() bool { return state() == 0 && !in.Throttled() })
	e.Exec(`select parley_flow.apply(jsonb_build_object('host', jsonb_build_object('Receive', jsonb_build_object('role', $1::text, 'publishing_throttling', 'force'))))`, e.receive)
	parleytest.Until(t, "it is throttled because a person says so", func() bool { return state() == 11 && in.Throttled() })
}

// A login that is no member of the role of a host cannot serve it; a member needs nothing else.
func TestRightsOfNodesAreMembershipInTheRole(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	outsider, member := e.Role("outsider"), e.Role("member")
	e.Exec("grant " + sqltest.Quote(e.receive) + ", " + sqltest.Quote(e.send) + " to " + sqltest.Quote(member))
	as := func(role string) func(*host.Config) {
		return func(c *host.Config) { c.Pool = e.poolAs(role) }
	}
	server, err := host.New(host.Config{Pool: e.poolAs(outsider), Hosts: []string{"Receive"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), `permission denied: to serve host "Receive"`) {
		t.Errorf("an outsider gets %v", err)
	}
	idle := e.serve(as(outsider))
	e.serve(as(member))
	e.take("one")
	e.untilSent(1)
	e.untilEmpty()
	if got := idle.Counter("Messaging", "Receive", "Active receive locations"); got != 0 {
		t.Errorf("an outsider serves %v locations", got)
	}
	sqltest.Equal(e.Session, member, "select distinct role from parley_flow._p_host_instance")
}

// Sessions of a node work whatever an administrator has changed for the role or the database.
func TestNodeServesUnderChangedDefaults(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec(`do $$ begin
		execute format('alter database %I set default_transaction_isolation = ''repeatable read''', current_database());
		execute format('alter database %I set statement_timeout = ''20ms''', current_database());
		execute format('alter database %I set search_path = ''nowhere''', current_database());
		execute format('alter database %I set datestyle = ''German''', current_database());
		execute format('alter database %I set bytea_output = ''escape''', current_database());
	end $$`)
	e.serve()
	e.take("one", "two")
	e.untilSent(2)
	e.untilEmpty()
}
