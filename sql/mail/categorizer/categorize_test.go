package categorizer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestCategorizerResolvesRecipients(t *testing.T) {
	t.Parallel()
	directory := `{
		"organization": {"organization": {"postmaster": "annie@example.org"}},
		"accepted domain": {"other.example": {}, "relay.example": {"type": "INTERNAL_RELAY"}},
		"mailbox": {
			"ann@example.org": {"aliases": ["annie@example.org"]},
			"copy@example.org": {"store": "local", "forwarding": "COPY", "forward_to": ["ann@example.org"]},
			"away@example.org": {"forwarding": "ONLY", "forward_to": ["elsewhere@example.net"]},
			"loop1@example.org": {"forwarding": "ONLY", "forward_to": ["loop2@example.org"]},
			"loop2@example.org": {"forwarding": "ONLY", "forward_to": ["loop1@example.org"]},
			"both1@example.org": {"store": "local", "forwarding": "COPY", "forward_to": ["both2@example.org"]},
			"both2@example.org": {"store": "local", "forwarding": "COPY", "forward_to": ["both1@example.org"]},
			"small@example.org": {"store": "local", "max_receive_size": 20},
			"inside@example.org": {"store": "local", "internal_senders_only": true},
			"friends@example.org": {"store": "local", "accept_from": ["example.com", "x@example.net"]},
			"foes@example.org": {"store": "local", "reject_from": ["x@example.com"]}
		},
		"distribution group": {
			"all@example.org": {"members": ["ann@example.org", "more@example.org", "x@example.com"]},
			"more@example.org": {"members": ["bob@example.org", "all@example.org", "annie@example.org"]},
			"nobody@example.org": {},
			"closed@example.org": {"members": ["ann@example.org"], "accept_from": ["boss@example.org"]}
		},
		"alias": {"sales@example.org": {"target": "all@example.org"}, "out@example.org": {"target": "x@example.com"}}
	}`
	const local, internet = "MAILBOX/local/- ", "DNS/internet/"
	for _, c := range []struct{ sender, recipients, want, failed string }{
		{"x@example.com", "Ann@Example.ORG", local + "Ann@Example.ORG", ""},
		{"x@example.com", "annie@example.org", local + "ann@example.org", ""},
		{"x@example.com", "annie@example.org,ann@example.org,ANN@example.org", local + "ann@example.org", ""},
		{"x@example.com", "a@EXAMPLE.com,b@example.com,c@example.net", internet + "example.com a@EXAMPLE.com,b@example.com; " + internet + "example.net c@example.net", ""},
		{"x@example.com", "nobody-at-all@example.org", "", "5.1.1"},
		{"x@example.com", "nobody-at-all@example.org,bob@example.org", local + "bob@example.org", "5.1.1"},
		{"x@example.com", "copy@example.org", local + "ann@example.org,copy@example.org", ""},
		{"x@example.com", "away@example.org", internet + "example.net elsewhere@example.net", ""},
		{"x@example.com", "loop1@example.org", "", "5.4.6"},
		{"x@example.com", "both1@example.org", local + "both1@example.org,both2@example.org", ""},
		{"x@example.com", "all@example.org", internet + "example.com x@example.com; " + local + "ann@example.org,bob@example.org", ""},
		{"x@example.com", "sales@example.org,bob@example.org", internet + "example.com x@example.com; " + local + "ann@example.org,bob@example.org", ""},
		{"x@example.com", "out@example.org", internet + "example.com x@example.com", ""},
		{"x@example.com", "nobody@example.org", "", ""},
		{"x@example.com", "small@example.org", "", "5.2.3"},
		{"x@example.com", "inside@example.org", "", "5.7.1"},
		{"x@example.com", "friends@example.org", local + "friends@example.org", ""},
		{"X@example.net", "friends@example.org", local + "friends@example.org", ""},
		{"y@example.net", "friends@example.org", "", "5.7.1"},
		{"", "friends@example.org", local + "friends@example.org", ""},
		{"x@example.com", "foes@example.org", "", "5.7.1"},
		{"y@example.com", "foes@example.org", local + "foes@example.org", ""},
		{"x@example.com", "closed@example.org", "", "5.7.1"},
		{"", "closed@example.org", "", "none"},
		{"x@example.com", "Postmaster@Example.ORG,postmaster@other.example", local + "ann@example.org", ""},
		{"x@example.com", "postmaster@relay.example,postmaster@example.net", internet + "example.net postmaster@example.net; " + internet + "relay.example postmaster@relay.example", ""},
	} {
		t.Run(c.sender+" to "+c.recipients, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewMail(t)
			b.Apply(directory)
			b.Arriving(c.sender, strings.Split(c.recipients, ",")...)
			b.Categorize("1 0 0")
			if got := b.Recipients(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			failed := strings.TrimSuffix(c.failed, "none")
			sqltest.Equal(b.Session, failed, "select coalesce(string_agg(distinct status, ' '), '') from parley_mail._p_report")
			sqltest.Equal(b.Session, strings.Count(c.want, ";")+min(len(c.want), 1), "select count(*)::int from parley_store.work_items where system = 'mail' and lane <> 'POISON/-/-'")
			// A message for which nobody waits is gone, with its body.
			if c.want == "" && failed == "" {
				sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_message")
			}
		})
	}
}

func TestCategorizerRoutesByAddressSpace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{
		"accepted domain": {"relay.example": {"type": "INTERNAL_RELAY"}, "*.below.example": {"type": "AUTHORITATIVE"}},
		"send connector": {
			"internet": {"address_spaces": [{"pattern": "*", "cost": 10}], "max_message_size": "1 MB"},
			"cheap": {"address_spaces": [{"pattern": "*", "cost": 5}], "max_message_size": 2000},
			"country": {"address_spaces": [{"pattern": "*.example"}], "routing": "SMART_HOST", "smart_hosts": [{"host": "a"}, {"host": "b", "port": 26}]},
			"domain": {"address_spaces": [{"pattern": "exact.example", "cost": 90}]},
			"hops": {"address_spaces": [{"pattern": "exact.example", "cost": 80}], "cost": 10, "hops": 2},
			"ours": {"address_spaces": [{"pattern": "--"}]},
			"off": {"address_spaces": [{"pattern": "exact.example"}], "enabled": false}
		},
		"service binding": {
			"orders": {"pattern": "order+*@example.org", "service": "//orders", "from_service": "parley_mail/Status"},
			"all orders": {"pattern": "*@orders.example", "service": "//orders", "from_service": "parley_mail/Status"}
		}}`)
	for _, c := range []struct {
		address, want string
		size          int
	}{
		{"x@other.test", "DNS/cheap/other.test", 100},
		{"x@other.test", "DNS/internet/other.test", 3000},
		{"x@other.test", "5.3.4", 2000000},
		{"x@a.b.example", "SMART_HOST/country/a,b:26", 100},
		{"x@example", "DNS/cheap/example", 100},
		{"x@Exact.example", "DNS/domain/exact.example", 100},
		{"x@relay.example", "DNS/ours/relay.example", 100},
		{"x@a.below.example", "5.1.1", 100},
		{"x@below.example", "SMART_HOST/country/a,b:26", 100},
		{"order+7@example.org", "SERVICE/orders/-", 100},
		{"order@example.org", "5.1.1", 100},
		{"x@orders.example", "SERVICE/all orders/-", 100},
		{"x@[192.0.2.1]", "DNS/cheap/[192.0.2.1]", 100},
	} {
		sqltest.Equal(b.Session, c.want, "select coalesce(r.status, r.lane) from parley_mail._p_route_of($1, null, $2) as r", c.address, c.size)
	}
	b.Apply(`{"send connector": {"internet": {"enabled": false}, "cheap": {"enabled": false}}}`)
	sqltest.Equal(b.Session, "UNREACHABLE/-/-", "select r.lane from parley_mail._p_route_of('x@other.test', null, 1) as r")
	b.Arriving("x@example.com", "x@other.test", "order+1@example.org")
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "mail UNREACHABLE/-/-, mail_service SERVICE/orders/-", "select string_agg(system || ' ' || lane, ', ' order by system) from parley_store.work_items")
	sqltest.Equal(b.Session, "", "select coalesce(string_agg(lane, ' '), '') from parley_mail._p_claim(10, 10, '1 minute', 'x')")
}

func TestLargeExpansionsAreChippedAndShareTheBody(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"organization": {"organization": {"expansion_size_limit": 1000}}}`)
	b.Exec(`select parley_mail.create_object('distribution group', 'all@example.org',
		jsonb_build_object('members', (select jsonb_agg('x' || i || '@example.com') from generate_series(1, 2500) as i)))`)
	b.Apply(`{"distribution group": {
		"quiet@example.org": {"members": ["q@example.com"], "report_to": "NONE"},
		"led@example.org": {"members": ["l@example.com"], "report_to": "MANAGER", "manager": "ann@example.org"}}}`)
	id := b.Arriving("x@example.com", "all@example.org", "quiet@example.org", "led@example.org", "y@example.com")
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "2503 4 1000", "select concat_ws(' ', count(*), count(distinct message_id), max(ordinal)) from parley_mail._p_recipient")
	sqltest.Equal(b.Session, "1 4 4", `
		select concat_ws(' ', count(body), count(*), count(*) filter (where network_message_id = (select network_message_id from parley_mail._p_message where message_id = $1)))
		from parley_mail._p_message`, id)
	sqltest.Equal(b.Session, "ann@example.org l@example.com", `
		select m.sender || ' ' || r.address from parley_mail._p_message as m join parley_mail._p_recipient as r using (message_id) where m.sender <> 'x@example.com'`)
	sqltest.Equal(b.Session, "NEVER", "select notify from parley_mail._p_recipient where address = 'q@example.com'")
	// The body stays until the last fork is finished.
	for i, c := range b.ClaimMail(10, 10) {
		outcomes := make([]string, len(c.Ordinals))
		for i := range outcomes {
			outcomes[i] = "DELIVERED"
		}
		b.Outcomes(c, outcomes...)
		sqltest.Equal(b.Session, i < 3, "select exists (select from parley_mail._p_message where body is not null)")
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail._p_message")
}

// The recipient that the sender gave is kept; otherwise an address that leads to another is the original one (RFC 3461, RFC 6533).
func TestOriginalRecipientHasTheTypeOfItsAddress(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"alias": {"b\u00fccher@example.org": {"target": "bob@example.org"}, "books@example.org": {"target": "carl@example.net"}}}`)
	id := b.Arriving("x@example.com", "a@example.org", "b\u00fccher@example.org", "books@example.org")
	b.Exec("update parley_mail._p_message set original_recipients = array[null, null, 'utf-8;given@example.org'] where message_id = $1", id)
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "ann@example.org rfc822;a@example.org, bob@example.org utf-8;b\u00fccher@example.org, carl@example.net utf-8;given@example.org", `
		select string_agg(address || ' ' || original_recipient, ', ' order by ordinal) from parley_mail._p_recipient`)
}

func TestPoisonIsSetAsideAndOthersGoOn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("alter table parley_mail._p_recipient add constraint poison check (address <> 'bad@example.com')")
	bad := b.Arriving("x@example.com", "bad@example.com")
	b.Arriving("x@example.com", "good@example.com")
	b.Categorize("1 1 0")
	sqltest.Equal(b.Session, "good@example.com", "select string_agg(address, ' ') from parley_mail._p_recipient")
	b.Categorize("0 0 0")
	b.Exec("select parley.reschedule_message('parley_mail_submission', delayed_id, now()) from parley.delayed_messages")
	b.Categorize("0 1 1")
	sqltest.Equal(b.Session, fmt.Sprint(bad, " true"), `
		select subject || ' ' || (convert_from(data, 'UTF8') like '%poison%') from parley_store.work_items where lane = 'POISON/-/-'`)
	b.Categorize("0 0 0")
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_mail._p_message")
}

// Messages that a session had in its hands when it died are categorized by the next.
func TestCategorizerThatDiesLosesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("select parley_mail.send_batch('ann', array(select 'x' || i || '@example.com' from generate_series(1, 120) as i), 'a', 'b')")
	b.RefusesMail(10, "select parley_mail.send_batch('ann', array(select 'x' || i || case i when 12 then '' else '@example.com' end from generate_series(1, 20) as i), 'a', 'b')")
	labels := b.Begin()
	labels.Exec("select parley_mail.send_batch('ann', array(select 'x' || i || '@bücher.example' from generate_series(1, 20) as i), 'a', 'b')")
	sqltest.Equal(labels, 20, "select count(*)::int from parley_mail._p_message as m where m.recipients[1] like 'x%@xn--bcher-kva.example'")
	labels.Rollback()
	// Two that make the same lane for the first time wait for each other.
	b.Exec("select parley_store.set_lane('mail', 'DNS/internet/example.com'), parley_store.maintain_tracking()")
	dying := b.Begin()
	dying.Exec("select parley_mail._p_categorize(2)")
	b.Categorize("20 0 0")
	dying.Rollback()
	for range 3 {
		b.Exec("select parley_mail._p_categorize(100)")
	}
	sqltest.Equal(b.Session, "120 120", "select count(*) || ' ' || count(distinct address) from parley_mail._p_recipient")
	sqltest.Equal(b.Session, 120, "select count(*)::int from parley_store.work_items where lane like 'DNS/%'")
}

func TestAcceptedMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const accept = `
		select a.id from parley_mail._p_accept(array(select u from jsonb_array_elements($1) as u),
			array['a'::bytea, decode(repeat('00', 50000), 'hex'), 'a'::bytea]) as a (id)`
	file := `[{"sender": "a@example.com", "recipients": ["ann@example.org"], "source": "HTTP", "idempotency_key": "k"},
		{"sender": null, "recipients": ["bob@example.org"], "source": "SMTP", "priority": 0},
		{"sender": "a@example.com", "recipients": ["bob@example.org"], "source": "SMTP", "quarantine": "a virus"}]`
	first := sqltest.Values[int64](b.Session, accept, file)
	again := sqltest.Values[int64](b.Session, accept, file)
	if len(first) != 3 || len(again) != 3 || again[0] != first[0] || again[1] == first[1] {
		t.Errorf("accepted %v, then %v", first, again)
	}
	sqltest.Equal(b.Session, "5 50000 t", `
		select concat_ws(' ', count(*), max(size), bool_and((body is null) = (content_id is not null))) from parley_mail._p_message`)
	// Of one priority at a time.
	b.Categorize("2 0 0")
	b.Categorize("1 0 0")
	sqltest.Equal(b.Session, "3 2", `select count(*) filter (where lane like 'MAILBOX/%') || ' ' || count(*) filter (where lane like 'POISON/%') from parley_store.work_items`)
	sqltest.Equal(b.Session, 50000, `
		select sum(octet_length(c.body))::int from parley_mail._p_claim(10, 10, '1 minute', 'x') as m
		cross join parley_mail._p_read_body(m.content_id, m.body_holder, 0, 100) as c where m.content_id is not null and m.message_id = $1`, first[1])
	if b.As(b.Role("nobody")).DB.QueryRow(t.Context(), accept, file).Scan(new(int64)) == nil {
		t.Error("a role without SERVE accepted mail")
	}
	b.As(b.Role("nobody2")).Fails("PM001", "select parley_mail._p_put_body('x')")
	// A body that is stored before, whole or as chunks, is read as one.
	b.Exec(`do $$
		declare v record;
		begin
			select * into v from parley_mail._p_put_body(convert_to(repeat('a', 600000), 'UTF8'));
			perform parley_mail._p_accept(array[
				jsonb_build_object('message_id', v.message_id, 'content_id', v.content_id, 'size', 600000, 'sender', 'y@example.com', 'recipients', array['ann@example.org'], 'source', 'SMTP')], array[null::bytea]);
			select * into v from parley_mail._p_begin_body(1024);
			perform parley_mail._p_append_body(v.content_id, 0, convert_to(repeat('a', 1024), 'UTF8'));
			perform parley_mail._p_append_body(v.content_id, 1, 'b');
			perform parley_mail._p_finish_body(v.content_id, 1025, sha256(convert_to(repeat('a', 1024) || 'b', 'UTF8')));
			perform parley_mail._p_accept(array[
				jsonb_build_object('message_id', v.message_id, 'content_id', v.content_id, 'size', 1025, 'sender', 'z@example.com', 'recipients', array['ann@example.org'], 'source', 'SMTP')], array[null::bytea]);
		end $$`)
	sqltest.Equal(b.Session, "600000 1025", `
		select string_agg(r.bytes::text, ' ' order by r.sender) from (
			select m.sender, octet_length(string_agg(c.body, '' order by c.number)) as bytes from parley_mail._p_message as m
			cross join parley_mail._p_read_body(m.content_id, m.message_id, 0, 100) as c where m.sender in ('y@example.com', 'z@example.com')
			group by m.sender) as r`)
}

// A batch that is categorized one by one counts as it would together.
func TestCountsOfBatchesAreAdded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	sqltest.Equal(b.Session, "(11,22,33,44,55,66,77,88,99)", `select parley_mail._p_sum((1, 2, 3, 4, 5, 6, 7, 8, 9)::parley_mail._p_categorizer_counts,
		(10, 20, 30, 40, 50, 60, 70, 80, 90)::parley_mail._p_categorizer_counts)::text`)
}
