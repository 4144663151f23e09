package send_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A message is there until its last delivery has ended, whoever ends it, and its body with it.
func TestMessageGoesWithItsLastDelivery(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	id := sqltest.Value[int64](f.Session, `select parley_flow.publish(repeat('x', 20000), '{"urn:p#Amount": 2000}', 'urn:s#Order')`)
	claimed := f.Tx.ClaimFlow("Send")
	if len(claimed) != 2 {
		t.Fatalf("claimed %+v", claimed)
	}
	f.Tx.CompleteFlow("Send", claimed[0])
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow._p_message where message_id = $1", id)
	f.Tx.CompleteFlow("Send", claimed[1])
	sqltest.Equal(f.Session, 0, `select (select count(*) from parley_flow._p_message)::integer + (select count(*) from parley_flow._p_done)::integer
		+ (select count(*) from parley_store._p_content_reference)::integer`)
}

// Two that end the last two deliveries at once wait for nobody, and the message goes all the same.
func TestDeliveriesThatEndTogetherWaitForNobody(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 2000}`)
	claimed := f.Tx.ClaimFlow("Send")
	one, two := f.Begin(), f.Begin()
	one.CompleteFlow("Send", claimed[0])
	two.Exec("set local lock_timeout = '1s'")
	two.CompleteFlow("Send", claimed[1])
	one.Exec("commit")
	two.Exec("commit")
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow._p_message")
	f.Exec("select parley_flow.maintain()")
	sqltest.Equal(f.Session, 0, "select (select count(*) from parley_flow._p_message)::integer + (select count(*) from parley_flow._p_done)::integer")
}

// The rows that a port writes and the end of its delivery are one transaction; a lease that is over refuses it.
func TestOutcomeIsExactlyOnceWithWhatIsWritten(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("create table public.sink (message_id bigint)")
	id := f.PublishFlow("urn:s#Order", `{}`)
	claimed := f.Tx.ClaimFlow("Send")
	tx := f.Begin()
	tx.Exec("insert into public.sink (message_id) values ($1)", id)
	tx.CompleteFlow("Send", claimed[0])
	tx.Exec("rollback")
	f.Exec("update parley_store._p_lease set until = clock_timestamp() - interval '1 s'")
	f.Exec("select parley_flow.maintain()")
	again := f.Tx.ClaimFlow("Send")
	if len(again) != 1 || again[0].Message != id {
		t.Fatalf("claimed %+v", again)
	}
	f.Tx.RefusesFlow(7, "select parley_flow._p_complete('Send', array[$1::bigint], array[$2::bigint])", claimed[0].Lease, claimed[0].Item)
	tx = f.Begin()
	tx.Exec("insert into public.sink (message_id) values ($1)", id)
	tx.CompleteFlow("Send", again[0])
	tx.Exec("commit")
	sqltest.Equal(f.Session, 1, "select count(*)::integer from public.sink")
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message")
	f.Tx.RefusesFlow(7, "select parley_flow._p_complete('Send', array[$1::bigint], array[$2::bigint])", again[0].Lease, again[0].Item)
}

// A message is tried again as often as the policy says, then it is suspended, and its neighbours are not touched.
func TestRetriesEndInSuspension(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	first, second := f.PublishFlow("urn:s#Order", `{}`), f.PublishFlow("urn:s#Order", `{}`)
	for try := range 3 {
		var claimed []sqltest.ClaimedFlow
		for _, m := range f.Tx.ClaimFlow("Send") {
			if m.Message == first {
				claimed = append(claimed, m)
			} else {
				f.Tx.Exec("select parley_flow._p_release('Send', $1, array[$2::bigint])", m.Lease, m.Item)
			}
		}
		if len(claimed) != 1 || claimed[0].Attempts != try {
			t.Fatalf("try %d: claimed %+v", try, claimed)
		}
		want := []string{"RETRY", "RETRY", "SUSPENDED"}[try]
		if got := f.Tx.RetryFlow("Send", claimed[0]); got != want {
			t.Fatalf("try %d: %s, want %s", try, got, want)
		}
		f.Exec("update parley_store._p_delayed_item set due_at = clock_timestamp(); select parley_store.retry_work_now(h.system, '{}') from parley_flow._p_host as h")
	}
	sqltest.Equal(f.Session, "SEND ERP send.transport 3 it was not there", "select concat_ws(' ', stage, send_port, code, attempts, error) from parley_flow.suspended where message_id = $1", first)
	if got := f.Tx.ClaimFlow("Send"); len(got) != 1 || got[0].Message != second {
		t.Errorf("claimed %+v", got)
	}
}

// A destination that is not there keeps the others waiting, and when it is back they go at once.
func TestUnreachablePortWaitsAsAWhole(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("Other", "urn:s#Order", "{}")
	for range 3 {
		f.PublishFlow("urn:s#Order", `{}`)
	}
	for _, m := range f.Tx.ClaimFlowEach("Send", 1) {
		if m.Port == "ERP" {
			sqltest.Equal(f.Tx, "RETRY", `select outcome from parley_flow._p_retry('Send', $1, array[$2::bigint], 'send.unreachable', 'no route', is_unreachable => true)`, m.Lease, m.Item)
		} else {
			f.Tx.CompleteFlow("Send", m)
		}
	}
	for _, m := range f.Tx.ClaimFlow("Send") {
		if m.Port == "ERP" {
			t.Errorf("claimed %+v of a port that is not there", m)
		}
	}
	sqltest.Equal(f.Tx, 1, "select parley_flow._p_reached('Send', 'ERP')")
	got := 0
	for _, m := range f.Tx.ClaimFlow("Send") {
		if m.Port == "ERP" {
			got++
		}
	}
	if got != 2 {
		t.Errorf("claimed %d messages of the port that is back, want 2", got)
	}
}

// An operator who has mended a destination starts its port, and all that waits for an attempt is tried at once.
func TestStartingAPortHasItTriedAtOnce(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{`{}`, `{"ordered": true}`, `{"ordered": true, "order_key": "urn:p#Key"}`} {
		f := sqltest.NewFlow(t)
		f.SendPort("Slow", "urn:s#Slow", settings)
		want := f.PublishFlow("urn:s#Slow", `{"urn:p#Key": "a"}`)
		m := f.Tx.ClaimFlow("Send")[0]
		f.Tx.Exec(`select parley_flow._p_retry('Send', $1, array[$2::bigint], 'send.unreachable', 'no route', is_unreachable => true)`, m.Lease, m.Item)
		f.PublishFlow("urn:s#Slow", `{"urn:p#Key": "a"}`)
		if got := f.Tx.ClaimFlow("Send"); len(got) != 0 {
			t.Fatalf("%s: claimed %+v before its time", settings, got)
		}
		sqltest.Equal(f.Session, false, "select parley_flow.start('Slow')")
		got := f.Tx.ClaimFlow("Send")
		if !slices.ContainsFunc(got, func(c sqltest.ClaimedFlow) bool { return c.Message == want }) {
			t.Errorf("%s: claimed %+v, want message %d", settings, got, want)
		}
	}
}

// Deliveries for a port that is stopped go in their order when it is started.
func TestStoppedPortKeepsItsMessages(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	first := f.PublishFlow("urn:s#Order", `{}`)
	f.Exec("select parley_flow.stop('ERP')")
	second := f.PublishFlow("urn:s#Order", `{}`)
	if got := f.Tx.ClaimFlow("Send"); len(got) != 0 {
		t.Fatalf("claimed %+v of a port that is stopped", got)
	}
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.suspended")
	f.Exec("select parley_flow.unenlist('ERP')")
	f.Exec("select parley_flow.publish('x', message_type => 'urn:s#Order')") // matches nothing now
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow.suspended")
	f.Exec("select parley_flow.start('ERP')")
	got := f.Tx.ClaimFlow("Send")
	if len(got) != 2 || got[0].Message != first || got[1].Message != second {
		t.Errorf("claimed %+v, want messages %d and %d", got, first, second)
	}
	sqltest.Equal(f.Session, false, "select parley_flow.start('ERP')")
}

// Of a message of which hosts may have died nobody else is blamed, and three deaths are enough.
func TestMessageOfWhichHostsDieIsSuspendedAlone(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("Killer", "kill", "{}")
	killer := f.PublishFlow("kill", `{}`)
	for range 4 {
		f.PublishFlow("kill", `{}`)
	}
	die := func() {
		f.Exec("update parley_store._p_lease set until = clock_timestamp() - interval '1 s'")
		f.Exec("select parley_flow.maintain()")
	}
	if got := f.Tx.ClaimFlow("Send"); len(got) != 5 {
		t.Fatalf("claimed %+v", got)
	}
	die()
	deaths, sent := 0, 0
	for range 30 {
		got := f.Tx.ClaimFlow("Send")
		switch {
		case len(got) > 1:
			t.Fatalf("claimed %+v, want each alone", got)
		case len(got) == 1 && got[0].Message == killer:
			deaths++
			die()
		case len(got) == 1:
			sent++
			f.Tx.CompleteFlow("Send", got...)
		}
	}
	if deaths != 3 || sent != 4 {
		t.Errorf("%d deaths of the killer and %d others that were sent, want 3 and 4", deaths, sent)
	}
	sqltest.Equal(f.Session, "send.killed", "select string_agg(code, ' ') from parley_flow.suspended")
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_suspect as s join parley_flow._p_message as m using (message_id) where s.deaths < 3")
}

// A failed delivery is routed with the body of its message, and linked to it.
func TestFailedDeliveryIsRouted(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("Failing", "big", `{"failed_message_routing": true, "retry_policy": "never"}`)
	f.Exec(`select parley_flow.apply('{"send port": {"Errors": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/e",
		"filter": [[{"property": "ErrorReport.SendPortName", "operator": "=", "value": "Failing"}]]}}}')`)
	id := sqltest.Value[int64](f.Session, "select parley_flow.publish(repeat('y', 30000), message_type => 'big')")
	if got := f.Tx.RetryFlow("Send", f.Tx.ClaimFlow("Send")[0]); got != "FAILED_ROUTED" {
		t.Fatal(got)
	}
	sqltest.Equal(f.Tx, "Errors 30000 true 0xc0c0167a", `select concat_ws(' ', send_port, size, (parent_id = $1)::text, promoted ->> 'ErrorReport.FailureCode')
		from parley_flow._p_claim('Send', 'x')`, id)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow._p_message where message_id = $1", id)
	f.Exec("select parley_store.collect_content()")
	sqltest.Equal(f.Session, 30000, "select length(parley_flow.read_message(m.message_id)) from parley_flow._p_message as m")
}

// A host that has enough of one port claims from the others, and from that one later.
func TestClaimsPassPortsBy(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.SendPort("ERP 2", "urn:s#Order", `{}`)
	f.PublishFlow("urn:s#Order", `{}`)
	claimed := func(passedBy ...string) string {
		return sqltest.Value[string](f.Tx, "select coalesce(string_agg(send_port, ', ' order by send_port), '') from parley_flow._p_claim('Send', 'x', passed_by => $1, top => 1)", passedBy)
	}
	if got := claimed("ERP"); got != "ERP 2" {
		t.Errorf("passing ERP by it claimed %q", got)
	}
	f.WaitUntil("select exists (select from parley_flow._p_claim('Send', 'x') where send_port = 'ERP')")
}
