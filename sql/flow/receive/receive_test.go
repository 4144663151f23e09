package receive_test

import (
	"crypto/sha256"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const receiveFile = `select outcome from parley_flow._p_receive(host => 'Receive', location => 'Folder', bodies => array[$1::bytea],
	message_types => array['urn:s#Order'], keys => array[$2::text], entries => array['{"name": "a.xml"}'::jsonb])`

// The ledger and the messages are one transaction: a source that comes again gives nothing, also from another node at the same time.
func TestLedgerTakesASourceOnce(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	tx := f.Begin()
	sqltest.Equal(tx, "PUBLISHED", receiveFile, []byte("x"), "a.xml 1")
	tx.Exec("rollback")
	tx = f.Begin()
	sqltest.Equal(tx, "PUBLISHED", receiveFile, []byte("x"), "a.xml 1")
	second := make(chan string)
	go func() { second <- sqltest.Value[string](f.Rx, receiveFile, []byte("x"), "a.xml 1") }()
	f.WaitUntil("select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())")
	tx.Exec("commit")
	if got := <-second; got != "REPEATED" {
		t.Errorf("got %s, want REPEATED", got)
	}
	sqltest.Equal(f.Rx, "PUBLISHED", receiveFile, []byte("y"), "a.xml 2") // the same name, other content
	if got := f.Tx.ClaimFlow("Send"); len(got) != 2 {
		t.Errorf("claimed %+v", got)
	}
	sqltest.Equal(f.Rx, "a.xml 1", "select array_to_string(parley_flow._p_known('Receive', 'Folder', array['a.xml 1', 'b']), ' ')")
	sqltest.Equal(f.Rx, 2, "select count(*)::integer from parley_flow._p_taken('Receive', 'Folder')")
	sqltest.Equal(f.Rx, 1, "select parley_flow._p_removed('Receive', 'Folder', array['a.xml 1', 'c'])")
	sqltest.Equal(f.Rx, "a.xml 2", "select key from parley_flow._p_taken('Receive', 'Folder')")
	// An input whose source was removed is remembered as long as the retention says, and any other for ever.
	f.Exec("update parley_flow._p_ledger set removed_at = removed_at - interval '31 days', taken_at = taken_at - interval '1 year'; select parley_flow.maintain()")
	sqltest.Equal(f.Session, "a.xml 2", "select string_agg(key, ' ') from parley_flow._p_ledger")
}

// One call may bring several inputs of several messages; what is known is left out, and messages of one input belong together.
func TestReceiveTakesInputsOfSeveralMessages(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	receive := func(keys ...string) string {
		return sqltest.Value[string](f.Rx, `select string_agg(n || ' ' || outcome, ', ' order by n) from parley_flow._p_receive(host => 'Receive', location => 'Folder',
			bodies => array['a1', 'a2', 'b1']::bytea[], message_types => array['urn:s#Order', 'urn:s#Order', 'urn:s#Order'], inputs => array[1, 1, 2], keys => $1)`, keys)
	}
	if got := receive("a", "b", "consumed"); got != "1 PUBLISHED, 2 PUBLISHED, 3 PUBLISHED" {
		t.Error(got)
	}
	if got := receive("a", "c", "consumed"); got != "1 REPEATED, 2 REPEATED, 3 PUBLISHED" {
		t.Error(got)
	}
	if got := receive("d", "d", "x"); got != "1 PUBLISHED, 2 PUBLISHED, 3 REPEATED" {
		t.Error(got)
	}
	sqltest.Equal(f.Session, 2, `select count(*)::integer from parley_flow._p_message as a join parley_flow._p_message as b on b.interchange_id = a.message_id
		where a.body = 'a1' and b.body = 'a2'`)
	f.Rx.RefusesFlow(10, "select parley_flow._p_receive('Receive', 'Folder', array['a']::bytea[], inputs => array[2], keys => array['q'])")
	f.Rx.RefusesFlow(10, "select parley_flow._p_receive('Receive', 'Folder', array['a']::bytea[], promoted => array[]::jsonb[])")
	f.Rx.RefusesFlow(10, "select parley_flow._p_receive('Receive', 'Folder', array[null]::bytea[])")
}

// Properties that follow from the location are promoted, and a host cannot set what the engine alone knows.
func TestMessagesHaveThePropertiesOfTheirLocation(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Rx.Exec(`select parley_flow._p_receive('Receive', 'Folder', array['x']::bytea[], promoted => array['{"urn:p#Po": "1", "SourceFileName": "a.xml", "ReceivePortName": "lie"}'::jsonb],
		message_types => array['urn:s#Order'])`)
	sqltest.Equal(f.Session, `{"urn:p#Po": "1", "MessageType": "urn:s#Order", "SourceFileName": "a.xml", "ReceivePortName": "In", "ReceiveLocationName": "Folder", "InboundTransportType": "FILE", "InboundTransportLocation": "/in/*.xml"}`,
		"select promoted::text from parley_flow._p_message")
	f.Rx.RefusesFlow(10, `select parley_flow._p_receive('Receive', 'Folder', array['x']::bytea[], promoted => array['{"MessageID": 1}'::jsonb])`)
}

// A disabled location takes nothing, and one of another host is none.
func TestReceiveIsForLocationsThatAreEnabled(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("select parley_flow.disable('Folder')")
	f.Rx.RefusesFlow(15, "select parley_flow._p_receive('Receive', 'Folder', array['x']::bytea[])")
	f.Rx.RefusesFlow(6, "select parley_flow._p_receive('Receive', 'Other', array['x']::bytea[])")
	f.Tx.RefusesFlow(1, "select parley_flow._p_receive('Receive', 'Folder', array['x']::bytea[])")
	f.Tx.RefusesFlow(6, "select parley_flow._p_receive('Send', 'Folder', array['x']::bytea[])")
	f.Rx.Exec("begin isolation level repeatable read")
	f.Rx.RefusesFlow(16, "select parley_flow._p_receive('Receive', 'Routing folder', array['x']::bytea[])")
	f.Rx.Exec("rollback")
}

// Good messages of an interchange go on, and those that failed in the pipeline are suspended one by one.
func TestGoodMessagesOfAnInterchangeGoOn(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	const receive = `select string_agg(outcome, ' ' order by n) from parley_flow._p_receive('Receive', $1, array['good', 'bad', 'good']::bytea[],
		message_types => array['urn:s#Order', null, 'urn:s#Order'], failure_codes => array[null, $2, null], failure_errors => array[null, 'record 2, field 3', null])`
	sqltest.Equal(f.Rx, "PUBLISHED SUSPENDED PUBLISHED", receive, "Folder", "receive.record")
	sqltest.Equal(f.Session, "RECEIVE Folder receive.record record 2, field 3", "select concat_ws(' ', stage, location, code, error) from parley_flow.suspended")
	f.Rx.RefusesFlow(10, receive, "Folder", "made up")
	sqltest.Equal(f.Rx, "PUBLISHED SUSPENDED PUBLISHED", receive, "Folder", "x-own")
	f.Exec(`select parley_flow.apply('{"send port": {"Errors": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/e",
		"filter": [[{"property": "ErrorReport.ReceivePortName", "operator": "=", "value": "Routing in"}]]}}}')`)
	sqltest.Equal(f.Rx, "PUBLISHED FAILED_ROUTED PUBLISHED", receive, "Routing folder", "receive.record")
	sqltest.Equal(f.Session, 2, "select count(*)::integer from parley_flow.suspended")
	// Resumed into the pipeline, it comes out of the claim of its host, and what the pipeline gives then takes its place.
	sqltest.Equal(f.Session, 1, "select parley_flow.resume_suspended('{\"code\": \"receive.record\"}')")
	claimed := f.Rx.ClaimFlow("Receive")
	if len(claimed) != 1 || claimed[0].Port != ">Folder" {
		t.Fatalf("claimed %+v", claimed)
	}
	sqltest.Equal(f.Rx, "PUBLISHED", `select outcome from parley_flow._p_receive('Receive', 'Folder', array['mended']::bytea[], message_types => array['urn:s#Order'],
		resubmission_lease => $1, resubmission_item => $2)`, claimed[0].Lease, claimed[0].Item)
	sqltest.Equal(f.Session, true, "select parent_id = $1 from parley_flow._p_message where body = 'mended'", claimed[0].Message)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message where message_id = $1", claimed[0].Message)
	sqltest.Equal(f.Session, "DESCENDANT", "select distinct relation from parley_flow.track($1) where relation <> 'SELF'", claimed[0].Message)
}

// A body may come in pieces, is there when its message is, and goes when nobody has named it in time.
func TestBodiesAreStreamed(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	body := make([]byte, 700000)
	for i := range body {
		body[i] = byte(i * 7)
	}
	stream := func() int64 {
		id := sqltest.Value[int64](f.Rx, "select content_id from parley_flow._p_begin_body('Receive')")
		f.Rx.Exec("select parley_flow._p_append_body('Receive', $1, 0, $2)", id, body[:524288])
		f.Rx.Exec("select parley_flow._p_append_body('Receive', $1, 1, $2)", id, body[524288:])
		sum := sha256.Sum256(body)
		f.Rx.Exec("select parley_flow._p_finish_body('Receive', $1, $2, $3)", id, len(body), sum[:])
		return id
	}
	id := stream()
	f.Tx.RefusesFlow(6, "select parley_flow._p_append_body('Send', $1, 2, 'x')", id)
	const receive = `select outcome from parley_flow._p_receive('Receive', 'Folder', array[null]::bytea[], message_types => array['urn:s#Order'], contents => array[$1::bigint], keys => array['k'])`
	sqltest.Equal(f.Rx, "PUBLISHED", receive, id)
	f.Rx.RefusesFlow(6, receive, id)
	sqltest.Equal(f.Rx, "REPEATED", receive, stream())
	var got []byte
	var message, content int64
	if err := f.Tx.DB.QueryRow(t.Context(), "select message_id, content_id from parley_flow._p_claim('Send', 'x')").Scan(&message, &content); err != nil {
		t.Fatal(err)
	}
	for number := range 2 {
		got = append(got, sqltest.Value[[]byte](f.Tx, "select body from parley_flow._p_read_body('Send', $1, $2, $3, $3)", message, content, number)...)
	}
	if string(got) != string(body) {
		t.Errorf("read %d bytes that are not those that were written", len(got))
	}
	f.Rx.RefusesFlow(6, "select parley_flow._p_read_body('Receive', $1, $2, 0, 0)", message, content) // not in its hands
	stream()
	f.Exec("update parley_flow._p_begun_body set begun_at = begun_at - interval '3 hours'; select parley_flow.maintain(); select parley_store.collect_content()")
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_store._p_content")
}

// The matches of a host count as long as its epoch is that of the database.
func TestEpochSaysWhetherWhatWasMatchedCounts(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	big := sqltest.Value[int64](f.Tx, "select (parley_flow._p_configuration('Send') #>> '{send_ports,Big,send_port}')::bigint")
	epoch := sqltest.Value[int64](f.Rx, "select (parley_flow._p_configuration('Receive') ->> 'epoch')::bigint")
	for n, want := range []string{"Big", "ERP"} {
		f.Rx.Exec(`select parley_flow._p_receive('Receive', 'Folder', array['x']::bytea[], message_types => array['urn:s#Order'], epoch => $1, matched_messages => array[1],
			matched_ports => array[$2::bigint])`, epoch, big)
		claimed := f.Tx.ClaimFlow("Send")
		if len(claimed) != 1 || claimed[0].Port != want {
			t.Errorf("%d: claimed %+v, want %s", n, claimed, want)
		}
		f.Tx.CompleteFlow("Send", claimed...)
		f.SendPort("More", "more", "{}")
	}
}

// An input of more messages than one call brings is one interchange.
func TestLaterCallsGoOnWithAnInterchange(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	first := sqltest.Value[int64](f.Rx, `select message_id from parley_flow._p_receive('Receive', 'Folder', array['a']::bytea[], message_types => array['urn:s#Order'], keys => array['k'])`)
	sqltest.Equal(f.Rx, "PUBLISHED PUBLISHED", `select string_agg(outcome, ' ') from parley_flow._p_receive('Receive', 'Folder', array['b', 'c']::bytea[],
		message_types => array['urn:s#Order', 'urn:s#Order'], inputs => array[1, 1], interchange_id => $1)`, first)
	sqltest.Equal(f.Session, true, "select count(*) = 2 and bool_and(interchange_id = $1) from parley_flow._p_message where body in ('b', 'c')", first)
}
