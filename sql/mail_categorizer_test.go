package sql_test

import (
	"fmt"
	"strings"
	"testing"
)

// categorize categorizes what waits, and requires what the categorizer says of it.
func (b *broker) categorize(want string) {
	b.Helper()
	equal(b.session, want, "select concat_ws(' ', categorized, failed, set_aside) from parley_mail._p_categorize(1000)")
}

// recipients gives who is in which lane, by message, in their order.
func (b *broker) recipients() string {
	b.Helper()
	return value[string](b.session, `
		select coalesce(string_agg(format('%s %s', lane, addresses), '; ' order by lane, addresses), '')
		from (
			select r.lane, string_agg(r.address, ',' order by r.address) as addresses
			from parley_mail._p_recipient as r group by r.message_id, r.lane
		) as l`)
}

// arriving accepts a message from outside, and gives its number.
func (b *broker) arriving(sender string, recipients ...string) int64 {
	b.Helper()
	return value[int64](b.session, `
		select a.id from parley_mail._p_accept(array[jsonb_populate_record(null::parley_mail._p_arriving,
			jsonb_build_object('sender', $1::text, 'recipients', to_jsonb($2::text[]), 'source', 'SMTP', 'body', convert_to(E'From: x@example.com\r\n\r\nx', 'UTF8')))]) as a (id)`,
		sender, recipients)
}

func (b *broker) apply(configuration string) {
	b.Helper()
	b.exec("select parley_mail.apply($1)", configuration)
}

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
			b := newMail(t)
			b.apply(directory)
			b.arriving(c.sender, strings.Split(c.recipients, ",")...)
			b.categorize("1 0 0")
			if got := b.recipients(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			failed := strings.TrimSuffix(c.failed, "none")
			equal(b.session, failed, "select coalesce(string_agg(distinct status, ' '), '') from parley_mail._p_report")
			equal(b.session, strings.Count(c.want, ";")+min(len(c.want), 1), "select count(*)::int from parley_store.work_items where system = 'mail' and lane <> 'POISON/-/-'")
			// What nobody waits for is gone, with its body.
			if c.want == "" && failed == "" {
				equal(b.session, 0, "select count(*)::int from parley_mail._p_message")
			}
		})
	}
}

func TestCategorizerRoutesByAddressSpace(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.apply(`{
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
		equal(b.session, c.want, "select coalesce(r.status, r.lane) from parley_mail._p_route_of($1, null, $2) as r", c.address, c.size)
	}
	b.apply(`{"send connector": {"internet": {"enabled": false}, "cheap": {"enabled": false}}}`)
	equal(b.session, "UNREACHABLE/-/-", "select r.lane from parley_mail._p_route_of('x@other.test', null, 1) as r")
	b.arriving("x@example.com", "x@other.test", "order+1@example.org")
	b.categorize("1 0 0")
	equal(b.session, "mail UNREACHABLE/-/-, mail_service SERVICE/orders/-", "select string_agg(system || ' ' || lane, ', ' order by system) from parley_store.work_items")
	equal(b.session, "", "select coalesce(string_agg(lane, ' '), '') from parley_mail._p_claim(10, 10, '1 minute', 'x')")
}

func TestLargeExpansionsAreChippedAndShareTheBody(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.apply(`{"organization": {"organization": {"expansion_size_limit": 1000}}}`)
	b.exec(`select parley_mail.create_object('distribution group', 'all@example.org',
		jsonb_build_object('members', (select jsonb_agg('x' || i || '@example.com') from generate_series(1, 2500) as i)))`)
	b.apply(`{"distribution group": {
		"quiet@example.org": {"members": ["q@example.com"], "report_to": "NONE"},
		"led@example.org": {"members": ["l@example.com"], "report_to": "MANAGER", "manager": "ann@example.org"}}}`)
	id := b.arriving("x@example.com", "all@example.org", "quiet@example.org", "led@example.org", "y@example.com")
	b.categorize("1 0 0")
	equal(b.session, "2503 4 1000", "select concat_ws(' ', count(*), count(distinct message_id), max(ordinal)) from parley_mail._p_recipient")
	equal(b.session, "1 4 4", `
		select concat_ws(' ', count(body), count(*), count(*) filter (where network_message_id = (select network_message_id from parley_mail._p_message where message_id = $1)))
		from parley_mail._p_message`, id)
	equal(b.session, "ann@example.org l@example.com", `
		select m.sender || ' ' || r.address from parley_mail._p_message as m join parley_mail._p_recipient as r using (message_id) where m.sender <> 'x@example.com'`)
	equal(b.session, "NEVER", "select notify from parley_mail._p_recipient where address = 'q@example.com'")
	// The body stays until the last fork is finished.
	for i, c := range b.claimMail(10, 10) {
		outcomes := make([]string, len(c.Ordinals))
		for i := range outcomes {
			outcomes[i] = "DELIVERED"
		}
		b.outcomes(c, outcomes...)
		equal(b.session, i < 3, "select exists (select from parley_mail._p_message where body is not null)")
	}
	equal(b.session, 0, "select count(*)::int from parley_mail._p_message")
}

// What the sender gave is kept; otherwise an address that leads to another is the original one (RFC 3461, RFC 6533).
func TestOriginalRecipientHasTheTypeOfItsAddress(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.apply(`{"alias": {"b\u00fccher@example.org": {"target": "bob@example.org"}, "books@example.org": {"target": "carl@example.net"}}}`)
	id := b.arriving("x@example.com", "a@example.org", "b\u00fccher@example.org", "books@example.org")
	b.exec("update parley_mail._p_message set original_recipients = array[null, null, 'utf-8;given@example.org'] where message_id = $1", id)
	b.categorize("1 0 0")
	equal(b.session, "ann@example.org rfc822;a@example.org, bob@example.org utf-8;b\u00fccher@example.org, carl@example.net utf-8;given@example.org", `
		select string_agg(address || ' ' || original_recipient, ', ' order by ordinal) from parley_mail._p_recipient`)
}

func TestPoisonIsSetAsideAndOthersGoOn(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec("alter table parley_mail._p_recipient add constraint poison check (address <> 'bad@example.com')")
	bad := b.arriving("x@example.com", "bad@example.com")
	b.arriving("x@example.com", "good@example.com")
	b.categorize("1 1 0")
	equal(b.session, "good@example.com", "select string_agg(address, ' ') from parley_mail._p_recipient")
	b.categorize("0 0 0")
	b.exec("select parley.reschedule_message('parley_mail_submission', delayed_id, now()) from parley.delayed_messages")
	b.categorize("0 1 1")
	equal(b.session, fmt.Sprint(bad, " true"), `
		select subject || ' ' || (convert_from(data, 'UTF8') like '%poison%') from parley_store.work_items where lane = 'POISON/-/-'`)
	b.categorize("0 0 0")
	equal(b.session, 2, "select count(*)::int from parley_mail._p_message")
}

// What a session had in its hands when it died is categorized by the next.
func TestCategorizerThatDiesLosesNothing(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec("select parley_mail.send_batch('ann', array(select 'x' || i || '@example.com' from generate_series(1, 120) as i), 'a', 'b')")
	b.refusesMail(10, "select parley_mail.send_batch('ann', array(select 'x' || i || case i when 12 then '' else '@example.com' end from generate_series(1, 20) as i), 'a', 'b')")
	labels := b.begin()
	labels.exec("select parley_mail.send_batch('ann', array(select 'x' || i || '@bücher.example' from generate_series(1, 20) as i), 'a', 'b')")
	equal(labels, 20, "select count(*)::int from parley_mail._p_message as m where m.recipients[1] like 'x%@xn--bcher-kva.example'")
	labels.rollback()
	// Two that make the same lane for the first time wait for each other.
	b.exec("select parley_store.set_lane('mail', 'DNS/internet/example.com'), parley_store.maintain_tracking()")
	dying := b.begin()
	dying.exec("select parley_mail._p_categorize(2)")
	b.categorize("20 0 0")
	dying.rollback()
	for range 3 {
		b.exec("select parley_mail._p_categorize(100)")
	}
	equal(b.session, "120 120", "select count(*) || ' ' || count(distinct address) from parley_mail._p_recipient")
	equal(b.session, 120, "select count(*)::int from parley_store.work_items where lane like 'DNS/%'")
}

func TestAcceptedMessagesAreStoredOnce(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	const accept = `
		select a.id from parley_mail._p_accept(array(
			select jsonb_populate_record(null::parley_mail._p_arriving, to_jsonb(u)) from jsonb_array_elements($1) as u)) as a (id)`
	large := fmt.Sprintf(`\\x%0100000d`, 0)
	file := `[{"sender": "a@example.com", "recipients": ["ann@example.org"], "source": "HTTP", "body": "\\x61", "idempotency_key": "k"},
		{"sender": null, "recipients": ["bob@example.org"], "source": "SMTP", "body": "` + large + `", "priority": 0},
		{"sender": "a@example.com", "recipients": ["bob@example.org"], "source": "SMTP", "body": "\\x61", "quarantine": "a virus"}]`
	first := values[int64](b.session, accept, file)
	again := values[int64](b.session, accept, file)
	if len(first) != 3 || len(again) != 3 || again[0] != first[0] || again[1] == first[1] {
		t.Errorf("accepted %v, then %v", first, again)
	}
	equal(b.session, "5 50000 t", `
		select concat_ws(' ', count(*), max(size), bool_and((body is null) = (content_id is not null))) from parley_mail._p_message`)
	// Of one priority at a time.
	b.categorize("2 0 0")
	b.categorize("1 0 0")
	equal(b.session, "3 2", `select count(*) filter (where lane like 'MAILBOX/%') || ' ' || count(*) filter (where lane like 'POISON/%') from parley_store.work_items`)
	equal(b.session, 50000, `
		select sum(octet_length(c.body))::int from parley_mail._p_claim(10, 10, '1 minute', 'x') as m
		cross join parley_mail._p_read_body(m.content_id, m.body_holder, 0, 100) as c where m.content_id is not null and m.message_id = $1`, first[1])
	if b.as(b.role("nobody")).db.QueryRow(t.Context(), accept, file).Scan(new(int64)) == nil {
		t.Error("a role without SERVE accepted mail")
	}
	b.as(b.role("nobody2")).fails("PM001", "select parley_mail._p_put_body('x')")
	// What is stored before, whole or as chunks, is read as one body.
	b.exec(`do $$
		declare v record;
		begin
			select * into v from parley_mail._p_put_body(convert_to(repeat('a', 600000), 'UTF8'));
			perform parley_mail._p_accept(array[jsonb_populate_record(null::parley_mail._p_arriving,
				jsonb_build_object('message_id', v.message_id, 'content_id', v.content_id, 'size', 600000, 'sender', 'y@example.com', 'recipients', array['ann@example.org'], 'source', 'SMTP'))]);
			select * into v from parley_mail._p_begin_body(1024);
			perform parley_mail._p_append_body(v.content_id, 0, convert_to(repeat('a', 1024), 'UTF8'));
			perform parley_mail._p_append_body(v.content_id, 1, 'b');
			perform parley_mail._p_finish_body(v.content_id, 1025, sha256(convert_to(repeat('a', 1024) || 'b', 'UTF8')));
			perform parley_mail._p_accept(array[jsonb_populate_record(null::parley_mail._p_arriving,
				jsonb_build_object('message_id', v.message_id, 'content_id', v.content_id, 'size', 1025, 'sender', 'z@example.com', 'recipients', array['ann@example.org'], 'source', 'SMTP'))]);
		end $$`)
	equal(b.session, "600000 1025", `
		select string_agg(r.bytes::text, ' ' order by r.sender) from (
			select m.sender, octet_length(string_agg(c.body, '' order by c.number)) as bytes from parley_mail._p_message as m
			cross join parley_mail._p_read_body(m.content_id, m.message_id, 0, 100) as c where m.sender in ('y@example.com', 'z@example.com')
			group by m.sender) as r`)
}
