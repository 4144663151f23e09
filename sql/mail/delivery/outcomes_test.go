package delivery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

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
			b := sqltest.NewMail(t)
			if c.lane == "" {
				c.lane = "DNS/internet/b.example"
			}
			if c.unknown != "" {
				b.Exec(`select parley_mail.alter_object('send connector', 'internet', jsonb_build_object('unknown_outcomes', $1::text))`, c.unknown)
			}
			id := b.Delivery(c.lane, c.notify, "one@b.example", "two@b.example")
			batch := b.ClaimMail(10, 10)
			if len(batch) != 1 || batch[0].Message != id || strings.Join(batch[0].Addresses, " ") != "one@b.example two@b.example" {
				t.Fatalf("claimed %+v", batch)
			}
			if refused := b.Outcomes(batch[0], c.outcomes...); refused != 0 {
				t.Fatalf("%d outcomes were refused", refused)
			}
			if got := b.LeftOf(id); got != c.want {
				t.Errorf("left: %s, want %s", got, c.want)
			}
			isHost := strings.HasPrefix(c.lane, "DNS/") // a mailbox store is none that a report can name
			sqltest.Equal(b.Session, true, "select coalesce(bool_and((host is not null) = $1), true) from parley_mail._p_report", isHost)
			events := sqltest.Value[string](b.Session, `select string_agg(distinct event, ' ' order by event) from parley_store.tracking
				where message_id = $1::text and event not in ('SUBMIT', 'RESOLVE')`, fmt.Sprint(id))
			if events != c.events {
				t.Errorf("events: %s, want %s", events, c.events)
			}
			if again := b.ClaimMail(10, 10); len(again) != 0 {
				t.Errorf("claimed again at once: %+v", again)
			}
			if c.unknown != "" {
				sqltest.Equal(b.Session, "4.2.0 later", `select last_error from parley_store.lanes where lane = $1`, c.lane)
			}
			if c.unknown == "HOLD" {
				sqltest.Equal(b.Session, "SUSPENDED, unknown outcome, 4.2.0 later", `select concat_ws(', ', status, reason, last_error) from parley_mail.messages`)
				sqltest.Equal(b.Session, 1, `select parley_mail.resume_messages('{"queue": "DNS/internet/b.example"}')`)
				if again := b.ClaimMail(10, 10); len(again) != 1 || len(again[0].Addresses) != 1 {
					t.Errorf("claimed after it was released: %+v", again)
				}
			}
		})
	}
}

// A body that is content of the store goes with the last message that needs it.
func TestLargeBodyGoesWithItsLastRecipient(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("MAILBOX/local/-", "", "ann@example.org", "bob@example.org")
	b.Exec("update parley_mail._p_message set content_id = parley_mail._p_stored_content($1, repeat('x', 9000)::bytea), body = null where message_id = $1", id)
	const references = "select count(*) from parley_store._p_content_reference where system = 'mail'"
	c := b.ClaimMail(1, 1)[0]
	b.Outcomes(c, "DELIVERED", "DEFERRED")
	sqltest.Equal(b.Session, 1, references)
	b.Exec("select parley_mail._p_fail_recipients(array[$1::bigint], array[2], array['5.4.7'], array['late'], 'QUEUE')", id)
	b.Exec("delete from parley_mail._p_report; select parley_mail._p_remove_finished(array(select message_id from parley_mail._p_message))")
	sqltest.Equal(b.Session, 0, references)
}

func TestOutcomeUnderALeaseThatIsOverIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	first := b.ClaimMail(1, 1)[0]
	b.Exec(`update parley_store._p_lease set until = now() - interval '1 second'`)
	b.Exec(`select parley_store.expire_leases()`)
	second := b.ClaimMail(1, 1)[0]
	if refused := b.Outcomes(first, "FAILED"); refused != 1 {
		t.Errorf("%d outcomes were refused", refused)
	}
	if got := b.LeftOf(id); got != "1 message, 1 recipients, 1 items, reports none" {
		t.Errorf("after an outcome that was refused: %s", got)
	}
	if refused := b.Outcomes(second, "DELIVERED"); refused != 0 {
		t.Errorf("%d outcomes were refused", refused)
	}
	if got := b.LeftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestWhatWasNotTriedGoesBackWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	first := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	b.Delivery("DNS/internet/b.example", "", "two@b.example")
	batch := b.ClaimMail(1, 2)
	b.Exec(`select parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', $1, $2)`,
		[]int64{batch[0].Lease, batch[1].Lease}, []int64{batch[0].Item, batch[1].Item})
	again := b.ClaimMail(1, 2)
	if len(again) != 2 || again[0].Message != first {
		t.Fatalf("claimed again: %+v", again)
	}
	if attempts := sqltest.Value[int](b.Session, `select max(attempts) from parley_mail._p_recipient`); attempts != 0 {
		t.Errorf("%d attempts were counted", attempts)
	}
}

func TestHopThatCannotBeReachedIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Delivery("DNS/internet/b.example", "", "one@b.example")
	other := b.Delivery("DNS/internet/c.example", "", "one@c.example")
	b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example,DNS/gone/-}', '{no answer,no answer}', array[now(), now()])`)
	batch := b.ClaimMail(10, 10)
	if len(batch) != 1 || batch[0].Message != other {
		t.Fatalf("claimed %+v", batch)
	}
	if status := sqltest.Value[string](b.Session, `select status || ' ' || last_error from parley_store.lanes where lane = 'DNS/internet/b.example'`); status !=
		"RETRY no answer" {
		t.Errorf("the lane is %s", status)
	}
	b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', array[null], array[now()])`)
	if batch := b.ClaimMail(10, 10); len(batch) != 1 {
		t.Errorf("claimed %+v after the hop was reached", batch)
	}
}

func TestWhatWaitsTooLongIsReportedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', '{no answer}', array[now()])`)
	b.Exec(`update parley_mail._p_message set received_at = now() - interval '239 minutes'`)
	b.Exec(`select parley_mail._p_report_delays()`)
	if got := b.LeftOf(id); !strings.HasSuffix(got, "reports none") {
		t.Errorf("before four hours: %s", got)
	}
	b.Exec(`update parley_mail._p_message set received_at = now() - interval '241 minutes', not_before = now() - interval '1 minute'`)
	b.Exec(`select parley_mail._p_report_delays()`)
	if got := b.LeftOf(id); !strings.HasSuffix(got, "reports none") {
		t.Errorf("a minute after it was to leave: %s", got)
	}
	b.Exec(`update parley_mail._p_message set not_before = null`)
	b.Exec(`select parley_mail._p_report_delays()`)
	if got := b.LeftOf(id); got != "1 message, 1 recipients, 1 items, reports DELAYED" {
		t.Errorf("after four hours: %s", got)
	}
	b.Exec(`delete from parley_mail._p_report`)
	b.Exec(`select parley_mail._p_report_delays()`)
	if got := b.LeftOf(id); !strings.HasSuffix(got, "reports none") {
		t.Errorf("a delay was reported twice: %s", got)
	}
	b.Exec(`update parley_store._p_item set expires_at = now() - interval '1 second'`)
	b.Exec(`select parley_mail._p_expire_waiting()`)
	if got := b.LeftOf(id); got != "1 message, 0 recipients, 0 items, reports FAILED" {
		t.Errorf("after its time: %s", got)
	}
	// No daemon reached the host, so that no recipient has a reply of it: the fault of the queue is the reason.
	if got := sqltest.Value[string](b.Session, `select status || ' ' || reason from parley_mail._p_report`); !strings.HasPrefix(got, "5.4.7 ") ||
		!strings.HasSuffix(got, "last attempt: no answer") {
		t.Errorf("reported is %s", got)
	}
}

func TestReportIsTakenOnceAndWithItsRecipients(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example", "two@b.example")
	b.Outcomes(b.ClaimMail(1, 1)[0], "FAILED", "FAILED")
	const due = `select array_to_string(addresses, ' ') from parley_mail._p_due_report()`
	if got := sqltest.Values[string](b.Session, due); len(got) != 0 {
		t.Errorf("a report is made at once: %v", got)
	}
	b.Exec(`update parley_mail._p_report set due_at = now()`)
	if got := sqltest.Values[string](b.Session, due); len(got) != 1 || got[0] != "one@b.example two@b.example" {
		t.Fatalf("taken: %q", got)
	}
	if got := sqltest.Values[string](b.Session, due); len(got) != 0 {
		t.Errorf("taken again: %v", got)
	}
	b.Exec(`select parley_mail._p_finish_report($1)`, id)
	if got := b.LeftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestNothingIsReportedAboutANullSender(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "SUCCESS,FAILURE,DELAY", "one@b.example")
	b.Exec(`update parley_mail._p_message set sender = ''`)
	b.Outcomes(b.ClaimMail(1, 1)[0], "FAILED")
	if got := b.LeftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("left: %s", got)
	}
}

func TestOnlyADaemonClaimsAndRecords(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	s := b.Sender("sender")
	for _, statement := range []string{
		`select * from parley_mail._p_claim(1, 1, '1 minute', '')`, `select parley_mail._p_renew('{1}', '1 minute')`,
		`select parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`,
		`select parley_mail._p_report_hops('{}', '{}', '{}')`, `select * from parley_mail._p_due_report()`,
		`select parley_mail._p_finish_report(1)`, `select * from parley_mail._p_read_body(1, 1, 0, 1)`, `select parley_mail._p_unneeded_bodies('{1}')`,
	} {
		s.RefusesMail(1, statement)
	}
}

// The 250 of a peer follows the commit, and a message that was delivered is not kept: neither may be lost with the server.
func TestAcceptanceAndOutcomesAreDurableInADatabaseThatDoesNotWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for _, statement := range []string{
		`perform parley_mail._p_accept(array['{"sender": "", "recipients": ["ann@example.org"], "source": "SMTP"}'::jsonb], array['x'::bytea])`,
		`perform parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`,
	} {
		b.Exec(`do $do$ begin perform set_config('synchronous_commit', 'off', true); ` + statement + `;
			if current_setting('synchronous_commit') <> 'on' then raise exception 'it is not waited for'; end if; end $do$`)
	}
}
