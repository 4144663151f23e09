package operations_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Until its time a message for later can be given up: by who submitted it, and by operators.
func TestScheduledMessagesAreGivenUpBeforeTheirTime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop := b.Sender("shop")
	later := func(subject, more string) int64 {
		return sqltest.Value[int64](shop, `
			select parley_mail.send('shop', array['x@example.com', 'y@example.com'], $1, 'Hi', not_before => now() + interval '1 day'`+more+")", subject)
	}
	first := later("first", ", idempotency_key => 'k', notify => 'FAILURE'")
	if got := b.StatusOf(first); got != "SUBMISSION SCHEDULED" {
		t.Errorf("scheduled: %s", got)
	}
	sqltest.Equal(b.Session, true, `select next_attempt_at > now() + interval '23 hours' from parley_mail.find_messages('{"status": "SCHEDULED"}')`)
	b.RefusesMail(6, "select parley_mail.withdraw($1)", first)
	shop.RefusesMail(6, "select parley_mail.withdraw(null)")
	sqltest.Equal(shop, 1, "select parley_mail.withdraw($1)", first)
	shop.RefusesMail(6, "select parley_mail.withdraw($1)", first)
	if again := later("first", ", idempotency_key => 'k', notify => 'FAILURE'"); again != first {
		t.Errorf("the key of message %d gave %d", first, again)
	}
	sqltest.Equal(b.Session, "FAIL SQL 5.7.0 withdrawn by its submitter 2,SUBMIT SQL 2", `
		select string_agg(concat_ws(' ', event_id, source, recipient_status[1], recipient_count), ',' order by event_id)
		from parley_mail.tracking where internal_message_id = $1::bigint::text`, first)
	sqltest.Equal(b.Session, "0 0 0", `select concat_ws(' ', (select count(*) from parley_mail._p_report), (select count(*) from parley_mail._p_message),
		(select count(*) from parley.delayed_messages))`)

	// Several that one item names: what is left of it waits on.
	all := later("all {{n}}", `, variables => '{"n": "1"}'`)
	sqltest.Equal(shop, 1, "select parley_mail.withdraw($1)", all+1)
	if got := b.StatusOf(all); got != "SUBMISSION SCHEDULED" {
		t.Errorf("the other of two: %s", got)
	}
	all2 := later("all {{n}}", `, variables => '{"n": "1"}'`)
	sqltest.Equal(shop, 2, "select parley_mail.withdraw($1)", all2)
	sqltest.Equal(shop, 1, "select parley_mail.withdraw($1)", all)

	// An operator gives them up with a report or without, and only them.
	second, third := later("second", ", notify => 'FAILURE'"), later("third", "")
	atOnce := sqltest.Value[int64](shop, "select parley_mail.send('shop', array['x@example.com'], 'now', 'text')")
	refusal := b.RefusesMail(15, "select parley_mail._p_require_changeable('suspend', jsonb_build_object('messages', array[$1::bigint]))", second)
	if !strings.Contains(refusal.Detail+refusal.Hint, "SCHEDULED in queue SUBMISSION/-/-") || !strings.Contains(refusal.Hint, "parley_mail.remove_messages") {
		t.Errorf("suspending: %q %q", refusal.Detail, refusal.Hint)
	}
	b.RefusesMail(6, "select parley_mail._p_require_changeable('suspend', '{\"messages\": [0]}')")
	sqltest.Equal(b.Session, 2, `select parley_mail.remove_messages('{"sender": "shop@*"}', dry_run => true)`)
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages(jsonb_build_object('messages', array[$1::bigint]))`, second)
	sqltest.Equal(b.Session, "x@example.com 5.7.0,y@example.com 5.7.0", "select string_agg(address || ' ' || status, ',' order by address) from parley_mail._p_report where message_id = $1", second)
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{"queue": "SUBMISSION"}', with_report => false)`)
	sqltest.Equal(b.Session, "DROP ADMIN,SUBMIT SQL", `
		select string_agg(concat_ws(' ', event_id, source), ',' order by event_id) from parley_mail.tracking where internal_message_id = $1::bigint::text`, third)
	if got := b.StatusOf(atOnce); got != "SUBMISSION READY" {
		t.Errorf("what was not scheduled: %s", got)
	}

	// With its time it is too late.
	fourth := later("fourth", "")
	b.Exec("select parley.reschedule_message('parley_mail_submission', delayed_id, now()) from parley.delayed_messages")
	run := sqltest.Value[int64](b.Session, "select parley_mail._p_begin_categorizing(100)")
	shop.RefusesMail(16, "select parley_mail.withdraw($1)", fourth)
	b.Exec("select parley_mail._p_categorize_begun($1)", run)
	shop.RefusesMail(16, "select parley_mail.withdraw($1)", fourth)
	if got := b.StatusOf(fourth); got != "DNS READY" {
		t.Errorf("categorized: %s", got)
	}
}
