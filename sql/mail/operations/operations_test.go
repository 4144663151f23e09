package operations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestMessagesAreSuspendedResumedAndRetried(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Sent("a", "x@example.com", "bob@example.org")
	sqltest.Equal(b.Session, 1, `select parley_mail.suspend_messages('{"queue": "DNS/*"}', 'wait', dry_run => true)`)
	sqltest.Equal(b.Session, 1, `select parley_mail.suspend_messages('{"queue": "DNS/*"}', 'wait')`)
	sqltest.Equal(b.Session, 0, `select parley_mail.suspend_messages('{"queue": "DNS/*"}', 'wait')`)
	if got := b.StatusOf(id); got != "DNS SUSPENDED, MAILBOX READY" {
		t.Errorf("after suspend: %s", got)
	}
	claims := b.ClaimMail(10, 10)
	if len(claims) != 1 || claims[0].Lane != "MAILBOX/local/-" {
		t.Fatalf("claimed %v", claims)
	}
	if got := b.StatusOf(id); got != "DNS SUSPENDED, MAILBOX ACTIVE" {
		t.Errorf("after claim: %s", got)
	}
	// A message under way is suspended when its attempt has failed.
	sqltest.Equal(b.Session, 1, `select parley_mail.suspend_messages('{"queue": "MAILBOX/*"}')`)
	if got := b.StatusOf(id); got != "DNS SUSPENDED, MAILBOX PENDING_SUSPEND" {
		t.Errorf("suspended under way: %s", got)
	}
	b.Outcomes(claims[0], "DEFERRED")
	if got := b.StatusOf(id); got != "DNS SUSPENDED, MAILBOX SUSPENDED" {
		t.Errorf("after the attempt: %s", got)
	}
	sqltest.Equal(b.Session, 2, `select parley_mail.resume_messages(jsonb_build_object('messages', array[$1::bigint]))`, id)
	claims = append(b.ClaimMail(10, 10), b.ClaimMail(10, 10)...)
	for _, c := range claims {
		b.Outcomes(c, "DEFERRED")
	}
	if got := b.StatusOf(id); got != "DNS RETRY, MAILBOX RETRY" {
		t.Errorf("after failures: %s", got)
	}
	sqltest.Equal(b.Session, 1, `select parley_mail.retry_messages('{"recipient": "bob@*"}')`)
	if got := b.StatusOf(id); got != "DNS RETRY, MAILBOX READY" {
		t.Errorf("after retry: %s", got)
	}
	// With a queue that is in RETRY its messages wait, although none of them has failed.
	b.Exec("select parley_store.fail_lane('mail', lane, 'no answer') from parley_store.lanes where lane like 'MAILBOX/%' or lane like 'DNS/%' order by lane_id")
	sqltest.Equal(b.Session, 2, `select parley_mail.retry_messages('{}', dry_run => true)`)
	sqltest.Equal(b.Session, "1 1", `select concat_ws(' ', parley_mail.retry_queues('{"queue": "mailbox/*"}', dry_run => true), parley_mail.retry_queues('{"recipient": "bob@*"}'))`)
	if got := b.StatusOf(id); got != "DNS RETRY, MAILBOX READY" {
		t.Errorf("after retry of a queue: %s", got)
	}
	sqltest.Equal(b.Session, "0 1 0", `select concat_ws(' ', parley_mail.retry_messages('{"queue": "MAILBOX/*"}'), parley_mail.retry_messages('{"queue": "DNS/*"}'), parley_mail.retry_messages('{}'))`)
	if got := b.StatusOf(id); got != "DNS READY, MAILBOX READY" {
		t.Errorf("after retry of all: %s", got)
	}
	b.Exec("select parley_store.fail_lane('mail', 'MAILBOX/local/-', 'no answer')")
	sqltest.Equal(b.Session, "0 1 0", `select concat_ws(' ', parley_mail.retry_messages('{}', queues => false), parley_mail.retry_messages('{}'), parley_mail.retry_queues('{}'))`)
	// Another time, priority and end.
	sqltest.Equal(b.Session, 2, `select parley_mail.change_messages('{}', priority => 'high', expires => '2099-01-01', next_attempt => '2098-01-01', dry_run => true)`)
	sqltest.Equal(b.Session, 2, `select parley_mail.change_messages('{}', priority => 'high', expires => '2099-01-01', next_attempt => '2098-01-01')`)
	sqltest.Equal(b.Session, 0, `select parley_mail.change_messages('{}', priority => 'high', expires => '2099-01-01', next_attempt => '2098-01-01')`)
	sqltest.Equal(b.Session, "HIGH RETRY 2099 2098,HIGH RETRY 2099 2098", `
		select string_agg(concat_ws(' ', priority, status, extract(year from expires_at), extract(year from next_attempt_at)), ',') from parley_mail.messages`)
	sqltest.Equal(b.Session, 2, `select parley_mail.change_messages('{}', next_attempt => now())`)
	if claims = append(b.ClaimMail(10, 10), b.ClaimMail(10, 10)...); len(claims) != 2 {
		t.Errorf("claimed %v", claims)
	}
	b.RefusesMail(10, `select parley_mail.change_messages('{}')`)
	b.RefusesMail(10, `select parley_mail.change_messages('{}', priority => 'URGENT')`)
	sqltest.Equal(b.Session, "RESUME,SUSPEND", `select string_agg(distinct event_id, ',') from parley_mail.tracking where source = 'ADMIN'`)
	sqltest.Equal(b.Session, "change messages,resume messages,retry messages,suspend messages", `select string_agg(distinct operation, ',' order by operation) from parley_mail.audit where operation like '% messages'`)
}

func TestMessagesAreRemovedWithAReportOrWithout(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	first, second, third := b.Sent("a", "x@example.com"), b.Sent("b", "x@example.com", "bob@example.org"), b.Sent("c", "y@example.net")
	b.Exec("select parley_mail.send('ann', array['z@example.com'], 'waits', 'text')")
	sqltest.Equal(b.Session, 4, `select parley_mail.remove_messages('{}', dry_run => true)`)
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{"subject": "a"}', with_report => false)`)
	sqltest.Equal(b.Session, "0 DROP", `select (select count(*) from parley_mail._p_report) || ' ' || (select string_agg(event_id, ' ') from parley_mail.tracking where source = 'ADMIN')`)
	if got := b.StatusOf(first); got != "gone" {
		t.Errorf("removed: %s", got)
	}
	// In steps, until nothing is left.
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{"subject": "b"}', top => 1)`)
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{"subject": "b"}', top => 1)`)
	sqltest.Equal(b.Session, 0, `select parley_mail.remove_messages('{"subject": "b"}', top => 1)`)
	sqltest.Equal(b.Session, "bob@example.org x@example.com", `select string_agg(address, ' ' order by address) from parley_mail._p_report where message_id = $1 and status = '5.7.0'`, second)
	// A message under way goes when the attempt has failed, and not before.
	claims := b.ClaimMail(10, 10)
	if len(claims) != 1 || claims[0].Message != third {
		t.Fatalf("claimed %v", claims)
	}
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{"subject": "c"}')`)
	b.Exec("select parley_mail._p_maintain()")
	if got := b.StatusOf(third); got != "DNS PENDING_REMOVE" {
		t.Errorf("removed under way: %s", got)
	}
	sqltest.Equal(b.Session, 0, `select parley_mail.remove_messages('{"subject": "c"}')`)
	b.Outcomes(claims[0], "DEFERRED")
	b.Exec("select parley_mail._p_maintain()")
	sqltest.Equal(b.Session, "y@example.net 5.7.0", "select string_agg(address || ' ' || status, '') from parley_mail._p_report where message_id = $1", third)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_recipient")
	// The submission queue is left alone.
	b.RefusesMail(6, `select parley_mail.remove_messages('{"queue": "SUBMISSION"}')`)
	sqltest.Equal(b.Session, "SUBMISSION/-/- READY", "select string_agg(queue || ' ' || status, ',') from parley_mail.messages")
	b.RefusesMail(6, `select parley_mail.suspend_queue('DNS/internet/nowhere.example')`)
}

func TestRemovalOfWhatIsDeliveredAfterAllComesTooLate(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Sent("a", "x@example.com")
	claims := b.ClaimMail(10, 10)
	sqltest.Equal(b.Session, 1, `select parley_mail.remove_messages('{}')`)
	b.Outcomes(claims[0], "DELIVERED")
	b.Exec("select parley_mail._p_maintain()")
	sqltest.Equal(b.Session, "SEND", `select string_agg(event_id, ' ') from parley_mail.tracking where internal_message_id = $1::bigint::text and source <> 'SQL'`, id)
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_report")
}

func TestMessagesAreCategorizedAnew(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"send connector": {"internet": {"enabled": false}, "net": {"address_spaces": [{"pattern": "example.net"}]}}}`)
	id := b.Sent("a", "x@example.com", "y@example.net")
	b.Exec("select parley_store.fail_lane('mail', 'DNS/net/example.net', 'no answer')")
	if got := b.StatusOf(id); got != "DNS RETRY, UNREACHABLE READY" {
		t.Errorf("before: %s", got)
	}
	// Suspended messages stay.
	b.Exec(`select parley_mail.suspend_messages('{"queue": "DNS/*"}')`)
	sqltest.Equal(b.Session, 1, `select parley_mail.resubmit_messages('{}')`)
	b.Apply(`{"send connector": {"internet": {"enabled": true}}}`)
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "DNS/internet/example.com x@example.com; DNS/net/example.net y@example.net", "select $1::text", b.Recipients())
	b.Exec(`select parley_mail.resume_messages('{}')`)
	sqltest.Equal(b.Session, 1, `select parley_mail.resubmit_messages('{"queue": "DNS/net/*"}')`)
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_mail._p_recipient")
	sqltest.Equal(b.Session, "1 RESUBMIT 2,SUBMIT 1", `
		select '1 ' || string_agg(event_id || ' ' || n, ',' order by event_id) from (
			select event_id, count(*) as n from parley_mail.tracking where event_id in ('SUBMIT', 'RESUBMIT') group by 1) as e`)
}

func TestSuspendedMessagesAreExportedForReplay(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	reader := b.Role("reader")
	b.Exec("select parley_mail.grant_right('READ_CONTENT', $1)", reader)
	r := b.As(reader)
	id := sqltest.Value[int64](b.Session, "select parley_mail.send('ann', array['x@example.com', 'y@example.com'], 'a', repeat('text ', 3000), notify => 'SUCCESS', ret => 'HDRS', envid => 'E+1=', verp => true)")
	b.Exec("select parley_mail._p_categorize(100)")
	sqltest.Equal(r, 0, "select count(*)::int from parley_mail.export_messages('{}')")
	// A message that is named by its number says why it is not given.
	later := sqltest.Value[int64](b.Session, "select parley_mail.send('ann', array['x@example.com'], 'later', 'text')")
	for _, c := range []struct {
		messages []int64
		number   int
		says     string
	}{
		{[]int64{id}, 15, "READY in queue DNS/internet/example.com"},
		{[]int64{later}, 15, "READY in queue SUBMISSION/-/-"},
		{[]int64{0, id}, 6, "never submitted"},
		{[]int64{id, 0}, 15, "parley_mail.suspend_messages"},
	} {
		refusal := r.RefusesMail(c.number, "select parley_mail.export_messages(jsonb_build_object('messages', $1::bigint[]))", c.messages)
		if !strings.Contains(refusal.Detail+refusal.Hint, c.says) {
			t.Errorf("export of %v: %q %q does not say %q", c.messages, refusal.Detail, refusal.Hint, c.says)
		}
	}
	sqltest.Equal(r, 0, `select count(*)::int from parley_mail.export_messages(jsonb_build_object('messages', $1::bigint, 'queue', 'MAILBOX/*'))`, id)
	b.Exec("select parley_mail.suspend_messages('{}')")
	r.RefusesMail(15, "select parley_mail.export_messages(jsonb_build_object('messages', array[$1::bigint, $2]))", id, later)
	sqltest.Equal(r, 1, "select count(*)::int from parley_mail.export_messages(jsonb_build_object('messages', $1::bigint))", id)
	text := sqltest.Value[string](r, "select convert_from(content, 'UTF8') from parley_mail.export_messages('{}')")
	const want = "X-Sender: <ann@example.org> RET=HDRS ENVID=E+2B1+3D XVERP\r\nX-Receiver: <x@example.com> NOTIFY=SUCCESS\r\nX-Receiver: <y@example.com> NOTIFY=SUCCESS\r\n" +
		"X-CreatedBy: Parley\r\nX-Source: SQL\r\nX-Directionality: ORIGINATING\r\nX-EndOfInjectedXHeaders: 1\r\nDate: "
	if !strings.HasPrefix(text, want) || !strings.Contains(text, "\r\nSubject: a\r\n") || len(text) < 15000 {
		t.Errorf("exported %q", text[:min(len(text), 400)])
	}
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_mail.messages where status = 'SUSPENDED'")
	sqltest.Equal(r, 0, "select count(*)::int from parley_mail.export_messages('{}', after => (select max(bookmark) from parley_mail.export_messages('{}')))")
	header := sqltest.Value[string](r, "select convert_from(parley_mail.read_message($1), 'UTF8')", id)
	if !strings.Contains(header, "Subject: a\r\n") || strings.Contains(header, "text text") {
		t.Errorf("the header is %q", header)
	}
	sqltest.Equal(r, "Subj", "select convert_from(parley_mail.read_message($1, 'ALL', $2, 4), 'UTF8')", id, int64(strings.Index(text, "Subject: ")-strings.Index(text, "Date: ")))
	sqltest.Equal(b.Session, true, "select count(*) filter (where operation = 'export message') >= 1 and count(*) filter (where operation = 'read message') = 2 from parley_mail.audit where role = $1 and object = $2::bigint::text", reader, id)
	r.RefusesMail(6, "select parley_mail.read_message(0)")
	r.RefusesMail(6, "select parley_mail.read_message(null)")
	r.RefusesMail(10, "select parley_mail.read_message($1, 'SECRET')", id)
	b.As(b.Role("other")).RefusesMail(1, "select parley_mail.read_message($1)", id)
}

func TestAddressIsTestedWithoutSending(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{
		"mailbox": {"small@example.org": {"store": "local", "max_receive_size": 2000}},
		"distribution group": {"all@example.org": {"members": ["ann@example.org", "x@example.com"]}}}`)
	b.Exec("select parley_mail.hold_domain('example.com')")
	for _, c := range []struct{ call, want string }{
		{"'a@example.org'", "ann@example.org RESOLVE MAILBOX local f"},
		{"'Ann <ann@example.org>'", "ann@example.org MAILBOX local f"},
		{"'all@example.org'", "ann@example.org EXPAND MAILBOX local f;x@example.com EXPAND DNS internet example.com t"},
		{"'x@example.net'", "x@example.net DNS internet example.net f"},
		{"'nobody@example.org'", "nobody@example.org f 5.1.1"},
		{"'small@example.org', size => 5000", "small@example.org f 5.2.3"},
	} {
		sqltest.Equal(b.Session, c.want, `select string_agg(concat_ws(' ', recipient, by_way_of, delivery_type, connector, next_hop, is_held, status), ';') from parley_mail.test_address(`+c.call+")")
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_message")
	b.RefusesMail(10, "select parley_mail.test_address('nobody')")
	b.RefusesMail(10, "select parley_mail.test_address(null)")
}

func TestTrackingIsForViewersAndSubmitters(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop := b.Sender("shop")
	id := sqltest.Value[int64](shop, "select parley_mail.send('shop', array['a@example.org', 'nobody@example.org'], 'secret', 'text', tag => '7')")
	other := b.Arriving("x@example.com", "bob@example.org")
	b.Exec("select parley_mail._p_categorize(100)")
	for _, c := range b.ClaimMail(10, 10) {
		b.Outcomes(c, "DELIVERED")
	}
	sqltest.Equal(shop, "DELIVER,FAIL,RESOLVE,SUBMIT", "select string_agg(event_id, ',' order by event_id) from parley_mail.tracking")
	sqltest.Equal(shop, 0, "select count(*)::int from parley_mail.tracking where internal_message_id = $1::bigint::text", other)
	sqltest.Equal(b.Session, "DELIVER STOREDRIVER local,RECEIVE SMTP", `
		select string_agg(concat_ws(' ', event_id, source, connector_id), ',' order by event_id) from parley_mail.tracking where internal_message_id = $1::bigint::text`, other)
	sqltest.Equal(b.Session, "secret shop@example.org ORIGINATING 7 a@example.org t", `
		select concat_ws(' ', min(message_subject), min(sender_address), min(directionality), min(custom_data ->> 'tag'), min(related_recipient_address) filter (where event_id = 'RESOLVE'), min(message_info) is not null)
		from parley_mail.tracking where internal_message_id = $1::bigint::text`, id)
	sqltest.Equal(b.As(b.Role("nobody")), 0, "select count(*)::int from parley_mail.tracking")
	b.Apply(`{"organization": {"organization": {"track_subjects": false}}}`)
	id = sqltest.Value[int64](shop, "select parley_mail.send('shop', array['ann@example.org'], 'secret', 'text')")
	b.Exec("select parley_mail._p_categorize(100)")
	sqltest.Equal(b.Session, "true", "select bool_and(message_subject is null)::text from parley_mail.tracking where internal_message_id = $1::bigint::text", id)
}

// The members of a group, and where an alias or forwarding leads, are for roles that see all of mail.
func TestSubmitterSeesTheAddressesThatHeWrote(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"distribution group": {"all@example.org": {"members": ["ann@example.org", "bob@example.org", "far@secret.example"]}},
		"mailbox": {"eve@example.org": {"forwarding": "ONLY", "forward_to": ["fwd@secret.example"]}}}`)
	b.Exec("select parley.create_queue('informed'); select parley.create_service('//informed', 'informed', array['parley_mail/Status'])")
	shop := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', $1), parley.grant('SEND', 'service', '//informed', $1)", shop)
	s := b.As(shop)
	id := sqltest.Value[int64](s, "select parley_mail.send('shop', array['all@example.org', 'a@example.org', 'eve@example.org', 'bob@example.org'], 'a', 'b', on_status => '//informed')")
	b.Exec("select parley_mail._p_categorize(100)")
	for range 4 {
		for _, c := range b.ClaimMail(10, 10) {
			b.Outcomes(c, slices.Repeat([]string{"FAILED"}, len(c.Ordinals))...)
		}
	}
	sqltest.Equal(s, "DELIVERFAIL {all@example.org,bob@example.org} 4.2.0, DUPLICATEEXPAND {a@example.org}, DUPLICATEEXPAND {bob@example.org}, EXPAND {all@example.org}, "+
		"FAIL {all@example.org,eve@example.org} 4.2.0, REDIRECT {eve@example.org}, SUBMIT {all@example.org,a@example.org,eve@example.org,bob@example.org}",
		"select string_agg(concat_ws(' ', event_id, recipient_address, recipient_status[1]), ', ' order by event_id, recipient_address) from parley_mail.tracking")
	seen := sqltest.Value[string](s, "select string_agg(t::text, ' ') from parley_mail.tracking as t") + sqltest.Value[string](b.Session, `
		select string_agg(convert_from(message_body, 'UTF8'), ' ') from parley.receive('informed', 100)`)
	if strings.Contains(seen, "ann@") || strings.Contains(seen, "secret.example") || strings.Count(seen, "all@example.org") < 3 {
		t.Errorf("the submitter sees %s", seen)
	}
	// Where an address is not ASCII, its type is another one.
	b.Apply(`{"distribution group": {"grüppe@example.org": {"members": ["ann@example.org"]}}}`)
	wide := sqltest.Value[int64](s, "select parley_mail.send('shop', array['grüppe@example.org'], 'a', 'b')")
	b.Exec("select parley_mail._p_categorize(100)")
	sqltest.Equal(s, "{grüppe@example.org}", "select recipient_address::text from parley_mail.tracking where event_id = 'EXPAND' and internal_message_id = $1::bigint::text", wide)
	sqltest.Equal(b.Session, true, "select bool_or(recipient_address @> array['far@secret.example']) from parley_mail.tracking where internal_message_id = $1::bigint::text", id)
}

func TestOperationsOfMailAskForTheRight(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Sent("a", "x@example.com")
	viewer, nobody := b.Role("viewer"), b.As(b.Role("nobody"))
	b.Exec("select parley_mail.grant_right('VIEW', $1)", viewer)
	v := b.As(viewer)
	for _, statement := range []string{
		"parley_mail.suspend_messages('{}')", "parley_mail.resume_messages('{}')", "parley_mail.retry_messages('{}')", "parley_mail.retry_queues('{}')", "parley_mail.resubmit_messages('{}')",
		"parley_mail.remove_messages('{}')", "parley_mail.change_messages('{}', priority => 'LOW')", "parley_mail.hold_domain('example.com')",
		"parley_mail.release_domain('example.com')", "parley_mail.export_messages('{}')", "parley_mail.read_message(1)",
	} {
		v.RefusesMail(1, "select "+statement)
		nobody.RefusesMail(1, "select "+statement)
	}
	for _, statement := range []string{"parley_mail.find_messages('{}')", "parley_mail.test_address('x@example.com')"} {
		v.Exec("select " + statement)
		nobody.RefusesMail(1, "select "+statement)
	}
	for _, view := range []string{"messages", "held_domains", "tracking", "queues"} {
		sqltest.Equal(nobody, 0, "select count(*)::int from parley_mail."+view)
	}
	sqltest.Equal(v, 1, "select count(*)::int from parley_mail.messages")
	sqltest.Equal(b.Session, false, `
		select bool_or(has_function_privilege($1::text, p.oid, 'execute')) from pg_proc as p
		where p.pronamespace = 'parley_mail'::regnamespace and p.proname in ('_p_give_up', '_p_resubmit', '_p_matching', '_p_operate', '_p_listed_messages')`, viewer)
}

// A role without rights may do nothing, and sees nothing.
func TestOperationsOfMailRefuseANullCaller(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Sent("a", "x@example.com")
	for _, call := range []string{
		"suspend_messages('{}', caller => null)", "resume_messages('{}', caller => null)", "retry_messages('{}', caller => null)", "retry_queues('{}', caller => null)", "withdraw(1, null)", "_p_require_changeable('retry', '{}', null)",
		"resubmit_messages('{}', caller => null)", "remove_messages('{}', caller => null)", "change_messages('{}', priority => 'LOW', caller => null)",
		"hold_domain('example.com', caller => null)", "release_domain('example.com', null)", "export_messages('{}', caller => null)",
		"read_message(1, caller => null)", "find_messages('{}', caller => null)", "test_address('x@example.com', caller => null)",
		"suspend_queue('SUBMISSION', caller => null)", "resume_queue('SUBMISSION', null)", "retry_queue('DNS/internet/example.com', null)",
		"_p_begin_categorizing(caller => null)", "_p_categorize_begun(1, null)", "_p_claim_local(caller => null)", "_p_deliver_local('{}', caller => null)", "_p_defer_local('{}', 1, '', '', null)", "_p_local_bodies('{}', null)",
		"_p_messages(null)", "_p_held_domains(null)", "_p_sees_tracking(null)", "_p_submitter_numbers(null)", "set_quota('public', caller => null)", "drop_quota('public', null)", "_p_give_back_begun(1, null)", "_p_track_unstored('{}', null)", "_p_release_local('{}', null)",
	} {
		if _, err := b.DB.Exec(t.Context(), "select parley_mail."+call); err == nil {
			t.Errorf("%s was not refused", call)
		}
	}
}

// A session that holds the rows that a task of maintenance needs keeps the others from nothing, and is found.
func TestNobodyHoldsUpMaintenance(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBoundMail(t)
	role := b.Role("daemon")
	b.Exec("select parley_mail.grant_right('SERVE', $1)", role)
	daemon := b.As(role)
	b.Exec("select parley_mail.send('ann', array['orders+1@example.org', 'orders+2@example.org'], 'Hi', 'text')")
	b.Exec("select parley_mail._p_categorize()")
	b.Deliver(1)
	handles := sqltest.Values[string](b.Session, "select conversation_handle::text from parley.receive('orders', 10, groups => 10)")
	if len(handles) != 2 {
		t.Fatalf("there are the conversations %v", handles)
	}
	for _, handle := range handles {
		b.Exec("select parley.end_conversation($1, 50001, 'no more')", handle)
	}
	holder := b.Begin()
	holder.Exec("select from parley._p_endpoint where conversation_handle = $1 for update", handles[0])
	holder.Exec("lock table parley_mail._p_delivered")
	const found = "select count(*)::int from parley.diagnose_runtime(patience => '0') where code = 'mail-maintenance' and object_name = 'remembered deliveries'"
	sqltest.Equal(daemon, "remembered deliveries", "select string_agg(task, ' ') from parley_mail._p_maintain() where error is not null")
	sqltest.Equal(b.Session, "1 1", "select concat_ws(' ', count(*), sum(tries)) from parley_mail._p_ended_conversation")
	b.Exec("select parley_mail._p_receive_replies()")
	b.Exec("select parley_mail._p_end_conversations()")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.conversation_endpoints where is_initiator = 1 and state not in ('DO', 'CD')")
	sqltest.Equal(b.Session, 1, found)
	holder.Rollback()
	b.Exec("update parley_mail._p_ended_conversation set due_at = now()")
	sqltest.Equal(daemon, 0, "select count(error)::int from parley_mail._p_maintain()")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_ended_conversation")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.conversation_endpoints where is_initiator = 1 and state not in ('DO', 'CD')")
	sqltest.Equal(b.Session, 0, found)
}
