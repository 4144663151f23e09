package sql_test

import (
	"fmt"
	"testing"
)

// tracked gives the distinct events of a message that have a source.
func (b *broker) tracked(id int64, source string) string {
	b.Helper()
	return value[string](b.session, `select coalesce(string_agg(distinct event_id, ' ' order by event_id), '')
		from parley_mail.tracking where internal_message_id = $1::bigint::text and source = $2`, id, source)
}

// late records an outcome with the addresses of the recipients, as a daemon does.
func (b *broker) late(c claimed, outcome string) int {
	b.Helper()
	return value[int](b.session, `select parley_mail._p_record_outcomes(array[$1::bigint], array[$2::bigint], array[$3::bigint], $4, array[$5], array[250], '{2.0.0}', '{ok}',
		'{mx.b.example}', '{}', '{}', addresses => $6)`, c.Lease, c.Item, c.Message, c.Ordinals[:1], outcome, c.Addresses[:1])
}

// A lease that is over leaves others the message, and not what was delivered under it: nobody gets it twice who can be spared.
func TestWhatWasDeliveredIsNotSentAgainAfterItsLease(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	id := b.delivery("DNS/internet/b.example", "", "one@b.example")
	over := func() {
		b.exec(`update parley_store._p_lease set until = now() - interval '1 second'`)
		b.exec(`select parley_store.expire_leases()`)
	}
	first := b.claimMail(1, 1)[0]
	over()
	if refused := b.late(first, "FAILED"); refused != 1 {
		t.Errorf("%d outcomes were refused", refused)
	}
	equal(b.session, "1 message, 1 recipients, 1 items, reports none", fmt.Sprintf("select '%s'", b.leftOf(id)))
	second := b.claimMail(1, 1)[0]
	// While the second has it in its hands.
	if refused := b.late(first, "DELIVERED"); refused != 1 {
		t.Errorf("%d outcomes were refused", refused)
	}
	if got := b.tracked(id, "SMTP"); got != "SEND" {
		t.Errorf("events: %s", got)
	}
	b.late(second, "DEFERRED")
	b.exec(`select parley_store.retry_work_now('mail', '{}')`)
	if again := b.claimMail(1, 1); len(again) != 0 {
		t.Errorf("sent again: %+v", again)
	}
	if got := b.leftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestMailboxGetsAMessageThatArrivesTwiceOnce(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	arrive := func(identity string, recipients ...string) int64 {
		id := b.arriving("x@example.com", recipients...)
		b.exec("update parley_mail._p_message set identity = nullif($2, '')::uuid where message_id = $1", id, identity)
		b.categorize("1 0 0")
		return id
	}
	deliver := func() (delivered int) {
		for _, c := range b.claimMail(10, 10) {
			outcomes := make([]string, len(c.Ordinals))
			for i := range outcomes {
				outcomes[i] = "DELIVERED"
			}
			b.outcomes(c, outcomes...)
			delivered += len(outcomes)
		}
		return delivered
	}
	const one, other = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
	arrive(one, "ann@example.org")
	again := arrive(one, "ann@example.org", "bob@example.org")
	b.exec("update parley_mail._p_recipient set notify = 'SUCCESS' where message_id = $1", again)
	// Both are claimed before one is delivered: nobody can know.
	if delivered := deliver(); delivered != 3 {
		t.Errorf("%d were delivered", delivered)
	}
	again = arrive(one, "ann@example.org", "x@example.net")
	b.exec("update parley_mail._p_recipient set notify = 'SUCCESS' where message_id = $1 and address like 'ann%'", again)
	if delivered := deliver(); delivered != 1 {
		t.Errorf("%d were delivered, want that to the other host", delivered)
	}
	if got := b.tracked(again, "STOREDRIVER"); got != "DUPLICATEDELIVER" {
		t.Errorf("events: %s", got)
	}
	if got := b.leftOf(again); got != "1 message, 0 recipients, 0 items, reports DELIVERED" {
		t.Errorf("left: %s", got)
	}
	for _, identity := range []string{other, "", ""} {
		arrive(identity, "ann@example.org")
		if delivered := deliver(); delivered != 1 {
			t.Errorf("%q: %d were delivered, want the message, which is another", identity, delivered)
		}
	}
	equal(b.session, 5, "select count(*)::int from parley_mail._p_delivered")
	b.exec(`select parley_mail.alter_object('mailbox store', 'local', '{"duplicate_window": 0}')`)
	arrive(one, "ann@example.org")
	if delivered := deliver(); delivered != 1 {
		t.Errorf("%d were delivered by a store that does not ask", delivered)
	}
	b.exec("update parley_mail._p_delivered set until = now()")
	b.exec("select parley_mail._p_maintain()")
	equal(b.session, 0, "select count(*)::int from parley_mail._p_delivered")
}

func TestTrackingSaysWhatHappenedToWhatDidNotGoItsWay(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.apply(`{"mailbox": {"away@example.org": {"forwarding": "ONLY", "forward_to": ["ann@example.org"]}}}`)

	filtered := b.arriving("x@example.com", "ann@example.org", "away@example.org")
	b.exec(`update parley_mail._p_message set verdicts = '{"filters": [{"filter": "scan", "action": "CHANGE", "changes": ["header"]}]}', server_ip = '192.0.2.7',
		receive_ms = 300, received_at = now() - interval '1 second' where message_id = $1`, filtered)
	b.categorize("1 0 0")
	if got := b.tracked(filtered, "AGENT") + ", " + b.tracked(filtered, "ROUTING"); got != "AGENTINFO, DUPLICATEREDIRECT" {
		t.Errorf("events: %s", got)
	}
	equal(b.session, "ann@example.org away@example.org", `select concat_ws(' ', recipient_address[1], related_recipient_address)
		from parley_mail.tracking where event_id = 'DUPLICATEREDIRECT'`)
	equal(b.session, "scan", `select custom_data -> 'agents' -> 0 ->> 'filter' from parley_mail.tracking where event_id = 'AGENTINFO'`)
	equal(b.session, "192.0.2.7 192.0.2.7", `select concat_ws(' ', server_ip, original_server_ip) from parley_mail.tracking where event_id = 'RECEIVE'`)

	c := b.claimMail(1, 1)[0]
	b.exec(`update parley_mail._p_recipient set queued_at = queued_at + interval '10 milliseconds'`)
	b.exec(`select pg_sleep(0.1)`)
	b.exec(`select parley_mail._p_record_outcomes(array[$1::bigint], array[$2::bigint], array[$3::bigint], $4, '{DELIVERED}', '{250}', '{2.0.0}', '{ok}', '{local}', '{}', '{}',
		server_ips => '{198.51.100.1}', connect_ms => '{7}', transfer_ms => '{20}')`, c.Lease, c.Item, c.Message, c.Ordinals)
	equal(b.session, "198.51.100.1 192.0.2.7", `select concat_ws(' ', server_ip, original_server_ip) from parley_mail.tracking where event_id = 'DELIVER'`)
	equal(b.session, "300 7 20 t t t", `select concat_ws(' ', receive_ms, connect_ms, transfer_ms, categorize_ms >= 700, queue_ms > 30,
			total_ms between receive_ms + categorize_ms + queue_ms + connect_ms + transfer_ms - 3 and receive_ms + categorize_ms + queue_ms + connect_ms + transfer_ms + 3)
		from parley_mail.latencies`)
	equal(b.session, true, "select count(distinct log_id) = count(*) from parley_mail.tracking")

	b.exec("alter table parley_mail._p_recipient add constraint poison check (address <> 'bad@example.com')")
	bad := b.arriving("x@example.com", "bad@example.com")
	b.categorize("0 1 0")
	b.exec("select parley.reschedule_message('parley_mail_submission', delayed_id, now()) from parley.delayed_messages")
	b.categorize("0 1 1")
	if got := b.tracked(bad, "ROUTING") + ", " + b.tracked(bad, "POISONMESSAGE"); got != "SUBMITDEFER SUBMITFAIL, POISONMESSAGE" {
		t.Errorf("events: %s", got)
	}

	b.rates(`[{"key": "TAG", "messages": 1, "per": 3600}, {"key": "DOMAIN", "messages": 2, "per": 3600}]`)
	var ids [4]int64
	for i := range ids {
		ids[i] = b.delivery("DNS/internet/b.example", "", fmt.Sprintf("r%d@b.example", i))
		b.exec("update parley_mail._p_message set tag = $2 where message_id = $1", ids[i], fmt.Sprint("t", max(i, 1)))
	}
	b.permit(b.claimMail(1, 10), "")
	equal(b.session, fmt.Sprintf("%d r1@b.example, %d r3@b.example", ids[1], ids[3]), `select string_agg(internal_message_id || ' ' || recipient_address[1], ', ' order by internal_message_id)
		from parley_mail.tracking where event_id = 'THROTTLE'`)

	b.exec(`select parley_mail._p_track_unstored('{"event": "BADMAIL", "source": "PICKUP", "text": "x.bad: no sender", "recipients": ["a@b.example"]}')`)
	equal(b.session, "PICKUP x.bad: no sender a@b.example", `select concat_ws(' ', source, source_context, recipient_address[1]) from parley_mail.tracking where event_id = 'BADMAIL'`)
	b.refusesMail(10, `select parley_mail._p_track_unstored('{"event": "SEND"}')`)
}
