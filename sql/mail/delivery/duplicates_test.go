package delivery_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A lease that is over leaves others the message, and not what was delivered under it: nobody gets it twice who can be spared.
func TestWhatWasDeliveredIsNotSentAgainAfterItsLease(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	over := func() {
		b.Exec(`update parley_store._p_lease set until = now() - interval '1 second'`)
		b.Exec(`select parley_store.expire_leases()`)
	}
	first := b.ClaimMail(1, 1)[0]
	over()
	if refused := b.Late(first, "FAILED"); refused != 1 {
		t.Errorf("%d outcomes were refused", refused)
	}
	sqltest.Equal(b.Session, "1 message, 1 recipients, 1 items, reports none", fmt.Sprintf("select '%s'", b.LeftOf(id)))
	second := b.ClaimMail(1, 1)[0]
	// While the second has it in its hands.
	if refused := b.Late(first, "DELIVERED"); refused != 1 {
		t.Errorf("%d outcomes were refused", refused)
	}
	if got := b.Tracked(id, "SMTP"); got != "SEND" {
		t.Errorf("events: %s", got)
	}
	b.Late(second, "DEFERRED")
	b.Exec(`select parley_store.retry_work_now('mail', '{}')`)
	if again := b.ClaimMail(1, 1); len(again) != 0 {
		t.Errorf("sent again: %+v", again)
	}
	if got := b.LeftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestMailboxGetsAMessageThatArrivesTwiceOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	arrive := func(identity string, recipients ...string) int64 {
		id := b.Arriving("x@example.com", recipients...)
		b.Exec("update parley_mail._p_message set identity = nullif($2, '')::uuid where message_id = $1", id, identity)
		b.Categorize("1 0 0")
		return id
	}
	deliver := func() (delivered int) {
		for _, c := range b.ClaimMail(10, 10) {
			outcomes := make([]string, len(c.Ordinals))
			for i := range outcomes {
				outcomes[i] = "DELIVERED"
			}
			b.Outcomes(c, outcomes...)
			delivered += len(outcomes)
		}
		return delivered
	}
	const one, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
	arrive(one, "ann@example.org")
	again := arrive(one, "ann@example.org", "bob@example.org")
	b.Exec("update parley_mail._p_recipient set notify = 'SUCCESS' where message_id = $1", again)
	// Both are claimed before one is delivered: nobody can know.
	if delivered := deliver(); delivered != 3 {
		t.Errorf("%d were delivered", delivered)
	}
	again = arrive(one, "ann@example.org", "x@example.net")
	b.Exec("update parley_mail._p_recipient set notify = 'SUCCESS' where message_id = $1 and address like 'ann%'", again)
	if delivered := deliver(); delivered != 1 {
		t.Errorf("%d were delivered, want that to the other host", delivered)
	}
	if got := b.Tracked(again, "STOREDRIVER"); got != "DUPLICATEDELIVER" {
		t.Errorf("events: %s", got)
	}
	if got := b.LeftOf(again); got != "1 message, 0 recipients, 0 items, reports DELIVERED" {
		t.Errorf("left: %s", got)
	}
	for _, identity := range []string{other, "", ""} {
		arrive(identity, "ann@example.org")
		if delivered := deliver(); delivered != 1 {
			t.Errorf("%q: %d were delivered, want the message, which is another", identity, delivered)
		}
	}
	sqltest.Equal(b.Session, 5, "select count(*)::int from parley_mail._p_delivered")
	b.Exec(`select parley_mail.alter_object('mailbox store', 'local', '{"duplicate_window": 0}')`)
	arrive(one, "ann@example.org")
	if delivered := deliver(); delivered != 1 {
		t.Errorf("%d were delivered by a store that does not ask", delivered)
	}
	b.Exec("update parley_mail._p_delivered set until = now()")
	b.Exec("select parley_mail._p_maintain()")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_delivered")
}

func TestTrackingSaysWhatHappenedToWhatDidNotGoItsWay(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"mailbox": {"away@example.org": {"forwarding": "ONLY", "forward_to": ["ann@example.org"]}}}`)

	filtered := b.Arriving("x@example.com", "ann@example.org", "away@example.org")
	b.Exec(`update parley_mail._p_message set verdicts = '{"filters": [{"filter": "scan", "action": "CHANGE", "changes": ["header"]}]}', server_ip = '192.0.2.7',
		receive_ms = 300, received_at = now() - interval '1 second' where message_id = $1`, filtered)
	b.Categorize("1 0 0")
	if got := b.Tracked(filtered, "AGENT") + ", " + b.Tracked(filtered, "ROUTING"); got != "AGENTINFO, DUPLICATEREDIRECT" {
		t.Errorf("events: %s", got)
	}
	sqltest.Equal(b.Session, "ann@example.org away@example.org", `select concat_ws(' ', recipient_address[1], related_recipient_address)
		from parley_mail.tracking where event_id = 'DUPLICATEREDIRECT'`)
	sqltest.Equal(b.Session, "scan", `select custom_data -> 'agents' -> 0 ->> 'filter' from parley_mail.tracking where event_id = 'AGENTINFO'`)
	sqltest.Equal(b.Session, "192.0.2.7 192.0.2.7", `select concat_ws(' ', server_ip, original_server_ip) from parley_mail.tracking where event_id = 'RECEIVE'`)

	c := b.ClaimMail(1, 1)[0]
	b.Exec(`update parley_mail._p_recipient set queued_at = queued_at + interval '10 milliseconds'`)
	b.Exec(`select pg_sleep(0.1)`)
	b.Exec(`select parley_mail._p_record_outcomes(array[$1::bigint], array[$2::bigint], array[$3::bigint], $4, '{DELIVERED}', '{250}', '{2.0.0}', '{ok}', '{local}', '{}', '{}',
		server_ips => '{198.51.100.1}', connect_ms => '{7}', transfer_ms => '{20}')`, c.Lease, c.Item, c.Message, c.Ordinals)
	sqltest.Equal(b.Session, "198.51.100.1 192.0.2.7", `select concat_ws(' ', server_ip, original_server_ip) from parley_mail.tracking where event_id = 'DELIVER'`)
	sqltest.Equal(b.Session, "300 7 20 t t t", `select concat_ws(' ', receive_ms, connect_ms, transfer_ms, categorize_ms >= 700, queue_ms > 30,
			total_ms between receive_ms + categorize_ms + queue_ms + connect_ms + transfer_ms - 3 and receive_ms + categorize_ms + queue_ms + connect_ms + transfer_ms + 3)
		from parley_mail.latencies`)
	sqltest.Equal(b.Session, true, "select count(distinct log_id) = count(*) from parley_mail.tracking")

	b.Exec("alter table parley_mail._p_recipient add constraint poison check (address <> 'bad@example.com')")
	bad := b.Arriving("x@example.com", "bad@example.com")
	b.Categorize("0 1 0")
	b.Exec("select parley.reschedule_message('parley_mail_submission', delayed_id, now()) from parley.delayed_messages")
	b.Categorize("0 1 1")
	if got := b.Tracked(bad, "ROUTING") + ", " + b.Tracked(bad, "POISONMESSAGE"); got != "SUBMITDEFER SUBMITFAIL, POISONMESSAGE" {
		t.Errorf("events: %s", got)
	}

	b.Rates(`[{"key": "TAG", "messages": 1, "per": 3600}, {"key": "DOMAIN", "messages": 2, "per": 3600}]`)
	var ids [4]int64
	for i := range ids {
		ids[i] = b.Delivery("DNS/internet/b.example", "", fmt.Sprintf("r%d@b.example", i))
		b.Exec("update parley_mail._p_message set tag = $2 where message_id = $1", ids[i], fmt.Sprint("t", max(i, 1)))
	}
	b.Permit(b.ClaimMail(1, 10), "")
	sqltest.Equal(b.Session, fmt.Sprintf("%d r1@b.example, %d r3@b.example", ids[1], ids[3]), `select string_agg(internal_message_id || ' ' || recipient_address[1], ', ' order by internal_message_id)
		from parley_mail.tracking where event_id = 'THROTTLE'`)

	b.Exec(`select parley_mail._p_track_unstored('{"event": "BADMAIL", "source": "PICKUP", "text": "x.bad: no sender", "recipients": ["a@b.example"]}')`)
	sqltest.Equal(b.Session, "PICKUP x.bad: no sender a@b.example", `select concat_ws(' ', source, source_context, recipient_address[1]) from parley_mail.tracking where event_id = 'BADMAIL'`)
	b.RefusesMail(10, `select parley_mail._p_track_unstored('{"event": "SEND"}')`)
}
