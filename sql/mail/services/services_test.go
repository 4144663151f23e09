package services_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestMailToAServiceOrATableIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	b.Exec(`select parley_mail.send('ann', array['orders+7@example.org', 'inbox@example.org'], 'Hi', 'text', notify => 'SUCCESS', on_status => '//informed')`)
	b.Exec("select parley_mail._p_categorize()")
	// A message whose transaction rolls back was not delivered.
	dying := b.Begin()
	dying.Exec("select parley_mail._p_deliver_to_services()")
	dying.Rollback()
	sqltest.Equal(b.Session, 0, "select count(*)::int from public.inbox")
	for range 5 {
		b.Exec("select parley_mail._p_deliver_to_services()")
	}
	sqltest.Equal(b.Session, "1 Hi new ann@example.org", "select concat_ws(' ', count(*), min(subject), min(state), min(sender)) from public.inbox")
	// No daemon has read it, and that is said.
	sqltest.Equal(b.Session, `orders+7@example.org Hi NONE true`, `
		select (message_body_json ->> 'recipient') || ' ' || (message_body_json ->> 'subject') || ' ' || (message_body_json #>> '{parsed,state}') || ' ' || (convert_from(decode(message_body_json ->> 'raw', 'base64'), 'UTF8') like '%text%' and message_body_json ->> 'raw' !~ '\s')
		from (select convert_from(message_body, 'UTF8')::jsonb as message_body_json from parley.receive('orders', 10)) as r`)
	sqltest.Equal(b.Session, "DELIVERED,DELIVERED", `
		select string_agg(convert_from(message_body, 'UTF8')::jsonb ->> 'event', ',') from parley.receive('informed', 10)`)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_recipient")
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_mail._p_report where action = 'DELIVERED'")
}

// A message goes to the conversation of each key that its recipients have, for months.
func TestMailWithOneKeyGoesToOneConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	conversations := map[string]string{} // by key of the binding and a name
	for _, c := range []struct{ key, to, headers, conversation string }{
		{"PLUS_TAG", `'orders+7@example.org', 'orders+8@example.org'`, `{}`, "7 orders+7@example.org,8 orders+8@example.org"},
		{"PLUS_TAG", `'orders+8@example.org', 'orders+8+x@example.org'`, `{}`, "8 orders+8@example.org,8+x orders+8+x@example.org"},
		{"PLUS_TAG", `'orders+Ab@example.org'`, `{}`, "ab orders+Ab@example.org"},
		{"PLUS_TAG", `'orders+aB@example.org'`, `{}`, "ab orders+aB@example.org"},
		{"VERP", `'orders+Bob=b.example@example.org'`, `{}`, "Bob@b.example orders+Bob=b.example@example.org"},
		{"VERP", `'orders+a=b=c.example@example.org'`, `{}`, "a=b@c.example orders+a=b=c.example@example.org"},
		{"THREAD", `'orders+1@example.org'`, `{"References": "<1@x> <2@x>", "In-Reply-To": "<2@x>"}`, "<1@x> orders+1@example.org"},
		{"THREAD", `'orders+1@example.org'`, `{"In-Reply-To": "your message <1@x> of today"}`, "<1@x> orders+1@example.org"},
		{"IN_REPLY_TO", `'orders+1@example.org'`, `{"References": "<1@x> <2@x>", "In-Reply-To": "<2@x>"}`, "<2@x> orders+1@example.org"},
		{"THREAD", `'orders+1@example.org'`, `{"References": "(was (of <8@x>) <9@x>) <1@x> <2@x>"}`, "<1@x> orders+1@example.org"},
		{"IN_REPLY_TO", `'orders+1@example.org'`, `{"In-Reply-To": "\"my <9@x>\" of (\\) <8@x>) today <2@x>"}`, "<2@x> orders+1@example.org"},
		{"IN_REPLY_TO", `'orders+1@example.org'`, `{"In-Reply-To": "an open (comment <2@x>"}`, "<2@x> orders+1@example.org"},
		{"SENDER", `'orders+1@example.org', 'orders+2@example.org'`, `{}`, "ann@example.org orders+1@example.org orders+2@example.org"},
	} {
		b.Apply(fmt.Sprintf(`{"service binding": {"orders": {"conversation_key": %q}}}`, c.key))
		b.Exec(fmt.Sprintf(`select parley_mail.send('ann', array[%s], 'Hi', 'text', headers => $1)`, c.to), c.headers)
		b.Exec("select parley_mail._p_categorize()")
		b.Deliver(1)
		// Months later the same key is the same conversation.
		b.Exec("update parley._p_endpoint set begun_at = begun_at - interval '3 days'")
		got := map[string]string{}
		for range 2 {
			rows, err := b.DB.Query(t.Context(), `
				select conversation_handle::text, string_agg(r.address, ' ')
				from parley.receive('orders', 1)
				cross join lateral jsonb_array_elements_text(convert_from(message_body, 'UTF8')::jsonb -> 'recipients') as r (address)
				group by 1`)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				var handle, addresses string
				if err := rows.Scan(&handle, &addresses); err != nil {
					t.Fatal(err)
				}
				got[addresses] = handle
			}
		}
		for want := range strings.SplitSeq(c.conversation, ",") {
			key, addresses, _ := strings.Cut(want, " ")
			handle := got[addresses]
			if before := conversations[c.key+key]; handle == "" || before != "" && before != handle {
				t.Errorf("%s: %s went to %q, what came before to %q", c.key, want, handle, before)
			}
			for name, other := range conversations {
				if other == handle && name != c.key+key {
					t.Errorf("%s and %s share a conversation", name, c.key+key)
				}
			}
			conversations[c.key+key] = handle
		}
	}
}

func TestMailThatABindingRefusesWaitsOrFails(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	b.Exec("alter table public.inbox add constraint short check (subject <> 'bad')")
	b.Exec(`select parley_mail.send('ann', array['inbox@example.org'], s.subject, s.body)
		from (values ('bad', 'x'), ('good', 'x'), ('large', repeat('x ', 3000))) as s (subject, body)`)
	b.Exec("select parley_mail._p_categorize()")
	b.Deliver(1)
	sqltest.Equal(b.Session, "good", "select string_agg(subject, ' ') from public.inbox")
	sqltest.Equal(b.Session, "bad 1 t", `select concat_ws(' ', subject, attempts, last_text like '%short%') from parley_mail.waiting_recipients`)
	sqltest.Equal(b.Session, "5.3.4", "select string_agg(status, ' ') from parley_mail._p_report")
	b.Exec("select parley_mail.retry_messages('{}')")
	b.Exec("update parley_store._p_item set expires_at = now() - interval '1 second'")
	b.Deliver(0)
	sqltest.Equal(b.Session, "5.3.4 5.4.7", "select string_agg(status, ' ' order by status) from parley_mail._p_report")
	// In a queue that is suspended time passes too.
	b.Exec(`select parley_mail.send('ann', array['inbox@example.org'], 'late', 'x')`)
	b.Exec("select parley_mail._p_categorize()")
	b.Exec("select parley_mail.suspend_queue('SERVICE/inbox/-')")
	sqltest.Equal(b.Session, 0, "select parley_mail._p_expire_waiting()")
	b.Exec("update parley_store._p_item set expires_at = now() - interval '1 second'")
	sqltest.Equal(b.Session, 1, "select parley_mail._p_expire_waiting()")
	sqltest.Equal(b.Session, "5.3.4 5.4.7 5.4.7", "select string_agg(status, ' ' order by status) from parley_mail._p_report")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_recipient")
	// The error of a conversation would come when the mail counts as delivered.
	b.Apply(`{"service binding": {"informed": {"pattern": "informed@example.org", "service": "//informed", "from_service": "parley_mail/Status"}}}`)
	b.Exec(`select parley_mail.send('ann', array['informed@example.org'], 'a', 'b')`)
	b.Exec("select parley_mail._p_categorize()")
	b.Deliver(0)
	sqltest.Equal(b.Session, "informed 1 t", `select concat_ws(' ', split_part(address, '@', 1), attempts, last_text like '%cannot be delivered') from parley_mail.waiting_recipients`)
	b.Exec("select parley.alter_service('//informed', add_contracts => array['DEFAULT']), parley_mail.retry_messages('{}')")
	b.Deliver(1)
	// A table of somebody else would run his triggers with our rights.
	role := b.Role("other")
	b.Exec("create table public.trap (sender text)")
	b.Exec("alter table public.trap owner to " + sqltest.Quote(role))
	b.Afterwards("drop table public.trap")
	refusal := b.RefusesMail(3, `select parley_mail.create_object('service binding', 'trap', '{"pattern": "trap@example.org", "table": "public.trap"}')`)
	if !strings.Contains(refusal.Detail, "owner") {
		t.Errorf("refused by %q", refusal.Detail)
	}
}

func TestBindingNeedsTheRightsOfItsAuthor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("administrator")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", role)
	s := b.As(role)
	b.Exec("select parley.create_queue('secret')")
	b.Exec("select parley.create_service('//secret', 'secret', array['DEFAULT'])")
	bind := func(service, from string) string {
		return fmt.Sprintf(`select parley_mail.create_object('service binding', 'secret',
			'{"pattern": "secret@example.org", "service": %q, "from_service": %q}')`, service, from)
	}
	for statement, detail := range map[string]string{
		bind("//secret", "parley_mail/Status"): "may not send",
		bind("//elsewhere", "//secret"):        "not yours",
		bind("//elsewhere", "//none"):          "not yours",
	} {
		if refusal := s.RefusesMail(3, statement); !strings.Contains(refusal.Detail, detail) {
			t.Errorf("refused by %q, want %q", refusal.Detail, detail)
		}
	}
	b.Exec("select parley.grant('SEND', 'service', '//secret', $1)", role)
	s.Exec(bind("//secret", "parley_mail/Status"))
}

// Objects made after a binding, and rights taken back after it, count when something is delivered: a binding gives its author no right.
func TestBindingDeliversWithTheRightsOfItsAuthorOfNow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role, daemon := b.Role("administrator"), b.Role("daemon")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1), parley_mail.grant_right('SERVE', $2)", role, daemon)
	b.Exec(`create table public.box (sender text); grant insert on public.box to ` + sqltest.Quote(role))
	b.Afterwards("drop table public.box")
	b.As(role).Exec(`select parley_mail.apply('{"service binding": {
		"later": {"pattern": "later@example.org", "service": "//later", "from_service": "parley_mail/Status"},
		"box": {"pattern": "box@example.org", "table": "public.box"}}}')`)
	b.Exec("revoke insert on public.box from " + sqltest.Quote(role))
	b.Exec("select parley.create_queue('later'); select parley.create_service('//later', 'later', array['DEFAULT'])")
	b.Exec("select parley_mail.send('ann', array['later@example.org', 'box@example.org'], 'a', 'b')")
	b.Exec("select parley_mail._p_categorize()")
	s := b.As(daemon)
	deliver := func(want int) {
		t.Helper()
		b.Exec("select parley_mail.retry_messages('{}')")
		sqltest.Equal(s, want, "select parley_mail._p_deliver_to_services()")
	}
	deliver(0)
	sqltest.Equal(b.Session, 2, "select count(*) from parley_mail.waiting_recipients where last_text like 'permission denied: to deliver for service binding%'")
	b.Exec("grant insert on public.box to " + sqltest.Quote(role))
	b.Exec("select parley.grant('SEND', 'service', '//later', $1)", role)
	deliver(2)
	// The owner of the schema, who inserts, is asked no policy.
	b.Exec("alter table public.box enable row level security")
	b.Exec("select parley_mail.send('ann', array['box@example.org'], 'a', 'b')")
	b.Exec("select parley_mail._p_categorize()")
	deliver(0)
	b.Exec("alter table public.box disable row level security")
	deliver(1)
	// A role that is gone may nothing, not even what everybody may.
	b.Exec("grant insert on public.box to public")
	b.Exec("update parley_mail._p_service_pattern set author = 0")
	b.Exec("select parley_mail.send('ann', array['box@example.org'], 'a', 'b')")
	b.Exec("select parley_mail._p_categorize()")
	deliver(0)
}

func TestNamesInQueuesHaveNoSeparator(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for kind, settings := range map[string]string{
		"send connector": `{"address_spaces": [{"pattern": "*"}]}`, "mailbox store": `{"address": "unix:/run/lmtp"}`,
		"service binding": `{"pattern": "a@example.org", "service": "//a", "from_service": "parley_mail/Status"}`,
	} {
		b.RefusesMail(3, `select parley_mail.create_object($1, 'a/b', $2)`, kind, settings)
	}
}

func TestOperatorsOfMailQueues(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	operator, viewer := b.Role("operator"), b.Role("viewer")
	b.Exec("select parley_mail.grant_right('OPERATE', $1), parley_mail.grant_right('VIEW', $2)", operator, viewer)
	o := b.As(operator)
	status := func(queue string) string {
		b.Helper()
		return sqltest.Value[string](o, "select coalesce(min(concat_ws(' ', status, messages)), 'none') from parley_mail.queues where queue = $1", queue)
	}
	o.Exec("select parley_mail.suspend_queue('SUBMISSION')")
	b.Exec("select parley_mail.send('ann', array['x@example.com', 'y@example.net'], 'a', 'b')")
	b.Categorize("0 0 0")
	if got := status("SUBMISSION/-/-"); got != "SUSPENDED 1" {
		t.Errorf("submission is %s", got)
	}
	sqltest.Equal(o, true, "select parley_mail.resume_queue('SUBMISSION')")
	b.Categorize("1 0 0")
	if got := status("DNS/internet/example.com"); got != "ACTIVE 1" && got != "READY 1" {
		t.Errorf("the queue is %s", got)
	}
	sqltest.Equal(o, true, "select parley_mail.suspend_queue('DNS/internet/example.com', 'for a test')")
	sqltest.Equal(b.Session, "DNS/internet/example.net", "select string_agg(lane, ' ') from parley_mail._p_claim(10, 10, '1 minute', 'x')")
	sqltest.Equal(o, 1, `select parley_mail.remove_messages('{"queue": "DNS/internet/example.com"}', dry_run => true)`)
	sqltest.Equal(o, 1, `select parley_mail.remove_messages('{"queue": "DNS/internet/example.com"}')`)
	sqltest.Equal(b.Session, "x@example.com 5.7.0", "select address || ' ' || status from parley_mail._p_report")
	sqltest.Equal(b.Session, "y@example.net", "select string_agg(address, ' ') from parley_mail.waiting_recipients")
	// An unreachable recipient is categorized anew, the rest of its message stays where it is.
	b.Apply(`{"send connector": {"internet": {"enabled": false}, "net": {"address_spaces": [{"pattern": "example.net"}]}}}`)
	b.Exec("select parley_mail.send('ann', array['z@example.com', 'w@example.net'], 'a', 'b')")
	b.Categorize("1 0 0")
	if got := status("UNREACHABLE/-/-"); got != "SUSPENDED 1" {
		t.Errorf("unreachable is %s", got)
	}
	b.Apply(`{"send connector": {"internet": {"enabled": true}}}`)
	sqltest.Equal(o, true, "select parley_mail.resume_queue('UNREACHABLE/-/-')")
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "DNS/internet/example.com DNS/net/example.net", `
		select string_agg(lane, ' ' order by lane) from parley_mail._p_recipient where address in ('z@example.com', 'w@example.net')`)
	b.Exec("select parley_mail._p_maintain()")
	for _, statement := range []string{
		"select parley_mail.suspend_queue('SUBMISSION')", "select parley_mail.resume_queue('SUBMISSION')", "select parley_mail.retry_queue('DNS/internet/example.com')",
		"select parley_mail._p_maintain()", "select parley_mail._p_deliver_to_services()",
	} {
		b.As(viewer).RefusesMail(1, statement)
	}
	sqltest.Equal(b.As(b.Role("nobody")), 0, "select count(*)::int from parley_mail.queues")
	sqltest.Equal(b.As(viewer), true, "select count(*) > 0 from parley_mail.queues")
}

// A message that answers none and has no Message-ID begins a conversation of its own; a long id is not cut to that of another, an empty one
// is none.
func TestConversationKeysKeepUnknownSendersApart(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	key := func(kind, recipient, payload string) any {
		t.Helper()
		return sqltest.Value[*string](b.Session, "select parley_mail._p_conversation_key($1, $2, $3::jsonb)", kind, recipient, payload)
	}
	long := strings.Repeat("x", 300)
	for _, kind := range []string{"THREAD", "IN_REPLY_TO"} {
		for name, pair := range map[string][2]string{
			"without an id": {`{"network_message_id": "1"}`, `{"network_message_id": "2"}`},
			"long":          {`{"header_message_id": "` + long + `1"}`, `{"header_message_id": "` + long + `2"}`},
			"empty":         {`{"headers": [["In-Reply-To", "<>"]], "header_message_id": "a"}`, `{"headers": [["In-Reply-To", "<>"]], "header_message_id": "b"}`},
		} {
			one, two := key(kind, "a@example.org", pair[0]).(*string), key(kind, "a@example.org", pair[1]).(*string)
			if one == nil || two == nil || *one == *two || len(*one) > 200 {
				t.Errorf("%s %s: the keys are %v and %v", kind, name, one, two)
			}
		}
	}
	if tag := key("PLUS_TAG", "a+@example.org", "{}").(*string); tag != nil {
		t.Errorf("an empty tag is the key %q", *tag)
	}
}

// Where no daemon of the broker runs, that of mail ends conversations with services whose time is over.
func TestMaintenanceEndsConversationsWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	daemon := b.Role("daemon")
	b.Exec("select parley_mail.grant_right('SERVE', $1)", daemon)
	b.Exec("select parley_mail.send('ann', array['orders+1@example.org'], 'Hi', 'text')")
	b.Exec("select parley_mail._p_categorize()")
	b.Exec("select parley_mail._p_deliver_to_services()")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.pooled_conversations")
	b.Exec("update parley._p_pooled_conversation set retire_at = now() - interval '1 hour'")
	b.Exec("update parley._p_alarm set due_at = now() - interval '1 hour'; select setval('parley._p_next_alarm', 1)")
	b.As(daemon).Exec("select parley_mail._p_maintain()")
	sqltest.Equal(b.Session, "DISCONNECTED_OUTBOUND", "select max(e.state_desc) from parley.conversation_endpoints as e where e.is_initiator = 1")
}

// Only maintenance reads the messages that come to mail transport: conversations that are over go, and the next mail with the key begins
// another.
func TestMaintenanceEndsConversationsThatServicesHaveEnded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	daemon := b.Role("daemon")
	b.Exec("select parley_mail.grant_right('SERVE', $1)", daemon)
	receive := func() (handle string) {
		t.Helper()
		b.Exec("select parley_mail.send('ann', array['orders+1@example.org'], 'Hi', 'text')")
		b.Exec("select parley_mail._p_categorize()")
		b.Deliver(1)
		return sqltest.Value[string](b.Session, "select conversation_handle::text from parley.receive('orders', 1)")
	}
	for _, c := range []struct {
		does, statement string
		ends            bool
		finding         string
	}{
		{"ends", "select parley.end_conversation($1)", true, ""},
		{"ends with an error", "select parley.end_conversation($1, 50001, 'no more')", true, "mail-service-error"},
		{"ends with another", "select parley.end_conversation($1, 50001, 'no more')", true, "mail-service-error"},
		{"answers", "select parley.send($1, 'DEFAULT', '{}'::jsonb)", false, "mail-service-answers"},
	} {
		handle := receive()
		b.Exec(c.statement, handle)
		b.As(daemon).Exec("select parley_mail._p_maintain()")
		b.Exec("select parley.fire_timers()")
		sqltest.Equal(b.Session, 0, "select count(*)::int from parley.queue_contents('parley_mail_status')")
		if found := sqltest.Values[string](b.Session, "select code from parley.diagnose_runtime(patience => '0')"); slices.Contains(found, "no-reader") ||
			c.finding != "" && !slices.Contains(found, c.finding) {
			t.Errorf("a service that %s: there is found %v", c.does, found)
		}
		if c.finding == "mail-service-error" {
			sqltest.Equal(b.Session, true, "select cause like '%: no more' from parley.diagnose_runtime() where code = 'mail-service-error'")
		}
		left := 0
		if !c.ends {
			left = 1
		}
		sqltest.Equal(b.Session, left, "select count(*)::int from parley.pooled_conversations")
		sqltest.Equal(b.Session, 2*left, "select count(*)::int from parley.conversation_endpoints where state <> 'CD'")
		if next := receive(); (next != handle) != c.ends {
			t.Errorf("a service that %s: the next mail comes in %s, after %s", c.does, next, handle)
		}
		if c.ends {
			sqltest.Equal(b.Session, 1, "select count(*)::int from parley._p_pooled_conversation")
			b.Exec("select parley.end_conversation(conversation_handle) from parley.conversation_endpoints where state <> 'CD'")
		}
	}
	// Where the queue cannot be read, the rest is maintained.
	b.Exec("select parley.alter_queue('parley_mail_status', status => false)")
	b.As(daemon).Exec("select parley_mail._p_maintain()")
	b.Exec("select parley.alter_queue('parley_mail_status', status => true), parley.disable_broker()")
	b.As(daemon).Exec("select parley_mail._p_maintain()")
}
