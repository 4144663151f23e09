package publish_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A publication is part of its transaction: a rollback leaves nothing of it, nor of what it caused.
func TestPublishIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	tx := f.Begin()
	tx.PublishFlow("urn:s#Order", `{"urn:p#Amount": 2000}`)
	tx.PublishFlow("nobody", `{}`)
	tx.Exec("rollback")
	sqltest.Equal(f.Session, 0, `select (select count(*) from parley_flow._p_message)::integer + (select count(*) from parley_flow._p_suspended)::integer
		+ (select count(*) from parley_store.work_items)::integer + (select count(*) from parley_flow._p_routing_cause)::integer`)
}

// Each form stores the bytes that were given, and XML says its type itself.
func TestPublishInEachForm(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for form, want := range map[string]string{
		"'<a>ü</a>'::text, message_type => 'T'": "T <a>ü</a>",
		`'\x00ff'::bytea`:                       " \\x00ff",
		`'{"b": 1}'::jsonb`:                     ` {"b": 1}`,
		"'<a xmlns=\"urn:x\"/>'::xml":           `urn:x#a <a xmlns="urn:x"/>`,
		"'<a/>'::xml":                           "a <a/>",
		"'<a/>'::xml, message_type => 'given'":  "given <a/>",
	} {
		id := sqltest.Value[int64](f.Session, "select parley_flow.publish("+form+")")
		got := sqltest.Value[string](f.Session, `select coalesce(m.message_type, '') || ' ' || case when position('\x00'::bytea in m.body) > 0 then m.body::text
			else convert_from(m.body, 'UTF8') end from parley_flow._p_message as m where m.message_id = $1`, id)
		if got != want {
			t.Errorf("%s: stored %q, want %q", form, got, want)
		}
	}
	ids := sqltest.Value[[]int64](f.Session, `select parley_flow.publish_many(array['a', 'b', repeat('c', 20000)]::bytea[],
		properties => array['{"urn:p#Po": "1"}', null, '{}']::jsonb[], message_types => array['x', 'y', null])`)
	sqltest.Equal(f.Session, "1x1 y1 20000", `select string_agg(coalesce(m.promoted ->> 'urn:p#Po', '') || coalesce(m.message_type, '')
		|| m.size, ' ' order by m.message_id) from parley_flow._p_message as m where m.message_id = any ($1)`, ids)
	sqltest.Equal(f.Session, strings.Repeat("c", 20000), "select convert_from(parley_flow.read_message($1), 'UTF8')", ids[2])
	f.RefusesFlow(10, "select parley_flow.publish_many(array['a', 'b']::bytea[], properties => array['{}']::jsonb[])")
	f.RefusesFlow(10, "select parley_flow.publish(null::text)")
	sqltest.Equal(f.Session, 0, "select cardinality(parley_flow.publish_many('{}'))")
}

func TestPublishRefusesPropertiesOfTheEngine(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	for _, properties := range []string{
		`{"ReceivePortName": "In"}`, `{"ErrorReport.FailureCode": "x"}`, `{"MessageID": 1}`, `{"free": 1}`, `{"a#b": {}}`, `{"a#b": [1]}`, `{"a#b#c": 1}`, `[]`, `7`,
		"{\"a\\u0007#b\": 1}",
	} {
		f.RefusesFlow(10, "select parley_flow.publish('x', $1::jsonb)", properties)
		f.RefusesFlow(10, "select parley_flow.publish('x', written => $1::jsonb)", properties)
	}
}

// A value of more than 8,192 bytes is carried, and not routed by; the message is not refused.
func TestLongValuesAreWrittenAndCounted(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	id := sqltest.Value[int64](f.Session, `select parley_flow.publish('x', jsonb_build_object('urn:p#Po', repeat('a', 8193), 'urn:p#Key', repeat('b', 8192)), 'urn:s#Order')`)
	sqltest.Equal(f.Session, "8193 8192", `select length(m.written ->> 'urn:p#Po') || ' ' || length(m.promoted ->> 'urn:p#Key') from parley_flow._p_message as m where m.message_id = $1
		and not m.promoted ? 'urn:p#Po'`, id)
	sqltest.Equal(f.Session, 1, "select value::integer from parley_flow.counters where counter = 'Values too long to promote'")
	id = f.PublishFlow("urn:s#Order", `{"urn:p#Gone": null}`)
	sqltest.Equal(f.Session, false, "select promoted ? 'urn:p#Gone' from parley_flow._p_message where message_id = $1", id)
}

// A second message under a key is the first one, also while the first is not committed; another body under it is refused.
func TestIdempotencyKeyHasOneMessage(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	const publish = "select parley_flow.publish($1::text, message_type => 'urn:s#Order', idempotency_key => 'k')"
	tx := f.Begin()
	first := sqltest.Value[int64](tx, publish, "a")
	second := make(chan int64)
	go func() {
		second <- sqltest.Value[int64](f.Session, publish, "a")
	}()
	f.WaitUntil("select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())")
	tx.Exec("commit")
	if got := <-second; got != first {
		t.Errorf("the second is message %d, the first was %d", got, first)
	}
	f.RefusesFlow(11, publish, "b")
	if got := f.Tx.ClaimFlow("Send"); len(got) != 1 {
		t.Errorf("claimed %+v", got)
	}
}

// Messages that match nothing are suspended, one row a message, and their cause is one row with a count.
func TestRoutingFailuresHaveOneRowForACause(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("select parley_flow.apply(parley_flow.export() #- '{send port,ERP,filter}')") // Big is left: Order and Amount >= 1000
	for range 3 {
		f.Exec("select parley_flow.publish('x', jsonb_build_object('urn:p#Amount', 7, 'urn:p#Po', gen_random_uuid()), 'urn:s#Order')")
	}
	f.Exec("select parley_flow.publish_many(array_fill('x'::bytea, array[5]), message_types => array_fill('urn:s#Order'::text, array[5]))")
	f.Exec("select parley_flow.publish('x')")
	for range 2 {
		sqltest.Equal(f.Session, "ONE_PREDICATE Big urn:p#Amount true 3, ONE_PREDICATE Big urn:p#Amount false 5, UNTYPED Big MessageType false 1", `
			select string_agg(concat_ws(' ', explanation, send_port, missed #>> '{0,property}', missed #>> '{0,is_promoted}', failures), ', ' order by first_at)
			from parley_flow.routing_failures`)
		sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.maintain() where error is not null")
	}
	sqltest.Equal(f.Session, 9, "select count(*)::integer from parley_flow.suspended where code = 'routing.no-subscription' and stage = 'ROUTE'")
	// A port that is not enlisted would get it.
	f.Exec("select parley_flow.unenlist('Big')")
	f.Exec("select parley_flow.publish('x', '{\"urn:p#Amount\": 1000}', 'urn:s#Order')")
	sqltest.Equal(f.Session, "NOT_ENLISTED Big", "select explanation || ' ' || send_port from parley_flow.routing_failures order by first_at desc limit 1")
	f.Exec("select parley_flow.publish('x', written => '{}', message_type => 'other')")
	sqltest.Equal(f.Session, "NO_SUBSCRIPTION", "select explanation from parley_flow.routing_failures order by first_at desc limit 1")
}

// A group that is not enlisted, and a port that is not while its group is, are named as such.
func TestRoutingFailureNamesAGroupThatIsNotEnlisted(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"send port": {
			"One": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/one"},
			"Two": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/two", "state": "Bound"}},
		"send port group": {
			"Away": {"application": "Orders", "ports": ["One"], "state": "Bound", "filter": [[{"property": "MessageType", "operator": "=", "value": "a"}]]},
			"There": {"application": "Orders", "ports": ["Two"], "filter": [[{"property": "MessageType", "operator": "=", "value": "b"}]]}}}')`)
	f.PublishFlow("a", "{}")
	f.PublishFlow("b", "{}")
	sqltest.Equal(f.Session, "NOT_ENLISTED One Away a, NOT_ENLISTED Two There b", `
		select string_agg(concat_ws(' ', explanation, send_port, port_group, message_type), ', ' order by first_at) from parley_flow.routing_failures`)
}

// A port for failed messages, which every application has, is no answer to why an order matched nothing.
func TestPortForFailedMessagesIsNotNearToOthers(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("select parley_flow.apply(parley_flow.export() #- '{send port,ERP,filter}')")
	f.Exec(`select parley_flow.apply('{"send port": {"Errors": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/e",
		"filter": [[{"property": "ErrorReport.ErrorType", "operator": "exists"}]]}}}')`)
	f.PublishFlow("urn:other#Root", "{}")
	f.Exec("select parley_flow.unenlist('Big')")
	f.PublishFlow("urn:other#Root", "{}")
	sqltest.Equal(f.Session, "SEVERAL_PREDICATES Big, NO_SUBSCRIPTION", `
		select string_agg(concat_ws(' ', explanation, send_port), ', ' order by first_at) from parley_flow.routing_failures`)
}

// A warning of the pipeline about two charsets explains a missed value that is not ASCII, since others are the same in both.
func TestRoutingFailureNamesACharsetThatWasDeclaredOtherwise(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("select parley_flow.apply(parley_flow.export() #- '{send port,ERP,filter}')")
	f.SendPort("City", "urn:c#City", `{"filter": [[{"property": "urn:p#Po", "operator": "=", "value": "K\u00f6ln"}]]}`)
	for _, city := range []string{"KÃ¶ln", "Bonn"} {
		f.Exec(`select parley_flow.publish('x', jsonb_build_object('urn:p#Po', $1::text), 'urn:c#City',
			written => '{"urn:parley:pipeline#Warning": "the setting says windows-1252, the declaration UTF-8, which was taken"}')`, city)
	}
	f.Exec("select parley_flow.publish('x', '{\"urn:p#Po\": \"Düren\"}', 'urn:c#City')")
	sqltest.Equal(f.Session, "ENCODING City KÃ¶ln, ONE_PREDICATE City Bonn", `
		select string_agg(concat_ws(' ', explanation, send_port, sample ->> 'urn:p#Po'), ', ' order by first_at) from parley_flow.routing_failures`)
}

// Error ports of applications that were carried over ask for one number, which all refusals of a receive pipeline have.
func TestRefusalsOfReceivePipelinesHaveTheOriginalsNumber(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	sqltest.Equal(f.Session, "receive.charset receive.disassemble receive.empty receive.pipeline receive.record receive.too-large receive.validate", `
		select string_agg(code, ' ' order by code collate "C") from parley_flow.failure_codes where original = '0xc0c01657'`)
}

// With failed-message routing what matches nothing is published with ErrorReport properties, and the original's code.
func TestFailedMessagesAreRouted(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	id := sqltest.Value[int64](f.Session, "select parley_flow.publish('x', '{\"urn:p#Po\": \"1\"}', 'unknown', receive_port => 'Routing in')")
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow.suspended where message_id = $1", id) // nobody asks for it
	f.Exec(`select parley_flow.apply('{"send port": {"Errors": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/e",
		"filter": [[{"property": "ErrorReport.FailureCode", "operator": "=", "value": "0xc0c01680"}]]}}}')`)
	id = sqltest.Value[int64](f.Session, "select parley_flow.publish('x', '{\"urn:p#Po\": \"1\"}', 'unknown', receive_port => 'Routing in')")
	sqltest.Equal(f.Session, "FailedMessage unknown Routing in 1 false", `
		select concat_ws(' ', promoted ->> 'ErrorReport.ErrorType', promoted ->> 'ErrorReport.MessageType', promoted ->> 'ErrorReport.ReceivePortName',
			written ->> 'urn:p#Po', (promoted ? 'urn:p#Po')::text)
		from parley_flow._p_claim('Send', 'x') where send_port = 'Errors' and (written ->> 'ErrorReport.FailureMessageID')::bigint = $1`, id)
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow.suspended")
}

// A group delivers to each of its ports, and a message reaches a port once, whatever matches.
func TestMessageReachesAPortOnce(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"send port group": {
		"All": {"application": "Orders", "ports": ["ERP", "Big"], "filter": [[{"property": "MessageType", "operator": "exists"}]]},
		"Again": {"application": "Orders", "ports": ["ERP"], "filter": [[{"property": "MessageID", "operator": "exists"}], [{"property": "MessageType", "operator": "exists"}]]}}}')`)
	f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 5000}`)
	f.PublishFlow("other", `{}`)
	f.Exec("select parley_flow.publish('untyped')")
	sqltest.Equal(f.Session, "Big Big ERP ERP ERP", "select string_agg(send_port, ' ' order by send_port) from parley_flow._p_claim('Send', 'x')")
	f.Exec("select parley_flow.unenlist('Again', 'send port group'), parley_flow.unenlist('ERP')")
	f.PublishFlow("other", `{}`)
	sqltest.Equal(f.Session, "Big", "select string_agg(send_port, ' ' order by send_port) from parley_flow._p_claim('Send', 'x')")
}

func TestQuotaOfWhoPublishes(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	role := f.Role("shop")
	f.Exec("select parley_flow.grant_right('PUBLISH', $1), parley_flow.set_quota($1, messages_per_minute => 3, bytes_per_minute => 100)", role)
	s := f.As(role)
	s.PublishFlow("urn:s#Order", `{}`)
	s.RefusesFlow(13, "select parley_flow.publish_many(array_fill('x'::bytea, array[3]))")
	s.RefusesFlow(13, "select parley_flow.publish(repeat('x', 100))")
	s.PublishFlow("urn:s#Order", `{}`)
	f.Exec("select parley_flow.drop_quota($1)", role)
	s.Exec("select parley_flow.publish(repeat('x', 100))")
}

// Of a message that its pipeline passes through, which has no type and nothing of its body promoted, all that filters ask of the body is missed
// for one reason, whichever properties they name. A property that does not come of the body is another one.
func TestRoutingFailureNamesAPipelineThatPassesThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ filters, want string }{
		"a property, not the type":  {`{"A": [["urn:p#Po"]]}`, "UNTYPED A urn:p#Po/UNTYPED"},
		"the type and a property":   {`{"A": [["MessageType", "urn:p#Po"]]}`, "UNTYPED A MessageType/UNTYPED urn:p#Po/UNTYPED"},
		"a group that is satisfied": {`{"A": [["ReceivePortName", "urn:p#Po", "urn:p#Amount"]]}`, "UNTYPED A urn:p#Po/UNTYPED urn:p#Amount/UNTYPED"},
		"one port of several": {
			`{"A": [["SourceFileName"]], "B": [["ReceivePortName", "urn:p#Po"]], "C": [["MessageType"]]}`, "UNTYPED B urn:p#Po/UNTYPED",
		},
		"an OR group of several":       {`{"A": [["SourceFileName", "InboundTransportType"], ["urn:p#Po"]]}`, "UNTYPED A urn:p#Po/UNTYPED"},
		"also something else":          {`{"A": [["SourceFileName", "urn:p#Po"]]}`, "SEVERAL_PREDICATES A SourceFileName urn:p#Po/UNTYPED"},
		"only something else":          {`{"A": [["ReceivePortName", "SourceFileName"]]}`, "ONE_PREDICATE A SourceFileName"},
		"nothing that a type promotes": {`{"A": [["urn:parley:http#Method"]]}`, "ONE_PREDICATE A urn:parley:http#Method"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := sqltest.NewFlow(t)
			f.Exec(`select parley_flow.apply(parley_flow.export() #- '{send port,ERP,filter}' #- '{send port,Big,filter}'
				|| '{"property schema": {"urn:parley:http": {"application": "Orders", "properties": {"Method": {}}}}}')`)
			f.Exec(`select parley_flow.apply(jsonb_build_object('send port', (
				select jsonb_object_agg(s.key, jsonb_build_object('application', 'Orders', 'host', 'Send', 'adapter', 'FILE', 'address', '/x', 'filter', (
					select jsonb_agg((select jsonb_agg(jsonb_build_object('property', p.name, 'operator', '=', 'value', case p.name when 'ReceivePortName' then 'In' else '7' end))
						from jsonb_array_elements_text(g.value) as p (name))) from jsonb_array_elements(s.value) as g)))
				from jsonb_each($1::jsonb) as s)))`, c.filters)
			f.Rx.Exec(`select parley_flow._p_receive(host => 'Receive', location => 'Folder', bodies => array['x'::bytea])`)
			sqltest.Equal(f.Session, c.want, `
				select concat_ws(' ', explanation, send_port, (
					select string_agg(concat_ws('/', p ->> 'property', p ->> 'explanation'), ' ') from jsonb_array_elements(missed) as p))
				from parley_flow.routing_failures`)
		})
	}
}

// A publisher whose message matches nothing waits for nobody: also not for one that met the same cause first, and whose transaction is open.
func TestPublisherDoesNotWaitForTheCauseOfAnother(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	slow, old := f.Begin(), f.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.Exec("select")
	f.Exec("set statement_timeout = '20s'")
	for _, s := range []sqltest.Session{slow, f.Session, old} {
		s.PublishFlow("nobody asks", "{}")
	}
	sqltest.Equal(f.Session, 1, "select failures::integer from parley_flow.routing_failures")
	f.Exec("select parley_flow.maintain()")
	old.PublishFlow("nobody asks", "{}")
	slow.Exec("commit")
	old.Exec("commit")
	for range 2 {
		sqltest.Equal(f.Session, 4, "select failures::integer from parley_flow.routing_failures")
		sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.maintain() where error is not null")
	}
	sqltest.Equal(f.Session, 4, "select count(*)::integer from parley_flow.suspended as s join parley_flow.routing_failures as f using (cause_id)")
}

// A send port may be dropped between the moment a publisher finds it and the moment it makes the delivery: the message waits for an operator.
func TestAMessageWhosePortIsDroppedWhileItIsPublishedIsSuspended(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	stopping := f.Connection()
	stopping.Exec("begin; lock table parley_flow._p_message in share mode")
	publisher := f.Connection()
	published := make(chan struct{})
	go func() {
		defer close(published)
		publisher.PublishFlow("urn:s#Order", `{"urn:p#Amount": 2000}`)
	}()
	f.WaitUntil("select count(*) = 1 from pg_locks where relation = 'parley_flow._p_message'::regclass and not granted")
	f.Exec("select parley_flow.unenlist('ERP')")
	f.Exec(`select parley_flow.apply(prune => true, definitions => (
		select jsonb_object_agg(o.kind, o.objects)
		from (
			select d.kind, jsonb_object_agg(d.name, d.settings) as objects
			from parley_flow.definitions as d
			where d.name <> 'ERP'
			group by d.kind
		) as o))`)
	stopping.Exec("commit")
	<-published
	sqltest.Equal(f.Session, "Big", "select string_agg(l.lane, ' ') from parley_store.lanes as l where parley_store.has_work(l.system, l.lane)")
	sqltest.Equal(f.Session, "SEND send.port-gone", "select string_agg(stage || ' ' || code, ',') from parley_flow.suspended")
	sqltest.Equal(f.Session, 1, `select parley_flow.terminate_suspended('{"code": "send.port-gone"}')`)
	sqltest.Equal(f.Session, 1, "select count(*) from parley_flow.messages")
}
