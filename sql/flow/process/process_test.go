package process_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// An instance waits by equalities of properties and a filter besides; it gets a message once, however many of its waits fit.
func TestInstancesWaitByProperties(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"orchestration": {"Waits": {"application": "Orders", "host": "Send", "body": [],
		"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "begins"}]]}]}}}')`)
	f.Exec(`insert into parley_flow._p_instance (instance_id, send_port_id, version, status)
		select g.n, s.send_port_id, 1, 'WAITING' from generate_series(1, 3) as g (n), parley_flow._p_send_port as s where s.name = 'Waits'`)
	f.Exec(`select parley_flow._p_change_waits(array[1, 2, 3], array(
		select jsonb_populate_record(null::parley_flow._p_step, jsonb_build_object('n', w.n, 'status', 'WAITING', 'waits', w.waits))
		from (values
			(1, '[{"id": "a", "receive": "1", "equal": {"urn:p#Amount": "7", "urn:p#Po": "a"}}, {"id": "b", "receive": "2", "equal": {"urn:p#Amount": "7.0"}}]'::jsonb),
			(2, '[{"id": "a", "receive": "1", "equal": {"urn:p#Amount": "7", "urn:p#Po": "b"}}]'),
			(3, '[{"id": "a", "receive": "1", "equal": {"urn:p#Amount": "7"},
				"filter": [{"property": "MessageType", "operator": "in", "value": ["other", "third"]}]}]')
		) as w (n, waits)))`)
	found := func(messageType, properties string) string {
		f.Helper()
		id := f.PublishFlow(messageType, properties)
		return sqltest.Value[string](f.Session, `select coalesce(string_agg(convert_from(i.data, 'UTF8'), ' ' order by i.item_id), '-')
			from parley_store._p_item as i where i.subject = $1`, id)
	}
	for _, c := range []struct{ messageType, properties, want string }{
		{"other", `{"urn:p#Amount": 7.0, "urn:p#Po": "a"}`, "i1 i3"},
		{"fourth", `{"urn:p#Amount": 7, "urn:p#Po": "b"}`, "i1 i2"},
		{"other", `{"urn:p#Amount": 8, "urn:p#Po": "a"}`, "-"},
		{"other", `{"urn:p#Po": "a"}`, "-"},
	} {
		if got := found(c.messageType, c.properties); got != c.want {
			t.Errorf("%s with %s goes to %s, not to %s", c.messageType, c.properties, got, c.want)
		}
	}
	sqltest.Equal(f.Session, 2, "select count(*)::integer from parley_flow._p_suspended where stage = 'ROUTE'")
}

// desk is a database with an orchestration of a host, whose steps a test makes by hand.
type desk struct {
	sqltest.Flow
}

func newDesk(t *testing.T, settings, convoy string) desk {
	t.Helper()
	d := desk{sqltest.NewFlow(t)}
	d.Exec(`select parley_flow.apply(('{"orchestration": {"Waits": {"application": "Orders", "host": "Send", "body": [], ' || $1 ||
		'"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "begins"}]], "convoy": ' || $2 || '}]}}}')::jsonb)`,
		settings, convoy)
	return d
}

// instance makes one that waits for messages of the order a, and gives its number.
func (d desk) instance() (number int64) {
	d.Helper()
	return sqltest.Value[int64](d.Session, `
		with made as (
			insert into parley_flow._p_instance (send_port_id, version, status, state, began_at)
			select s.send_port_id, 1, 'WAITING', '{}', clock_timestamp() from parley_flow._p_send_port as s where s.name = 'Waits'
			returning instance_id
		)
		select m.instance_id from made as m, parley_flow._p_change_waits(array[m.instance_id], array[
			jsonb_populate_record(null::parley_flow._p_step, jsonb_build_object('n', 1, 'status', 'WAITING', 'waits', jsonb_build_array(
				jsonb_build_object('id', 'a', 'receive', '1', 'is_open', true, 'equal', jsonb_build_object('urn:p#Po', 'a')))))
		])`)
}

// ends makes an instance end.
func (d desk) ends(s sqltest.Session, instance int64) {
	d.Helper()
	s.Exec(`select parley_flow._p_terminate_instances(array[$1::bigint], 'test')`, instance)
}

// claimed is a delivery in the hands of the host.
type claimed struct {
	Lease, Item, Message int64
	Stage, Key           string
}

func (d desk) claim() []claimed {
	d.Helper()
	found := []claimed{}
	for _, row := range sqltest.Values[string](d.Session, `select format('%s %s %s %s %s', c.lease_id, c.item_id, coalesce(c.message_id, 0), c.stage,
		coalesce(c.order_key, '-')) from parley_flow._p_claim('Send', 'test') as c order by c.n`) {
		c := claimed{}
		if _, err := fmt.Sscan(row, &c.Lease, &c.Item, &c.Message, &c.Stage, &c.Key); err != nil {
			d.Fatal(err)
		}
		found = append(found, c)
	}
	return found
}

// An instance may end while a message for it is being published by a transaction that saw it wait: the message is not lost.
func TestAMessageOfAnOpenTransactionOutlivesItsInstance(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "[]")
	first := d.instance()
	publisher := d.Connection()
	publisher.Exec("begin")
	publisher.PublishFlow("other", `{"urn:p#Po": "a"}`)
	d.ends(d.Session, first)
	second := d.instance() // it began after the message was published
	publisher.Exec("commit")
	got := d.claim()
	if len(got) != 1 || got[0].Stage != "PROCESS" {
		t.Fatalf("claimed are %+v", got)
	}
	d.Exec(`select parley_flow._p_advance('Send', 'Waits', array[$1::bigint], array[$2::bigint],
		unread => jsonb_build_array(jsonb_build_object('instance', $3::bigint, 'message', $4::bigint, 'came_by', $5::text)))`,
		got[0].Lease, got[0].Item, first, got[0].Message, got[0].Key)
	again := d.claim()
	if len(again) != 1 || again[0].Message != got[0].Message || again[0].Key != sqltest.Value[string](d.Session, "select 'i' || $1::bigint", second) {
		t.Fatalf("the other instance gets %+v", again)
	}
	// A third time there is no instance, and the message waits for an operator.
	d.ends(d.Session, second)
	d.Exec(`select parley_flow._p_advance('Send', 'Waits', array[$1::bigint], array[$2::bigint],
		unread => jsonb_build_array(jsonb_build_object('instance', $3::bigint, 'message', $4::bigint, 'came_by', $5::text)))`,
		again[0].Lease, again[0].Item, second, again[0].Message, again[0].Key)
	sqltest.Equal(d.Session, "PROCESS process.unread", "select string_agg(stage || ' ' || code, ',') from parley_flow._p_suspended")
}

// A publisher may find an instance that has ended when it makes the delivery, a statement later: the message is not lost either.
func TestAMessageOutlivesAnInstanceThatEndsWhileItIsPublished(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "[]")
	instance := d.instance()
	// Publishers stop between looking for who waits and making the delivery.
	stopping := d.Connection()
	stopping.Exec("begin; lock table parley_flow._p_message in share mode")
	publisher := d.Connection()
	published := make(chan struct{})
	go func() {
		defer close(published)
		publisher.PublishFlow("other", `{"urn:p#Po": "a"}`)
	}()
	d.WaitUntil("select count(*) = 1 from pg_locks where relation = 'parley_flow._p_message'::regclass and not granted")
	d.ends(d.Session, instance)
	stopping.Exec("commit")
	<-published
	got := d.claim()
	if len(got) != 1 || got[0].Stage != "PROCESS" || got[0].Key != sqltest.Value[string](d.Session, "select 'i' || $1::bigint", instance) {
		t.Fatalf("claimed are %+v", got)
	}
	d.Exec(`select parley_flow._p_advance('Send', 'Waits', array[$1::bigint], array[$2::bigint],
		unread => jsonb_build_array(jsonb_build_object('instance', $3::bigint, 'message', $4::bigint, 'came_by', $5::text)))`,
		got[0].Lease, got[0].Item, instance, got[0].Message, got[0].Key)
	sqltest.Equal(d.Session, "PROCESS process.unread", "select string_agg(stage || ' ' || code, ',') from parley_flow._p_suspended")
}

// A message that an instance could not take yet is decided about by the transaction that ends the instance.
func TestTheEndOfAnInstanceDecidesAboutWhatItHasNotRead(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"dead_letter": "process.unread", "republish": "process.unread", "hand_over": ""} {
		d := newDesk(t, `"unread": "`+policy+`", `, "[]")
		one := d.instance()
		id := d.PublishFlow("begins", `{"urn:p#Po": "a"}`)
		d.Exec(`insert into parley_flow._p_instance_event (instance_id, kind, message_id, came_by) values ($1, 'RECEIVED', $2, 'i' || $1::bigint)`, one, id)
		d.ends(d.Session, one)
		sqltest.Equal(d.Session, want, "select coalesce(string_agg(code, ','), '') from parley_flow._p_suspended")
		items := map[string]int{"hand_over": 3}[policy]
		if items == 0 {
			items = 2 // one of the activation, one that came for the instance
		}
		sqltest.Equal(d.Session, items, "select count(*)::integer from parley_store._p_item where subject = $1", id)
	}
}

// An orchestration that was enlisted and stopped gets each message that waited, once, when it is started.
func TestAStoppedOrchestrationDeliversWhatWaitedOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t, `"state": "Stopped", `, `["urn:p#Po"]`)
	for range 20 {
		d.PublishFlow("begins", `{"urn:p#Po": "a"}`)
		d.PublishFlow("begins", `{"urn:p#Po": "b"}`)
	}
	if got := d.claim(); len(got) != 0 {
		t.Fatalf("of a stopped one are claimed %+v", got)
	}
	d.Exec("select parley_flow.start('Waits', 'orchestration')")
	d.Exec("select parley_flow.stop('Waits', 'orchestration')")
	d.Exec("select parley_flow.start('Waits', 'orchestration')")
	seen := map[int64]int{}
	for range 5 {
		for _, c := range d.claim() {
			seen[c.Message]++
			if c.Key != "ka" && c.Key != "kb" {
				t.Errorf("%+v is of no convoy", c)
			}
		}
	}
	if len(seen) != 40 {
		t.Errorf("%d messages were claimed", len(seen))
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("message %d was claimed %d times", id, times)
		}
	}
}

// A step whose lease is over changes nothing, and neither does one that names what is not the host's.
func TestAStepWithoutItsLeaseIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "[]")
	id := d.PublishFlow("begins", `{}`)
	got := d.claim()
	d.Exec("select parley_flow._p_release('Send', $1)", got[0].Lease)
	const advance = `select parley_flow._p_advance('Send', 'Waits', array[$1::bigint], array[$2::bigint], ended => array[$3::bigint])`
	d.RefusesFlow(7, advance, got[0].Lease, got[0].Item, id)
	got = d.claim()
	other := d.PublishFlow("other", `{"urn:p#Po": "of nobody"}`)
	d.RefusesFlow(6, advance, got[0].Lease, got[0].Item, other)
	d.Exec(advance, got[0].Lease, got[0].Item, id)
	sqltest.Equal(d.Session, 0, "select count(*)::integer from parley_flow._p_message where message_id = $1", id)
}

// An orchestration with instances is not dropped; another version says how many go on with the old one.
func TestVersionsLiveSideBySide(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "[]")
	d.instance()
	d.RefusesFlow(3, `select parley_flow.apply('{"application": {"Orders": {}}}', prune => true)`)
	const apply = `select string_agg(action || ' ' || setting || ' ' || (old_value ->> 'version') || ' ' || (old_value ->> 'instances'), ',')
		from parley_flow.apply(('{"orchestration": {"Waits": {"application": "Orders", "host": "Send", "body": [{"x": ' || $2 || '}], "running": "' || $1 || '"}}}')::jsonb)
		where action = 'instances'`
	sqltest.Equal(d.Session, "instances keep 1 1", apply, "keep", "1")
	sqltest.Equal(d.Session, "1", "select string_agg(version::text, ',') from parley_flow._p_instance")
	// The state is one of its version: the program that knows both migrates it, and one without a state goes on at once.
	d.Exec(`insert into parley_flow._p_instance (send_port_id, version, status) select s.send_port_id, 1, 'NEW' from parley_flow._p_send_port as s
		where s.name = 'Waits'`)
	sqltest.Equal(d.Session, "instances migrate 1 2", apply, "migrate", "2")
	sqltest.Equal(d.Session, "1,3", "select string_agg(version::text, ',' order by version) from parley_flow._p_instance")
	d.migrates()
	sqltest.Equal(d.Session, "instances terminate 3 2", apply, "terminate", "3")
	d.Exec("select parley_flow.maintain()")
	sqltest.Equal(d.Session, 0, "select count(*)::integer from parley_flow._p_instance")
}

// migrates holds that who administers and reads contents migrates the instance of version 1, once, to waits that the version has.
func (d desk) migrates() {
	d.Helper()
	const given = "select format('%s %s %s', version, newest, state) from parley_flow.instances_to_migrate('Waits')"
	sqltest.Equal(d.Session, "1 3 {}", given)
	role := d.Role("migrator")
	d.Exec("select parley_flow.grant_right('ADMINISTER', $1)", role)
	s := d.As(role)
	s.RefusesFlow(1, given)
	d.Exec("select parley_flow.grant_right('READ_CONTENT', $1, application => 'Orders')", role)
	sqltest.Equal(s, "1 3 {}", given)
	const migrate = `select parley_flow.migrate_instances('Waits', jsonb_build_array(jsonb_build_object('instance',
		(select min(instance_id) from parley_flow.instances), 'version', 1, 'waits', $1::jsonb, 'timers', '[{"id": "t", "at": "2030-01-01T00:00:00Z"}]'::jsonb,
		'stands_at', '["body/1"]'::jsonb)), array['{"of": 3}'])`
	s.RefusesFlow(6, migrate, `[{"id": "w", "receive": "1", "equal": {"urn:p#Po": "a"}, "filter": []}]`)
	sqltest.Equal(s, 1, migrate, "[]")
	sqltest.Equal(d.Session, "3 {\"of\": 3} body/1 0 1 RESUMED", `
		select concat_ws(' ', i.version, i.state, i.stands_at[1], (select count(*) from parley_flow._p_instance_wait as w where w.instance_id = i.instance_id),
			(select count(*) from parley_flow._p_instance_timer as t where t.instance_id = i.instance_id),
			(select e.kind from parley_flow._p_instance_event as e where e.instance_id = i.instance_id))
		from parley_flow._p_instance as i where i.state is not null`)
	s.RefusesFlow(15, migrate, "[]")
}

// Operators are told of instances that are suspended and of orchestrations that are stopped, and counters have how many instances there are.
func TestDiagnosisAndCountersHaveInstances(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "", "[]")
	const findings = `select coalesce(string_agg(concat_ws(' ', code, object_kind, object_name, cause), '; ' order by code), '')
		from parley_flow._p_find_faults('RUNTIME', '0') where object_kind = 'orchestration' or code like 'flow-port%'`
	sqltest.Equal(d.Session, "", findings)
	d.instance()
	d.instance()
	failed := d.instance()
	d.Exec(`update parley_flow._p_instance set status = 'SUSPENDED', fault = '{"code": "size"}' where instance_id = $1`, failed)
	sqltest.Equal(d.Session, "flow-instances-suspended orchestration Waits 1 instances with code size.", findings)
	sqltest.Equal(d.Session, "Instances 3, Instances retrying 0, Instances suspended 1, Instances waiting 2", `select
		string_agg(counter || ' ' || value, ', ' order by counter) from parley_flow.counters where object = 'Orchestrations' and instance = 'Send'`)
	d.ends(d.Session, failed)
	d.Exec("select parley_flow.stop('Waits', 'orchestration')")
	sqltest.Equal(d.Session, "", findings)
	d.PublishFlow("begins", `{}`)
	sqltest.Equal(d.Session, "flow-orchestration-stopped orchestration Waits It is stopped.", findings)
	d.Exec("do $$ begin execute (select cure from parley_flow._p_find_faults('RUNTIME', '0') where code = 'flow-orchestration-stopped'); end $$")
	sqltest.Equal(d.Session, "", findings)
}
