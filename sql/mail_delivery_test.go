package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// delivery is a message that was categorized: one work item in a lane for its recipients.
func (b *broker) delivery(lane, notify string, recipients ...string) int64 {
	b.Helper()
	id := value[int64](b.session, `select parley_mail.send('ann@example.org', $1, subject => 'hello', text => 'hello')`, recipients)
	b.exec(`insert into parley_mail._p_recipient (message_id, ordinal, address, notify, lane)
		select $1, u.n, u.address, nullif($2, ''), $3 from unnest($4::text[]) with ordinality as u (address, n)`,
		id, notify, lane, recipients)
	b.exec(`select parley_store.put_work('mail', array[$1], array[$2::bigint], expires_at => m.expires_at)
		from parley_mail._p_message as m where m.message_id = $2`, lane, id)
	return id
}

// claimed is a message in the hands of a daemon.
type claimed struct {
	Lease, Item, Message int64
	Lane                 string
	Ordinals             []int32
	Addresses            []string
}

// claimMail claims what waits. A claim may give nothing although something waits, so it asks again.
func (b *broker) claimMail(hops, each int) (batch []claimed) {
	b.Helper()
	for range 3 {
		if batch = b.claimMailOnce(hops, each); len(batch) > 0 {
			break
		}
	}
	return batch
}

func (b *broker) claimMailOnce(hops, each int) []claimed {
	b.Helper()
	found, err := b.db.Query(b.Context(), `select c.lease_id, c.item_id, c.message_id, c.lane, c.ordinals, c.addresses
		from parley_mail._p_claim($1, $2, '1 minute', 'test') as c order by c.message_id`, hops, each)
	if err != nil {
		b.Fatal(describe(err))
	}
	batch, err := pgx.CollectRows(found, pgx.RowToStructByPos[claimed])
	if err != nil {
		b.Fatal(describe(err))
	}
	return batch
}

// outcomes records one outcome for each recipient of a claimed message, and gives how many were refused.
func (b *broker) outcomes(c claimed, outcomes ...string) int {
	b.Helper()
	n := len(outcomes)
	repeat := func(v int64) []int64 {
		values := make([]int64, n)
		for i := range values {
			values[i] = v
		}
		return values
	}
	return value[int](b.session, `select parley_mail._p_record_outcomes($1, $2, $3, $4, $5, array_fill(450, array[$6::integer]), array_fill('4.2.0'::text, array[$6::integer]),
		array_fill('later'::text, array[$6::integer]), array_fill('mx.b.example'::text, array[$6::integer]), '{}', '{}')`,
		repeat(c.Lease), repeat(c.Item), repeat(c.Message), c.Ordinals[:n], outcomes, n)
}

// leftOf says what is left of a message.
func (b *broker) leftOf(id int64) string {
	b.Helper()
	return value[string](b.session, `select format('%s message, %s recipients, %s items, reports %s',
		(select count(*) from parley_mail._p_message where message_id = $1),
		(select count(*) from parley_mail._p_recipient where message_id = $1),
		(select count(*) from parley_store.work_items where system = 'mail' and subject = $1),
		(select coalesce(string_agg(distinct action, ' ' order by action), 'none') from parley_mail._p_report where message_id = $1))`, id)
}

func TestOutcomeOfEachRecipientIsFinalOrTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, notify string
		lane         string
		unknown      string
		outcomes     []string
		want, events string
	}{
		{
			name: "all are delivered", outcomes: []string{"DELIVERED", "DELIVERED"},
			want: "0 message, 0 recipients, 0 items, reports none", events: "SEND",
		},
		{
			name: "a host without reports leaves success for us to report", notify: "SUCCESS", outcomes: []string{"RELAYED", "RELAYED"},
			want: "1 message, 0 recipients, 0 items, reports RELAYED", events: "SEND",
		},
		{
			name: "a host with reports makes its own", notify: "SUCCESS", outcomes: []string{"DELIVERED", "DELIVERED"},
			want: "0 message, 0 recipients, 0 items, reports none", events: "SEND",
		},
		{
			name: "a mailbox makes none", notify: "SUCCESS", lane: "MAILBOX/local/-", outcomes: []string{"DELIVERED", "DELIVERED"},
			want: "1 message, 0 recipients, 0 items, reports DELIVERED", events: "DELIVER",
		},
		{
			name: "failures are reported", outcomes: []string{"FAILED", "DELIVERED"},
			want: "1 message, 0 recipients, 0 items, reports FAILED", events: "FAIL SEND",
		},
		{
			name: "unless nobody wants that", notify: "NEVER", outcomes: []string{"FAILED", "FAILED"},
			want: "0 message, 0 recipients, 0 items, reports none", events: "FAIL",
		},
		{
			name: "or only success", notify: "SUCCESS", outcomes: []string{"FAILED", "FAILED"},
			want: "0 message, 0 recipients, 0 items, reports none", events: "FAIL",
		},
		{
			name: "one is tried again", outcomes: []string{"DEFERRED", "DELIVERED"},
			want: "1 message, 1 recipients, 1 items, reports none", events: "DEFER SEND",
		},
		{
			name: "and so is one of which nothing is known", outcomes: []string{"UNKNOWN", "FAILED"},
			want: "1 message, 1 recipients, 1 items, reports FAILED", events: "FAIL UNKNOWN",
		},
		{
			name: "which is held where the connector says so", unknown: "HOLD", outcomes: []string{"UNKNOWN", "DELIVERED"},
			want: "1 message, 1 recipients, 1 items, reports none", events: "SEND UNKNOWN",
		},
		{
			name: "or given up", unknown: "FAIL", outcomes: []string{"UNKNOWN", "DELIVERED"},
			want: "1 message, 0 recipients, 0 items, reports FAILED", events: "FAIL SEND UNKNOWN",
		},
		{
			name: "a mailbox store refuses, or has the message", notify: "SUCCESS,FAILURE", lane: "MAILBOX/local/-",
			outcomes: []string{"FAILED", "DUPLICATE"},
			want:     "1 message, 0 recipients, 0 items, reports DELIVERED FAILED", events: "DELIVERFAIL DUPLICATEDELIVER",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newMail(t)
			if c.lane == "" {
				c.lane = "DNS/internet/b.example"
			}
			if c.unknown != "" {
				b.exec(`select parley_mail.alter_object('send connector', 'internet', jsonb_build_object('unknown_outcomes', $1::text))`, c.unknown)
			}
			id := b.delivery(c.lane, c.notify, "one@b.example", "two@b.example")
			batch := b.claimMail(10, 10)
			if len(batch) != 1 || batch[0].Message != id || strings.Join(batch[0].Addresses, " ") != "one@b.example two@b.example" {
				t.Fatalf("claimed %+v", batch)
			}
			if refused := b.outcomes(batch[0], c.outcomes...); refused != 0 {
				t.Fatalf("%d outcomes were refused", refused)
			}
			if got := b.leftOf(id); got != c.want {
				t.Errorf("left: %s, want %s", got, c.want)
			}
			isHost := strings.HasPrefix(c.lane, "DNS/") // a mailbox store is none that a report can name
			equal(b.session, true, "select coalesce(bool_and((host is not null) = $1), true) from parley_mail._p_report", isHost)
			events := value[string](b.session, `select string_agg(distinct event, ' ' order by event) from parley_store.tracking
				where message_id = $1::text and event not in ('SUBMIT', 'RESOLVE')`, fmt.Sprint(id))
			if events != c.events {
				t.Errorf("events: %s, want %s", events, c.events)
			}
			if again := b.claimMail(10, 10); len(again) != 0 {
				t.Errorf("claimed again at once: %+v", again)
			}
			if c.unknown != "" {
				equal(b.session, "4.2.0 later", `select last_error from parley_store.lanes where lane = $1`, c.lane)
			}
			if c.unknown == "HOLD" {
				equal(b.session, "SUSPENDED, unknown outcome, 4.2.0 later", `select concat_ws(', ', status, reason, last_error) from parley_mail.messages`)
				equal(b.session, 1, `select parley_mail.resume_messages('{"queue": "DNS/internet/b.example"}')`)
				if again := b.claimMail(10, 10); len(again) != 1 || len(again[0].Addresses) != 1 {
					t.Errorf("claimed after it was released: %+v", again)
				}
			}
		})
	}
}

// A body that is content of the store goes with the last message that needs it.
func TestLargeBodyGoesWithItsLastRecipient(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.delivery("MAILBOX/local/-", "", "ann@example.org", "bob@example.org")
	b.exec("update parley_mail._p_message set content_id = parley_mail._p_stored_content($1, repeat('x', 9000)::bytea), body = null where message_id = $1", id)
	const references = "select count(*) from parley_store._p_content_reference where system = 'mail'"
	c := b.claimMail(1, 1)[0]
	b.outcomes(c, "DELIVERED", "DEFERRED")
	equal(b.session, 1, references)
	b.exec("select parley_mail._p_fail_recipients(array[$1::bigint], array[2], array['5.4.7'], array['late'], 'QUEUE')", id)
	b.exec("delete from parley_mail._p_report; select parley_mail._p_remove_finished(array(select message_id from parley_mail._p_message))")
	equal(b.session, 0, references)
}

func TestOutcomeUnderALeaseThatIsOverIsRefused(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.delivery("DNS/internet/b.example", "", "one@b.example")
	first := b.claimMail(1, 1)[0]
	b.exec(`update parley_store._p_lease set until = now() - interval '1 second'`)
	b.exec(`select parley_store.expire_leases()`)
	second := b.claimMail(1, 1)[0]
	if refused := b.outcomes(first, "FAILED"); refused != 1 {
		t.Errorf("%d outcomes were refused", refused)
	}
	if got := b.leftOf(id); got != "1 message, 1 recipients, 1 items, reports none" {
		t.Errorf("after an outcome that was refused: %s", got)
	}
	if refused := b.outcomes(second, "DELIVERED"); refused != 0 {
		t.Errorf("%d outcomes were refused", refused)
	}
	if got := b.leftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestWhatWasNotTriedGoesBackWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	first := b.delivery("DNS/internet/b.example", "", "one@b.example")
	b.delivery("DNS/internet/b.example", "", "two@b.example")
	batch := b.claimMail(1, 2)
	b.exec(`select parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', $1, $2)`,
		[]int64{batch[0].Lease, batch[1].Lease}, []int64{batch[0].Item, batch[1].Item})
	again := b.claimMail(1, 2)
	if len(again) != 2 || again[0].Message != first {
		t.Fatalf("claimed again: %+v", again)
	}
	if attempts := value[int](b.session, `select max(attempts) from parley_mail._p_recipient`); attempts != 0 {
		t.Errorf("%d attempts were counted", attempts)
	}
}

func TestHopThatCannotBeReachedIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.delivery("DNS/internet/b.example", "", "one@b.example")
	other := b.delivery("DNS/internet/c.example", "", "one@c.example")
	b.exec(`select parley_mail._p_report_hops('{DNS/internet/b.example,DNS/gone/-}', '{no answer,no answer}', array[now(), now()])`)
	batch := b.claimMail(10, 10)
	if len(batch) != 1 || batch[0].Message != other {
		t.Fatalf("claimed %+v", batch)
	}
	if status := value[string](b.session, `select status || ' ' || last_error from parley_store.lanes where lane = 'DNS/internet/b.example'`); status !=
		"RETRY no answer" {
		t.Errorf("the lane is %s", status)
	}
	b.exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', array[null], array[now()])`)
	if batch := b.claimMail(10, 10); len(batch) != 1 {
		t.Errorf("claimed %+v after the hop was reached", batch)
	}
}

func TestWhatWaitsTooLongIsReportedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.delivery("DNS/internet/b.example", "", "one@b.example")
	b.exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', '{no answer}', array[now()])`)
	b.exec(`update parley_mail._p_message set received_at = now() - interval '239 minutes'`)
	b.exec(`select parley_mail._p_report_delays()`)
	if got := b.leftOf(id); !strings.HasSuffix(got, "reports none") {
		t.Errorf("before four hours: %s", got)
	}
	b.exec(`update parley_mail._p_message set received_at = now() - interval '241 minutes', not_before = now() - interval '1 minute'`)
	b.exec(`select parley_mail._p_report_delays()`)
	if got := b.leftOf(id); !strings.HasSuffix(got, "reports none") {
		t.Errorf("a minute after it was to leave: %s", got)
	}
	b.exec(`update parley_mail._p_message set not_before = null`)
	b.exec(`select parley_mail._p_report_delays()`)
	if got := b.leftOf(id); got != "1 message, 1 recipients, 1 items, reports DELAYED" {
		t.Errorf("after four hours: %s", got)
	}
	b.exec(`delete from parley_mail._p_report`)
	b.exec(`select parley_mail._p_report_delays()`)
	if got := b.leftOf(id); !strings.HasSuffix(got, "reports none") {
		t.Errorf("a delay was reported twice: %s", got)
	}
	b.exec(`update parley_store._p_item set expires_at = now() - interval '1 second'`)
	b.exec(`select parley_mail._p_expire_waiting()`)
	if got := b.leftOf(id); got != "1 message, 0 recipients, 0 items, reports FAILED" {
		t.Errorf("after its time: %s", got)
	}
	// Nobody reached the host, so that no recipient has a reply of it: what is wrong with the queue is the reason.
	if got := value[string](b.session, `select status || ' ' || reason from parley_mail._p_report`); !strings.HasPrefix(got, "5.4.7 ") ||
		!strings.HasSuffix(got, "last attempt: no answer") {
		t.Errorf("reported is %s", got)
	}
}

func TestReportIsTakenOnceAndWithItsRecipients(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.delivery("DNS/internet/b.example", "", "one@b.example", "two@b.example")
	b.outcomes(b.claimMail(1, 1)[0], "FAILED", "FAILED")
	const due = `select array_to_string(addresses, ' ') from parley_mail._p_due_report()`
	if got := values[string](b.session, due); len(got) != 0 {
		t.Errorf("a report is made at once: %v", got)
	}
	b.exec(`update parley_mail._p_report set due_at = now()`)
	if got := values[string](b.session, due); len(got) != 1 || got[0] != "one@b.example two@b.example" {
		t.Fatalf("taken: %q", got)
	}
	if got := values[string](b.session, due); len(got) != 0 {
		t.Errorf("taken again: %v", got)
	}
	b.exec(`select parley_mail._p_finish_report($1)`, id)
	if got := b.leftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestNothingIsReportedAboutANullSender(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.delivery("DNS/internet/b.example", "SUCCESS,FAILURE,DELAY", "one@b.example")
	b.exec(`update parley_mail._p_message set sender = ''`)
	b.outcomes(b.claimMail(1, 1)[0], "FAILED")
	if got := b.leftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("left: %s", got)
	}
}

func TestOnlyADaemonClaimsAndRecords(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	s := b.sender("sender")
	for _, statement := range []string{
		`select * from parley_mail._p_claim(1, 1, '1 minute', '')`, `select parley_mail._p_renew('{1}', '1 minute')`,
		`select parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`,
		`select parley_mail._p_report_hops('{}', '{}', '{}')`, `select * from parley_mail._p_due_report()`,
		`select parley_mail._p_finish_report(1)`, `select * from parley_mail._p_read_body(1, 1, 0, 1)`, `select parley_mail._p_unneeded_bodies('{1}')`,
	} {
		s.refusesMail(1, statement)
	}
}

// The 250 of a peer follows the commit, and a message that was delivered is not kept: neither may be lost with the server.
func TestAcceptanceAndOutcomesAreDurableInADatabaseThatDoesNotWait(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	for _, statement := range []string{
		`perform parley_mail._p_accept(array[jsonb_populate_record(null::parley_mail._p_arriving,
			'{"sender": "", "recipients": ["ann@example.org"], "source": "SMTP", "body": "x"}')])`,
		`perform parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`,
	} {
		b.exec(`do $do$ begin perform set_config('synchronous_commit', 'off', true); ` + statement + `;
			if current_setting('synchronous_commit') <> 'on' then raise exception 'it is not waited for'; end if; end $do$`)
	}
}
