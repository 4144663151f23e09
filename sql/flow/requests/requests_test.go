package requests_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// desk is a database in which the receive port Desk responds, and the send port Clerk answers.
type desk struct{ sqltest.Flow }

func newDesk(t *testing.T, settings string) desk {
	t.Helper()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply(jsonb_build_object(
		'receive port', jsonb_build_object('Desk', '{"application": "Orders", "responds": true}'::jsonb || $1::jsonb),
		'receive location', '{"Desk": {"receive_port": "Desk", "host": "Receive", "adapter": "HTTP", "address": "http://x/y"}}'::jsonb,
		'send port', '{"Clerk": {"application": "Orders", "host": "Send", "adapter": "HTTP", "address": "http://c/d", "responds": true,
			"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "Desk"}]]}}'::jsonb
	))`, settings)
	return desk{f}
}

// ask takes a request in, for a client that waits in a node, and gives its number and outcome.
func (d desk) ask(node, key string) (id int64, outcome string) {
	d.Helper()
	err := d.Rx.DB.QueryRow(d.Context(), `select message_id, outcome from parley_flow._p_receive('Receive', 'Desk', array['ask']::bytea[],
		keys => case when $2::text <> '' then array[$2::text] end, node => $1)`, node, key).Scan(&id, &outcome)
	if err != nil {
		d.Fatal(err)
	}
	return id, outcome
}

func (d desk) token(request int64) string {
	d.Helper()
	return sqltest.Value[string](d.Session, "select token::text from parley_flow._p_request where request_id = $1", request)
}

func (d desk) answers(node string) string {
	d.Helper()
	return sqltest.Value[string](d.Rx, `select coalesce(string_agg(format('%s=%s', request_id, convert_from(body, 'UTF8')), ' ' order by
		request_id), '') from parley_flow._p_answers('Receive', $1)`, node)
}

func (d desk) end(node string, request int64, outcome string) int {
	d.Helper()
	return sqltest.Value[int](d.Rx, "select parley_flow._p_end_requests('Receive', $1, array[$2::bigint], array[$3::text])", node, request,
		outcome)
}

// clerk has the send port answer what it has got.
func (d desk) clerk(answer string) {
	d.Helper()
	for _, m := range d.Tx.ClaimFlow("Send") {
		d.Tx.Exec(`select parley_flow._p_complete_answered('Send', array[$1::bigint], array[$2::bigint], null, '{1}',
			array[convert_to($3, 'UTF8')])`, m.Lease, m.Item, answer)
	}
}

// left counts what is in the box: messages, suspensions, requests.
func (d desk) left() string {
	d.Helper()
	return sqltest.Value[string](d.Session, `select format('%s %s %s', (select count(*) from parley_flow._p_message),
		(select count(*) from parley_flow._p_suspended), (select count(*) from parley_flow._p_request))`)
}

// The answer of a destination goes to the client of the request, of which nothing is left then.
func TestAnAnswerGoesToTheClientThatWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	first, outcome := d.ask("one", "")
	second, _ := d.ask("two", "")
	if outcome != "PUBLISHED" {
		t.Errorf("the outcome is %s", outcome)
	}
	d.clerk("yes")
	if got, want := d.answers("one"), sqltest.Value[string](d.Session, "select format('%s=yes', $1::bigint)", first); got != want {
		t.Errorf("the node has %q instead of %q", got, want)
	}
	sqltest.Equal(d.Rx, "Clerk HTTP f", `select format('%s %s %s', promoted ->> 'SendPortName', promoted ->> 'InboundTransportType',
		(promoted || coalesce(written, '{}')) ? 'CorrelationToken') from parley_flow._p_answers('Receive', 'two')`)
	for node, id := range map[string]int64{"one": first, "two": second} {
		if n := d.end(node, id, "GIVEN"); n != 1 {
			t.Errorf("%d requests of %s ended", n, node)
		}
	}
	if left := d.left(); left != "0 0 0" {
		t.Errorf("left are %s", left)
	}
	if n := d.end("one", first, "GIVEN"); n != 0 {
		t.Error("a request has ended twice")
	}
}

// The first answer that is committed is the answer; one that is rolled back is none, and a second one is late.
func TestARequestHasOneAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	id, _ := d.ask("one", "")
	token := d.token(id)
	tx := d.Begin()
	sqltest.Equal(tx, "ANSWERED", "select parley_flow.answer($1, 'undone'::text)", token)
	tx.Exec("rollback")
	tx = d.Begin()
	sqltest.Equal(tx, "ANSWERED", "select parley_flow.answer($1, 'first'::text)", token)
	second := d.Blocked("select parley_flow.answer($1, 'second'::text)", token)
	tx.Exec("commit")
	second.RequireSuccess()
	if got := d.answers("one"); !strings.HasSuffix(got, "=first") {
		t.Errorf("the answer is %s", got)
	}
	sqltest.Equal(d.Session, "routing.late-answer ROUTE f", "select format('%s %s %s', code, stage, is_resumable) from parley_flow._p_suspended")
}

// An answer for which nobody waits is suspended, or dropped where the port says so, whether it comes behind the end or before it.
func TestLateAnswersAreSuspendedOrDropped(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{"suspend": "2", "drop": "0"} {
		d := newDesk(t, `{"late_answers": "`+setting+`"}`)
		behind, _ := d.ask("one", "")
		tokenBehind := d.token(behind)
		before, _ := d.ask("one", "")
		d.end("one", behind, "EXPIRED")
		sqltest.Equal(d.Session, "LATE", "select parley_flow.answer($1, 'behind'::text)", tokenBehind)
		d.Exec("select parley_flow.answer($1, 'before'::text)", d.token(before))
		d.end("one", before, "EXPIRED")
		sqltest.Equal(d.Session, want, `select count(*)::text from parley_flow._p_suspended where code = 'routing.late-answer'`)
		sqltest.Equal(d.Session, want, `select count(*)::text from parley_flow._p_message where promoted ->> 'InboundTransportType' = 'SQL'`)
	}
}

// The answers to a node that has died are late, and requests of it that nobody answers are forgotten.
func TestRequestsOfANodeThatDiedEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	answered, _ := d.ask("dead", "")
	d.ask("dead", "")
	d.Exec("select parley_flow.answer($1, 'x'::text)", d.token(answered))
	d.Exec("update parley_flow._p_request set due_at = clock_timestamp() - interval '1 s'")
	d.Exec("select parley_flow.maintain()")
	sqltest.Equal(d.Session, 1, "select count(*)::integer from parley_flow._p_suspended where code = 'routing.late-answer'")
	sqltest.Equal(d.Session, "{}", "select string_agg(nodes::text, ' ') from parley_flow._p_request")
	d.Exec("update parley_flow._p_request set due_at = clock_timestamp() - interval '1 s'")
	d.Exec("select parley_flow.maintain()")
	sqltest.Equal(d.Session, 0, "select count(*)::integer from parley_flow._p_request")
}

// A repeat under the key of a request waits for the same answer, gets it while it is kept, and is a plain repeat afterwards.
func TestARepeatGetsTheAnswerOfTheRequest(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	id, _ := d.ask("one", "k")
	if again, outcome := d.ask("two", "k"); again != id || outcome != "JOINED" {
		t.Fatalf("the repeat gave %d, %s", again, outcome)
	}
	d.end("one", id, "EXPIRED")
	d.clerk("yes")
	if d.answers("one") != "" || !strings.HasSuffix(d.answers("two"), "=yes") {
		t.Errorf("the nodes have %q and %q", d.answers("one"), d.answers("two"))
	}
	d.end("two", id, "GIVEN")
	if _, outcome := d.ask("three", "k"); outcome != "JOINED" || !strings.HasSuffix(d.answers("three"), "=yes") {
		t.Errorf("a repeat of what was answered gave %s, %q", outcome, d.answers("three"))
	}
	d.end("three", id, "GIVEN")
	d.Exec("update parley_flow._p_request set due_at = clock_timestamp() - interval '1 s'")
	d.Exec("select parley_flow.maintain()")
	if left := d.left(); left != "0 0 0" {
		t.Errorf("left are %s", left)
	}
	if _, outcome := d.ask("four", "k"); outcome != "REPEATED" {
		t.Errorf("a repeat behind the end gave %s", outcome)
	}
	// The client had gone before the answer came, and comes again.
	id, _ = d.ask("one", "late")
	d.end("one", id, "EXPIRED")
	d.clerk("at last")
	if d.ask("one", "late"); !strings.HasSuffix(d.answers("one"), "=at last") {
		t.Errorf("the repeat has %q", d.answers("one"))
	}
}

// To answer needs the token and the right ANSWER of the port; the token is in nothing that an operator reads.
func TestRightsToAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	id, _ := d.ask("one", "")
	token := d.token(id)
	name := d.Role("clerk")
	clerk := d.As(name)
	clerk.RefusesFlow(1, "select parley_flow.answer($1, 'x'::text)", token)
	d.Exec("select parley_flow.grant_right('PUBLISH', $1)", name)
	d.Exec("select parley_flow.grant_right('ANSWER', $1, receive_port => 'In')", name)
	clerk.RefusesFlow(1, "select parley_flow.answer($1, 'x'::text)", token)
	for _, wrong := range []string{"", "x", strings.ToUpper(token), "00000000-0000-0000-0000-000000000000"} {
		clerk.RefusesFlow(1, "select parley_flow.answer($1, 'x'::text)", wrong)
	}
	clerk.RefusesFlow(1, "select parley_flow.answer(null, 'x'::text)")
	d.Exec("select parley_flow.grant_right('VIEW', $1)", name)
	d.Exec("select parley_flow.grant_right('READ_CONTENT', $1)", name)
	sqltest.Equal(clerk, 0, `select count(*)::integer from parley_flow.read_properties($1) where value #>> '{}' = $2`, id, token)
	clerk.RefusesFlow(10, `select parley_flow.publish('x', jsonb_build_object('CorrelationToken', $1::text))`, token)
	for _, call := range []string{"_p_answers('Receive', 'one')", "_p_end_requests('Receive', 'one', '{1}', '{GIVEN}')"} {
		clerk.RefusesFlow(1, "select * from parley_flow."+call)
		d.Tx.RefusesFlow(1, "select * from parley_flow."+call)
	}
	d.Exec("select parley_flow.grant_right('ANSWER', $1, application => 'Orders')", name)
	clerk.RefusesFlow(10, "select parley_flow.answer($1, null::text)", token)
	clerk.RefusesFlow(10, `select parley_flow.answer($1, 'x'::text, '{"MessageID": 1}')`, token)
	sqltest.Equal(clerk, "ANSWERED", "select parley_flow.answer($1, 'x'::text)", token)
	d.RefusesFlow(6, "select parley_flow.answer('nonsense', 'x'::text)")
	// A failed message of the request is answered by whoever mends it.
	sqltest.Equal(d.Session, 0, "select count(*)::integer from parley_flow._p_suspended")
}

// An answer is a message: ports get it too, and a large one comes whole, to the host of the request alone.
func TestAnswersAreMessages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	d.SendPort("Archive", "urn:s#Answer", "{}")
	id, _ := d.ask("one", "")
	d.Exec("select parley_flow.answer($1, repeat('x', 20000)::text, message_type => 'urn:s#Answer')", d.token(id))
	sqltest.Equal(d.Session, 2, "select deliveries::integer from parley_flow._p_message where message_type = 'urn:s#Answer'")
	const read = `select sum(octet_length(b.body))::integer from parley_flow._p_request as r
		join parley_flow._p_message as m on m.message_id = r.answer_id
		cross join lateral parley_flow._p_read_body($1, m.message_id, m.content_id, 0, 9, request_id => r.request_id) as b`
	sqltest.Equal(d.Session, 20000, read, "Receive")
	d.RefusesFlow(6, read, "Send")
	d.end("one", id, "GIVEN")
	for _, m := range d.Tx.ClaimFlow("Send") {
		d.Tx.CompleteFlow("Send", m)
	}
	if left := d.left(); left != "0 0 0" {
		t.Errorf("left are %s", left)
	}
}

// A request that its only port gives up fails at once; with another port that may answer it waits.
func TestARequestThatIsGivenUpFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	failure := func(request int64) string {
		return sqltest.Value[string](d.Rx, `select coalesce(max(failure), '') from parley_flow._p_answers('Receive', 'one', array[$1::bigint])`, request)
	}
	giveUp := func() {
		for _, m := range d.Tx.ClaimFlow("Send") {
			d.Tx.Exec("select parley_flow._p_suspend('Send', $1, array[$2::bigint], 'send.refused', 'no')", m.Lease, m.Item)
		}
	}
	id, _ := d.ask("one", "k")
	giveUp()
	if got := failure(id); got != "send.refused" {
		t.Errorf("the failure is %q", got)
	}
	d.end("one", id, "EXPIRED")
	// An operator resumes it, and the client repeats it.
	sqltest.Equal(d.Session, 1, "select parley_flow.resume_suspended('{}')")
	d.ask("one", "k")
	if got := failure(id); got != "" {
		t.Errorf("the failure of the repeat is %q", got)
	}
	d.clerk("yes")
	if !strings.HasSuffix(d.answers("one"), "=yes") {
		t.Errorf("the repeat has %q", d.answers("one"))
	}
	d.Exec(`select parley_flow.apply('{"send port": {"Other": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/x",
		"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "Desk"}]]}}}')`)
	id, _ = d.ask("one", "")
	giveUp()
	if got := failure(id); got != "" {
		t.Errorf("with two ports the failure is %q", got)
	}
}

// A location brings an answer that has the token; nothing else that it brings is one, and the token stands in no message.
func TestALocationBringsAnswers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "{}")
	d.SendPort("Archive", "urn:s#Order", "{}")
	id, _ := d.ask("one", "")
	token := d.token(id)
	outcome := func(token string) string {
		d.Helper()
		return sqltest.Value[string](d.Rx, `select outcome from parley_flow._p_receive('Receive', 'Folder', array['brought']::bytea[],
			promoted => array[jsonb_build_object('CorrelationToken', $1::text)], message_types => array['urn:s#Order'])`, token)
	}
	if got := outcome("00000000-0000-0000-0000-000000000000"); got != "PUBLISHED" || d.answers("one") != "" {
		t.Errorf("a wrong token gave %s, and the answer %q", got, d.answers("one"))
	}
	if got := outcome(token); got != "PUBLISHED" || !strings.HasSuffix(d.answers("one"), "=brought") {
		t.Errorf("the token gave %s, and the answer %q", got, d.answers("one"))
	}
	sqltest.Equal(d.Session, 0, `select count(*)::integer from parley_flow._p_message as m
		where m.promoted ? 'CorrelationToken' or m.message_id <> $1 and m.written::text like '%' || $2 || '%'`, id, token)
}
