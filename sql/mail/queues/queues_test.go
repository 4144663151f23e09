package queues_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestQueueShowsWhatIsInItFromCounters(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	show := func(want string) {
		t.Helper()
		sqltest.Equal(b.Session, want, `select concat_ws(' ', status, messages, deferred, high, normal, low, bytes > 0, incoming_rate > 0, outgoing_rate > 0,
			velocity = outgoing_rate - incoming_rate, connections, max_connections, oldest_at is not null) from parley_mail.queues where queue = 'DNS/internet/b.example'`)
	}
	for _, priority := range []string{"HIGH", "NORMAL", "NORMAL", "LOW"} {
		b.Exec(`select parley_mail.send('ann@example.org', array['one@b.example'], subject => 'x', text => 'x', priority => $1)`, priority)
	}
	sqltest.Equal(b.Session, "ACTIVE 4 t", `select concat_ws(' ', status, messages, bytes > 0) from parley_mail.queues where queue = 'SUBMISSION/-/-'`)
	for range 3 {
		b.Exec("select parley_mail._p_categorize(1000)")
	}
	show("ACTIVE 4 0 1 2 1 t t f t 0 5 t")
	batch := b.ClaimMail(1, 10)
	show("CONNECTING 4 0 1 2 1 t t f t 1 5 f")
	b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', array[null], array[now()])`)
	show("ACTIVE 4 0 1 2 1 t t f t 1 5 f")
	b.Outcomes(batch[0], "DELIVERED")
	b.Outcomes(batch[1], "DEFERRED")
	show("ACTIVE 3 1 0 2 1 t t t t 1 5 t")
	b.Exec(`select parley_store.fold_lane_counts()`)
	show("ACTIVE 3 1 0 2 1 t t t t 1 5 t")
	b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', '{no answer}', array[clock_timestamp()])`)
	sqltest.Equal(b.Session, "RETRY 1 1", `select concat_ws(' ', status, failures, max_connections) from parley_mail.queues where queue = 'DNS/internet/b.example'`)
	sqltest.Equal(b.Session, "SUSPENDED SUSPENDED", `select string_agg(status, ' ') from parley_mail.queues where queue in ('POISON/-/-', 'UNREACHABLE/-/-')`)
}

func TestQueuesAreReadWithoutReadingTheirItems(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_store.put_work('mail', array_agg('DNS/internet/d' || n % 20 || '.example'), array_agg(n::bigint))
		from generate_series(1, 100000) as n`)
	b.Exec(`select parley_store.fold_lane_counts()`)
	b.Exec(`analyze`)
	sqltest.Equal(b.Session, int64(100000), `select sum(messages)::bigint from parley_mail.queues where queue like 'DNS/%'`)
	// The items take up some 1,300 blocks.
	b.RequireFewReads(500, `select count(*) from parley_mail.queues where messages > 0`)
}

func TestRetryPolicyIsThatOfTheConnectorTheStoreOrARule(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_store.set_retry_policy('quick', 'STEPS', '10 seconds', jitter => 0, expires_after => '1 day')`)
	b.Exec(`select parley_store.set_retry_policy('rare', 'STEPS', '5 hours', jitter => 0, expires_after => '10 days', notice_after => '6 hours')`)
	b.Apply(`{
		"send connector": {"internet": {"address_spaces": [{"pattern": "*"}], "retry_policy": "rare", "max_connections_per_domain": 7,
			"retry_rules": [{"domain": "*.quick.example", "policy": "quick"}, {"status": "4.2.2", "policy": "rare"}, {"priority": "HIGH", "policy": "quick"}]}},
		"mailbox store": {"local": {"address": "unix:/run/lmtp", "retry_policy": "quick"}}
	}`)
	b.Exec(`select parley_mail.send('ann@example.org', array['x@b.example', 'x@a.quick.example', 'bob@example.org'], subject => 'x', text => 'x')`)
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "DNS/internet/a.quick.example quick 7, DNS/internet/b.example rare 7, MAILBOX/local/- quick 20",
		`select string_agg(format('%s %s %s', lane, retry_policy, lease_max), ', ' order by lane) from parley_store.lanes where not is_permanent`)
	for _, c := range []struct {
		lane, status, want string
		priority           int
	}{
		{"DNS/internet/b.example", "4.2.0", "mail_message", 1},
		{"DNS/internet/b.example", "4.2.2", "rare", 1},
		{"DNS/internet/b.example", "4.2.22", "mail_message", 1},
		{"DNS/internet/b.example", "4.5.0", "quick", 0},
		{"DNS/internet/a.quick.example", "4.2.2", "quick", 1},
		{"MAILBOX/local/-", "4.2.2", "mail_message", 0},
	} {
		sqltest.Equal(b.Session, c.want, `select parley_mail._p_message_policy($1, $2, $3)`, c.lane, c.priority, c.status)
	}
	// The policy that counts is the one by which a message is tried again.
	b.Delivery("DNS/internet/a.quick.example", "", "one@a.quick.example")
	b.Exec(`delete from parley_mail._p_recipient where lane not like 'DNS/%quick%'`)
	for _, c := range b.ClaimMail(10, 10) {
		b.Outcomes(c, "DEFERRED")
	}
	sqltest.Equal(b.Session, 2, `select count(*)::int from parley_store.work_items where state = 'DELAYED' and due_at < now() + interval '11 seconds'`)
	// Queues follow the configuration.
	b.Exec(`select parley_mail.alter_object('send connector', 'internet', '{"max_connections_per_domain": 3, "retry_policy": null}')`)
	b.Exec(`select parley_mail._p_maintain()`)
	sqltest.Equal(b.Session, "default 3 3", `select concat_ws(' ', retry_policy, lease_max, lease_start) from parley_store.lanes where lane = 'DNS/internet/b.example'`)
	for rule, allowed := range map[string]bool{
		`{"status": "5.1", "policy": "quick"}`: false, `{"status": "4.1.", "policy": "quick"}`: false, `{"status": "4.2.1000", "policy": "quick"}`: false,
		`{"status": "4", "policy": "quick"}`: true, `{"status": "4.999.999", "policy": "quick"}`: true, `{"policy": ""}`: false, `{}`: false,
		`{"priority": "urgent", "policy": "quick"}`: false, `{"priority": "low", "policy": "quick"}`: true, `{"hour": 3, "policy": "quick"}`: false,
		`{"unknown": "hold"}`: true, `{"unknown": "WAIT"}`: false, `{"unknown": "HOLD", "status": "4.2"}`: false, `{"unknown": "HOLD", "priority": "LOW"}`: false,
		`{"unknown": "HOLD", "policy": ""}`: false, `{"unknown": "HOLD", "policy": "quick"}`: true, `null`: false,
	} {
		tx := b.Begin()
		set := `select parley_mail.alter_object('send connector', 'internet', jsonb_build_object('retry_rules', jsonb_build_array($1::jsonb)))`
		if allowed {
			tx.Exec(set, rule)
		} else {
			tx.RefusesMail(3, set, rule)
		}
		tx.Rollback()
	}
}

// Hosts that do not know a sender yet defer him, and take him some minutes later: so the first interval is short, and one message that is
// deferred does not stop the others of its queue.
func TestDeferredMessageIsTriedSoonAndItsQueueGoesOn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Delivery("DNS/internet/b.example", "", "one@b.example")
	b.Outcomes(b.ClaimMail(1, 1)[0], "DEFERRED")
	sqltest.Equal(b.Session, true, `select due_at between now() + interval '40 seconds' and now() + interval '80 seconds' from parley_store.work_items`)
	b.Delivery("DNS/internet/b.example", "", "two@b.example")
	if next := b.ClaimMail(1, 10); len(next) != 1 || next[0].Addresses[0] != "two@b.example" {
		t.Errorf("claimed %+v", next)
	}
}

func TestQueueThatFailsForLongIsCategorizedAnew(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.send('ann@example.org', array['x@b.example', 'x@c.example'], subject => 'x', text => 'x')`)
	b.Categorize("1 0 0")
	b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', '{no answer}', array[clock_timestamp()])`)
	b.Exec(`select parley_mail._p_maintain()`)
	sqltest.Equal(b.Session, "0 0 0", `select concat_ws(' ', categorized, failed, set_aside) from parley_mail._p_categorize(10)`)
	b.Exec(`update parley_store._p_lane_state set failing_since = now() - interval '11 hours' where failures > 0`)
	b.Exec(`update parley_store._p_item set since = now() - interval '11 hours'`)
	b.Exec(`select parley_mail._p_maintain()`)
	sqltest.Equal(b.Session, "0 0 0", `select concat_ws(' ', categorized, failed, set_aside) from parley_mail._p_categorize(10)`)
	b.Exec(`update parley_store._p_lane_state set failing_since = now() - interval '13 hours' where failures > 0`)
	b.Exec(`update parley_store._p_item set since = now() - interval '13 hours'`)
	// Meanwhile there is another way.
	b.Exec(`select parley_mail.create_object('send connector', 'better', '{"address_spaces": [{"pattern": "b.example"}]}')`)
	b.Exec(`select parley_mail._p_maintain()`)
	b.Categorize("1 0 0")
	if got := b.Recipients(); got != "DNS/better/b.example x@b.example; DNS/internet/c.example x@c.example" {
		t.Errorf("recipients: %s", got)
	}
	sqltest.Equal(b.Session, true, `select exists (select from parley_store.tracking where event = 'RESUBMIT')`)
}

func TestUnreachableMailIsCategorizedAnewWhenTheConfigurationChanges(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.drop_object('send connector', 'internet')`)
	b.Exec(`select parley_mail._p_maintain()`)
	b.Exec(`select parley_mail.send('ann@example.org', array['x@b.example'], subject => 'x', text => 'x')`)
	b.Categorize("1 0 0")
	if got := b.Recipients(); got != "UNREACHABLE/-/- x@b.example" {
		t.Fatalf("recipients: %s", got)
	}
	b.Exec(`select parley_mail._p_maintain()`)
	b.Categorize("0 0 0")
	sqltest.Equal(b.Session, "true", `select parley_mail.suspend_queue('UNREACHABLE/-/-', 'not now')::text`)
	b.Exec(`select parley_mail.create_object('send connector', 'old', '{"address_spaces": [{"pattern": "*"}]}')`)
	b.Exec(`select parley_mail._p_maintain()`)
	b.Categorize("0 0 0")
	b.Exec(`select parley_mail.drop_object('send connector', 'old')`)
	b.Exec(`select parley_mail.resume_queue('UNREACHABLE/-/-')`)
	b.Categorize("1 0 0")
	b.Exec(`select parley_mail.create_object('send connector', 'new', '{"address_spaces": [{"pattern": "*"}]}')`)
	b.Exec(`select parley_mail._p_maintain()`)
	b.Categorize("1 0 0")
	if got := b.Recipients(); got != "DNS/new/b.example x@b.example" {
		t.Errorf("recipients: %s", got)
	}
}

func TestInTestModeNothingLeavesButToOneAddress(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`create table public.orders (sender text)`)
	b.Exec(`select parley_mail.create_object('service binding', 'orders', '{"pattern": "orders@b.example", "table": "public.orders"}')`)
	b.Exec(`select parley_mail.alter_object('organization', 'organization', '{"redirect_all_to": "tests@catcher.example"}')`)
	b.Exec(`select parley_mail.send('ann@example.org', array['x@b.example', 'y@c.example', 'bob@example.org', 'orders@b.example', 'tests@catcher.example'], subject => 'x', text => 'x')`)
	b.Categorize("1 0 0")
	if got := b.Recipients(); got != "DNS/internet/catcher.example tests@catcher.example; MAILBOX/local/- bob@example.org; SERVICE/orders/- orders@b.example" {
		t.Errorf("recipients: %s", got)
	}
	// One of ours, and the addresses that it stands for.
	b.Exec(`select parley_mail.alter_object('organization', 'organization', '{"redirect_all_to": "a@example.org"}')`)
	b.Exec(`delete from parley_mail._p_recipient`)
	b.Exec(`select parley_mail.send('ann@example.org', array['x@b.example'], subject => 'x', text => 'x')`)
	b.Categorize("1 0 0")
	if got := b.Recipients(); got != "MAILBOX/local/- ann@example.org" {
		t.Errorf("recipients: %s", got)
	}
}

func TestReportsKeepToTheirSettings(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"organization": {"organization": {"dsn_window": 20, "dsn_rate": 2, "delay_notice": 1860, "delay_notice_external": false}},
		"distribution group": {"all@example.org": {"members": ["bob@example.org", "ann@example.org"]},
			"closed@example.org": {"members": ["bob@example.org"], "accept_from": ["bob@example.org"]}}}`)
	refused := sqltest.Value[int64](b.Session, `select parley_mail.send('ann@example.org', array['closed@example.org', 'Closed@example.org'], subject => 'x', text => 'x', notify => 'SUCCESS,FAILURE')`)
	b.Categorize("1 0 0")
	if got := b.LeftOf(refused); !strings.HasSuffix(got, "reports FAILED") {
		t.Errorf("of a group that refuses it: %s", got)
	}
	b.Exec(`delete from parley_mail._p_report`)
	// That a group was expanded is what is reported of it; not what becomes of its members.
	group := sqltest.Value[int64](b.Session, `select parley_mail.send('ann@example.org', array['all@example.org'], subject => 'x', text => 'x', notify => 'SUCCESS,DELAY')`)
	b.Categorize("1 0 0")
	if got := b.LeftOf(group); !strings.HasSuffix(got, "reports EXPANDED") {
		t.Errorf("of a group: %s", got)
	}
	sqltest.Equal(b.Session, "DELAY DELAY", `select string_agg(notify, ' ') from parley_mail._p_recipient where message_id = $1`, group)
	b.Exec(`delete from parley_mail._p_report`)
	b.Exec(`delete from parley_store._p_item`)
	b.Exec(`delete from parley_mail._p_recipient`)
	fail := func() int64 {
		id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
		b.Outcomes(b.ClaimMail(1, 1)[0], "FAILED")
		return id
	}
	first := fail()
	sqltest.Equal(b.Session, true, `select due_at between now() + interval '15 seconds' and now() + interval '25 seconds' from parley_mail._p_report`)
	const take = `select message_id from parley_mail._p_due_report()`
	b.Exec(`update parley_mail._p_report set due_at = now()`)
	if got := sqltest.Values[int64](b.Session, take); len(got) != 1 || got[0] != first {
		t.Fatalf("due: %v", got)
	}
	b.Exec(`select parley_mail._p_finish_report($1)`, first)
	// Failures of the same message afterwards are collected for longer.
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example", "two@b.example")
	c := b.ClaimMail(1, 1)[0]
	b.Outcomes(c, "FAILED", "DEFERRED")
	b.Exec(`update parley_mail._p_report set due_at = now()`)
	b.Exec(take)
	b.Exec(`select parley_mail._p_finish_report($1)`, id)
	b.Exec(`select parley_mail._p_fail_recipients(array[$1::bigint], '{2}', '{5.0.0}', '{no}')`, id)
	b.Exec(`update parley_mail._p_report set due_at = now()`)
	if got := sqltest.Values[int64](b.Session, take); len(got) != 0 {
		t.Errorf("a second report about one message comes at once: %v", got)
	}
	sqltest.Equal(b.Session, true, `select due_at between now() + interval '30 seconds' and now() + interval '45 seconds' from parley_mail._p_report`)
	// Two reports in an hour are what a sender gets; the third is dropped.
	b.Exec(`delete from parley_mail._p_report`)
	third := fail()
	b.Exec(`update parley_mail._p_report set due_at = now()`)
	if got := sqltest.Values[int64](b.Session, take); len(got) != 0 {
		t.Errorf("a third report to one sender: %v", got)
	}
	if got := b.LeftOf(third); !strings.HasPrefix(got, "0 message") || !strings.HasSuffix(got, "reports none") {
		t.Errorf("left of what is not reported: %s", got)
	}
	// Notices of delay come when the setting says, and only to whom it says.
	inside := b.Delivery("DNS/internet/d.example", "", "one@d.example")
	outside := b.Delivery("DNS/internet/d.example", "", "two@d.example")
	b.Exec(`update parley_mail._p_message set sender = 'x@outside.example' where message_id = $1`, outside)
	b.Exec(`update parley_mail._p_message set received_at = now() - interval '1859 seconds'`)
	b.Exec(`select parley_mail._p_report_delays()`)
	if got := b.LeftOf(inside); !strings.HasSuffix(got, "reports none") {
		t.Errorf("before its time: %s", got)
	}
	b.Exec(`update parley_mail._p_message set received_at = now() - interval '1861 seconds'`)
	b.Exec(`select parley_mail._p_report_delays()`)
	if got := b.LeftOf(inside) + b.LeftOf(outside); strings.Count(got, "reports DELAYED") != 1 || !strings.HasSuffix(got, "reports none") {
		t.Errorf("after its time: %s", got)
	}
	// Whether a message comes back whole depends on the sender's wish, and on the limit for him.
	b.Exec(`select parley_mail.apply('{"organization": {"organization": {"dsn_return_limit_internal": 2000, "dsn_return_limit_external": 1000}}}')`)
	for _, c := range []struct {
		action, sender, ret string
		size                int
		want                bool
	}{
		{"FAILED", "ann@example.org", "", 2000, true},
		{"FAILED", "ann@EXAMPLE.org", "FULL", 2000, true},
		{"FAILED", "ann@example.org", "FULL", 2001, false},
		{"FAILED", "ann@example.org", "HDRS", 1, false},
		{"FAILED", "x@outside.example", "", 1000, true},
		{"FAILED", "x@outside.example", "FULL", 1001, false},
		{"DELAYED", "ann@example.org", "FULL", 1, false},
		{"DELIVERED", "ann@example.org", "FULL", 1, false},
	} {
		if got := sqltest.Value[bool](b.Session, `select parley_mail._p_returns_whole($1, $2, nullif($3, ''), $4)`, c.action, c.sender, c.ret, c.size); got != c.want {
			t.Errorf("%+v: whole is %v", c, got)
		}
	}
	b.Exec(`select parley_mail.alter_object('organization', '', '{"dsn_return_limit_internal": null}')`)
	sqltest.Equal(b.Session, "true false", `select parley_mail._p_returns_whole('FAILED', 'ann@example.org', null, 10485760)
		|| ' ' || parley_mail._p_returns_whole('FAILED', 'ann@example.org', null, 10485761)`)
}

// A message that is submitted again from one queue after the other, while what else it has is delivered, gets to everybody once.
func TestMessageThatIsSubmittedAgainLosesNobody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := sqltest.Value[int64](b.Session, `select parley_mail.send('ann@example.org', array['x@b.example', 'y@b.example', 'x@c.example', 'x@d.example'],
		subject => 'x', text => 'x', notify => 'FAILURE')`)
	b.Categorize("1 0 0")
	b.Exec(`select parley_mail._p_resubmit_queue('DNS/internet/b.example', '0')`)
	b.Exec(`select parley_mail._p_resubmit_queue('DNS/internet/c.example', '0')`)
	batch := b.ClaimMail(10, 10)
	if len(batch) != 1 || batch[0].Lane != "DNS/internet/d.example" {
		t.Fatalf("claimed %+v", batch)
	}
	b.Outcomes(batch[0], "DELIVERED")
	if got := b.LeftOf(id); got != "1 message, 0 recipients, 0 items, reports none" {
		t.Fatalf("before it is categorized: %s", got)
	}
	b.Categorize("1 0 0")
	b.Categorize("0 0 0")
	if got := b.Recipients(); got != "DNS/internet/b.example x@b.example,y@b.example; DNS/internet/c.example x@c.example" {
		t.Errorf("recipients: %s", got)
	}
	sqltest.Equal(b.Session, "FAILURE FAILURE FAILURE", `select string_agg(notify, ' ') from parley_mail._p_recipient`)
	for _, c := range b.ClaimMail(10, 10) {
		b.Outcomes(c, slices.Repeat([]string{"DELIVERED"}, len(c.Addresses))...)
	}
	if got := b.LeftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
		t.Errorf("at the end: %s", got)
	}
}

func TestMailboxThatHasMovedIsFoundAnew(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"mailbox store": {"other": {"address": "unix:/run/other"}}}`)
	id := sqltest.Value[int64](b.Session, `select parley_mail.send('ann@example.org', array['bob@example.org', 'ann@example.org'], subject => 'x', text => 'x')`)
	b.Categorize("1 0 0")
	b.Apply(`{"mailbox": {"ann@example.org": {"store": "other"}}}`)
	batch := b.ClaimMail(1, 1)
	outcomes := map[string]string{"ann@example.org": "REROUTED", "bob@example.org": "DELIVERED"}
	b.Outcomes(batch[0], outcomes[batch[0].Addresses[0]], outcomes[batch[0].Addresses[1]])
	if got := b.LeftOf(id); got != "1 message, 0 recipients, 0 items, reports none" {
		t.Errorf("left: %s", got)
	}
	sqltest.Equal(b.Session, true, `select next_due_at between now() + interval '4 minutes' and now() + interval '6 minutes'
		from parley.simple_queues where queue_name = 'parley_mail_submission'`)
	b.Exec(`select parley_mail._p_categorize_batch(array[$1::bigint])`, id)
	if got := b.Recipients(); got != "MAILBOX/other/- ann@example.org" {
		t.Errorf("recipients: %s", got)
	}
	// Not for ever.
	b.Exec(`update parley_mail._p_message set expires_at = now()`)
	b.Exec(`update parley_store._p_item set expires_at = now()`)
	b.Outcomes(b.ClaimMail(1, 1)[0], "REROUTED")
	if got := b.LeftOf(id); got != "1 message, 0 recipients, 0 items, reports FAILED" {
		t.Errorf("after its time: %s", got)
	}
}
