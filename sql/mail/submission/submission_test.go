package submission_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestMailIsPartOfTheTransactionThatSubmitsIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop := b.Sender("shop")
	const send = "select parley_mail.send('Shop <shop@example.org>', array['x@example.com'], 'Order', 'Thank you')"
	shop.Exec("begin")
	shop.Exec(send)
	b.RequireSubmitted(0)
	shop.Rollback()
	b.RequireSubmitted(0)
	shop.Exec("begin")
	shop.Exec("savepoint before")
	shop.Exec(send)
	shop.Exec("rollback to before")
	shop.Exec(send)
	shop.Exec("select parley_mail.send_batch('shop', array['x@example.com', 'y@example.com', 'z@example.com'], 'a', 'b')")
	shop.Commit()
	b.RequireSubmitted(4)
}

func TestIdempotencyKeySubmitsOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop, other := b.Sender("shop"), b.Sender("other")
	const send = "select parley_mail.send('shop', array['x@example.com'], 'Order', $1, idempotency_key => $2)"
	first := sqltest.Value[int64](shop, send, "a", "key")
	sqltest.Equal(shop, first, send, "a", "key")
	b.RequireSubmitted(1)
	shop.RefusesMail(11, send, "b", "key")
	for _, statement := range []string{
		"select parley_mail.send('shop', array['y@example.com'], 'Order', 'a', idempotency_key => 'key')",
		"select parley_mail.send('shop', array['x@example.com'], 'Order', 'a', attachments => array[parley_mail.attachment('a', '')], idempotency_key => 'key')",
		"select parley_mail.send('shop', array['x@example.com'], raw => E'From: a@example.org\n\nx', idempotency_key => 'key')",
	} {
		shop.RefusesMail(11, statement)
	}
	if sqltest.Value[int64](other, send, "b", "key") == first {
		t.Error("another role was given the message of the first")
	}
	b.RequireSubmitted(2)
	for _, key := range []string{"", fmt.Sprintf("%201s", "x")} {
		shop.RefusesMail(10, send, "a", key)
	}
	// A rollback forgets the key with the message.
	shop.Exec("begin")
	shop.Exec(send, "c", "later")
	shop.Rollback()
	shop.Exec(send, "d", "later")
	b.RequireSubmitted(3)
}

// Two sessions that submit under one key at once: the second waits, and gets the first one's message, or submits its own.
func TestTwoSessionsSubmitUnderOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', $1)", role)
	const send = "select parley_mail.send('shop', array['x@example.com'], 'Order', 'a', idempotency_key => 'key')"
	for _, end := range []string{"rollback", "commit"} {
		first, second := b.As(role), b.As(role)
		first.Exec("begin")
		id := sqltest.Value[int64](first, send)
		got := make(chan int64, 1)
		go func() {
			var got2 int64
			_ = second.DB.QueryRow(context.WithoutCancel(t.Context()), send).Scan(&got2)
			got <- got2
		}()
		waitForLock(b)
		first.Exec(end)
		if other := <-got; (other == id) != (end == "commit") || other == 0 {
			t.Errorf("after %s of message %d the second session got %d", end, id, other)
		}
		b.RequireSubmitted(1)
		b.Exec("delete from parley_mail._p_idempotency; delete from parley_mail._p_message; select parley.take('parley_mail_submission', 10)")
	}
}

// waitForLock waits until a session of the database waits for another.
func waitForLock(b *sqltest.Broker) {
	b.Helper()
	b.Exec(`do $$ begin
		for i in 1..30000 loop
			if exists (select from pg_stat_activity as a where a.datname = current_database() and a.wait_event_type = 'Lock') then return; end if;
			perform pg_stat_clear_snapshot();
			perform pg_sleep(0.002);
		end loop;
		raise 'nobody waits';
	end $$`)
}

func TestRolesSeeOnlyWhatTheyHaveSubmitted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop, other := b.Sender("shop"), b.Sender("other")
	id := sqltest.Value[int64](shop, "select parley_mail.send('shop', array['x@example.com'], 'Order', 'a', tag => 't', priority => 'high')")
	sqltest.Equal(shop, fmt.Sprint(id, " Order t HIGH"), "select concat_ws(' ', message_id, subject, tag, priority) from parley_mail.submitted_messages")
	sqltest.Equal(other, 0, "select count(*)::int from parley_mail.submitted_messages")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_mail.submitted_messages")
}

func TestQuotasOfRoles(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role := b.Role("shop")
	b.Exec("select parley_mail.grant_right('SEND', 'public')")
	shop, other := b.As(role), b.As(b.Role("other"))
	const send = "select parley_mail.send('shop', array['x@example.com'], 'Order', 'a')"
	b.Exec("select parley_mail.set_quota($1, messages_per_minute => 3)", role)
	for range 3 {
		shop.Exec(send)
	}
	shop.RefusesMail(13, send)
	shop.RefusesMail(13, "select parley_mail.send_batch('shop', array['x@example.com'])")
	other.Exec(send)
	b.Exec("update parley_mail._p_submitted set at = at - interval '61 seconds'")
	shop.RefusesMail(13, "select parley_mail.send_batch('shop', array['x@example.com', 'x@example.com', 'x@example.com', 'x@example.com'])")
	shop.Exec("select parley_mail.send_batch('shop', array['x@example.com', 'x@example.com', 'x@example.com'])")
	// A role's own messages count, and so many bytes as its quota has.
	b.Exec("select parley_mail.set_quota('public', bytes_per_minute => 3000, messages_per_minute => 2)")
	other.Exec(send)
	b.Exec("update parley_mail._p_submitted set at = at - interval '61 seconds' where parley._p_name_with(submitted_by) <> $1", role)
	b.Exec(`do $$ begin perform parley_mail.set_quota('public', bytes_per_minute => (
		select max(bytes) from parley_mail._p_submitted where messages = 1)); end $$`)
	other.Exec(send)
	b.Exec("update parley_mail._p_submitted set at = at - interval '61 seconds' where parley._p_name_with(submitted_by) <> $1", role)
	b.Exec("select parley_mail.set_quota('public', bytes_per_minute => 3000, without => array['messages_per_minute'])")
	shop.RefusesMail(13, send)
	other.Exec(send)
	other.RefusesMail(13, "select parley_mail.send('shop', array['x@example.com'], 'Order', repeat('a ', 2000))")
	b.Exec("update parley_mail._p_organization set refusing_until = now() + interval '1 hour', refusing_reason = 'The disk is full.'")
	other.RefusesMail(14, send)
	b.Exec("select parley_mail.set_quota($1, is_exempt_from_pressure => true, without => array['messages_per_minute'])", role)
	shop.Exec(send)
	b.Exec("update parley_mail._p_organization set is_at_floor = true")
	shop.RefusesMail(14, send)
	b.Exec("update parley_mail._p_organization set refusing_until = now() - interval '1 second'")
	shop.Exec(send)
}

// Limits that are not given stay as they are, lifted ones are named, and values that no quota can have are refused.
func TestQuotaIsSetLimitByLimitAndShown(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	role, admin := b.Role("shop"), b.Role("admin")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", admin)
	shop, other, administrator := b.As(role), b.As(b.Role("other")), b.As(admin)
	const own = "select coalesce(string_agg(concat_ws(' ', replace(q.role, $1, 'shop'), q.messages_per_minute, q.bytes_per_minute, q.is_exempt_from_pressure, q.stored_bytes), ', ' order by q.role <> 'public'), '') from parley_mail.quotas as q"
	sqltest.Equal(shop, "", own, role)
	for _, c := range [][3]string{ // arguments; the quota after them, or the detail of the refusal
		{"", "shop f 104857600"},
		{", messages_per_minute => 3", "shop 3 f 104857600"},
		{", bytes_per_minute => 5000", "shop 3 5000 f 104857600"},
		{", is_exempt_from_pressure => true, stored_bytes => 7", "shop 3 5000 t 7"},
		{", messages_per_minute => -1", "", "messages_per_minute is -1."},
		{", bytes_per_minute => -5", "", "bytes_per_minute is -5."},
		{", stored_bytes => -7", "", "stored_bytes is -7."},
		{", bytes_per_minute => 4, without => array['bytes_per_minute']", "", "bytes_per_minute is given, and lifted."},
		{", without => array['messages']", "", ""},
		{", without => array[null]", "", ""},
		{", messages_per_minute => 0, without => array['bytes_per_minute', 'stored_bytes']", "shop 0 t 104857600"},
		{", is_exempt_from_pressure => false, without => array['messages_per_minute']", "shop f 104857600"},
	} {
		set := "select parley_mail.set_quota($1" + c[0] + ")"
		if c[1] == "" {
			if refusal := administrator.RefusesMail(10, set, role); refusal.Detail != c[2] {
				t.Errorf("%s is refused because %q", c[0], refusal.Detail)
			}
			continue
		}
		administrator.Exec(set, role)
		sqltest.Equal(shop, c[1], own, role)
	}
	b.Exec("select parley_mail.set_quota('public', messages_per_minute => 2)")
	sqltest.Equal(shop, "shop f 104857600", own, role)
	sqltest.Equal(other, "public 2 f 104857600", own, role)
	sqltest.Equal(administrator, "public 2 f 104857600, shop f 104857600", own, role)
	shop.RefusesMail(1, "select parley_mail.drop_quota($1)", role)
	sqltest.Equal(administrator, true, "select parley_mail.drop_quota($1)", role)
	sqltest.Equal(administrator, false, "select parley_mail.drop_quota($1)", role)
	sqltest.Equal(shop, "public 2 f 104857600", own, role)
}

func TestWhatCannotBeSubmittedIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec("select parley.create_queue('q'); select parley.create_service('//deaf', 'q'); select parley.create_service('//status', 'q', array['parley_mail/Status'])")
	shop := b.Sender("shop")
	for _, c := range []struct {
		number    int
		arguments string
	}{
		{10, "sender => null, recipients => array['x@example.com']"},
		{10, "'ann!x', array['x@example.com']"}, // The default domain is for names that are only names.
		{10, "'ann', '{}'"},
		{10, "'ann', null"},
		{10, "'ann', array[null]"},
		{10, "'ann', array['x@example.com'], priority => 'URGENT'"},
		{10, "'ann', array['x@example.com'], priority => null"},
		{10, "'ann', array['x@example.com'], notify => 'NEVER,SUCCESS'"},
		{10, "'ann', array['x@example.com'], ret => 'BODY'"},
		{10, "'ann', array['x@example.com'], envid => 'a b'"},
		{10, "'ann', array['x@example.com'], expires => now() - interval '1 second'"},
		{10, "'ann', array['x@example.com'], expires => now() + interval '1 hour', not_before => now() + interval '2 hours'"},
		{10, "'ann', array['x@example.com'], headers => '[]'"},
		{10, "'ann', array['x@example.com'], attachments => array[parley_mail.attachment('x', null)]"},
		{10, "'ann', array['x@example.com'], attachments => array[parley_mail.attachment('x', '', 'multipart/mixed')]"},
		{10, "'ann', array['x@example.com'], raw => 'x', text => 'x'"},
		{10, "'ann', array['x@example.com'], on_status => '//nobody'"},
		{10, "'ann', array['x@example.com'], on_status => '//deaf'"},
		{10, "'ann', array['x@example.com'], on_status => '//status'"},
		{10, "'ann', array_fill('x@example.com'::text, array[501])"},
		{12, "'ann', array['x@example.com'], text => repeat('x ', 6000000)"},
	} {
		shop.RefusesMail(c.number, "select parley_mail.send("+c.arguments+")")
	}
	b.RequireSubmitted(0)
	domainless := b.Begin()
	domainless.Exec(`select parley_mail.alter_object('organization', 'organization', '{"default_domain": null}')`)
	domainless.RefusesMail(10, "select parley_mail.send('ann', array['x@example.com'])")
	domainless.Rollback()
	b.Exec("select parley.grant('SEND', 'service', '//status', 'public')")
	shop.Exec("select parley_mail.send('ann', array['x@example.com'], on_status => '//status')")
}

func TestRawMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const send = "select parley_mail.send('ann', array['x@example.com'], raw => $1::bytea)"
	for _, raw := range []string{
		"", "x", "From: a@b.c\r\nx\r\n\r\n", " From: a@b.c\r\n\r\n", "Subject: x\r\n\r\nx", "From: a@b.c\r\n\r\nx\ny", "From: a@b.c\r\n\r\nx\ry\r\n", "From: a@b.c\r\n\r\n\x00",
	} {
		b.RefusesMail(10, send, []byte(raw))
	}
	b.RequireSubmitted(0)
	for raw, want := range map[string][]string{
		"From: a@b.c\nBcc: hidden@example.net,\n more@example.net\nsubject: a\n b\n\n\xffx\\\n.\n": {"From", "subject", "Message-ID", "Date", "To"},
		"From: a@b.c\r\nTo: x\r\nMessage-Id: <a@b>\r\nDate: Mon, 1 Jan 2024 00:00:00 +0000\r\nX-Parley-A: 1\r\n\r\n\xffx\\\r\n.\r\n": {
			"From", "To", "Message-Id", "Date",
		},
	} {
		id := sqltest.Value[int64](b.Session, send, []byte(raw))
		message := sqltest.Value[[]byte](b.Session, "select body from parley_mail._p_message where message_id = $1", id)
		var names []string
		head := message[:slices.Index(message, 0xff)]
		for _, line := range splitLines(string(head)) {
			if name, _, ok := cutHeader(line); ok {
				names = append(names, name)
			}
		}
		if !slices.Equal(names, want) || string(message[len(head):]) != "\xffx\\\r\n.\r\n" {
			t.Errorf("%q is stored as %q: headers %q", raw, message, names)
		}
	}
	sqltest.Equal(b.Session, "a b|", "select string_agg(coalesce(subject, ''), '|' order by subject nulls last) from parley_mail._p_message")
}

// The table is that of internal/mail/message, which does the same for all other ways by which messages come.
func TestRawMessagesCarryNoResultsUnderOurNames(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"organization": {"organization": {"fqdn": "elsewhere.example"}}, "receive connector": {"in": {"fqdn": "mx.example.org"}}}`)
	table, err := os.ReadFile("../../../internal/mail/message/testdata/results.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		want, written, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if want == "#" {
			continue
		}
		field := "authentication-results: " + strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\t`, "\t").Replace(written) + "\r\n"
		const from, subject = "From: a@b.c\r\n", "Subject: \"Authentication-Results: mx.example.org\"\r\n"
		stored := string(sqltest.Value[[]byte](b.Session, "select parley_mail._p_completed_raw($1, '<x@y>', now())", []byte(from+field+subject+"\r\n\xff")))
		if kept := strings.HasPrefix(stored, from+field+subject); kept != (want == "kept") || !kept && !strings.HasPrefix(stored, from+subject) {
			t.Errorf("%q is stored as %q", written, stored)
		}
	}
	// Each level of comments is read once more: a header of a megabyte of them would take minutes.
	deep := "From: a@b.c\r\nAuthentication-Results: " + strings.Repeat("(", 30) + strings.Repeat(")", 30) + " other.example; spf=pass\r\n\r\n"
	sqltest.Equal(b.Session, false, "select encode(parley_mail._p_completed_raw($1, '<x@y>', now()), 'escape') like '%other.example%'", []byte(deep))
}

func TestBatchesOfMailAreMessagesOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	var recipients []string
	for i := range 120 {
		recipients = append(recipients, fmt.Sprintf("x%d@example.com", i))
	}
	ids := sqltest.Values[int64](b.Session, "select parley_mail.send_batch('Änn <ann@example.org>', $1, 'Grüße', 'Dear {{name}}', '<b>x</b>')", recipients)
	named := sqltest.Values[int64](b.Session, `select parley_mail.send_batch('ann', $1, 'Hi {{n}}', 'Dear {{n}}',
		variables => (select jsonb_agg(jsonb_build_object('n', i)) from generate_series(1, 120) as i))`, recipients)
	if len(ids) != 120 || len(named) != 120 || !slices.IsSorted(ids) {
		t.Errorf("%d and %d numbers", len(ids), len(named))
	}
	b.RequireSubmitted(240)
	sqltest.Equal(b.Session, "240 240", "select count(distinct header_message_id) || ' ' || count(distinct network_message_id) from parley_mail._p_message")
	rows, err := b.DB.Query(b.Context(), "select recipients[1], header_message_id, body from parley_mail._p_message order by message_id")
	if err != nil {
		t.Fatal(err)
	}
	type stored struct {
		Recipient, ID string
		Body          []byte
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range messages {
		header, parts, _ := parseMail(t, m.Body)
		if header.Get("To") != m.Recipient || header.Get("Message-Id") != m.ID || m.Recipient != recipients[i%120] {
			t.Errorf("message %d to %s: To %s, %s and %s", i, m.Recipient, header.Get("To"), header.Get("Message-Id"), m.ID)
		}
		if want := "Dear {{name}}"; i < 120 && parts[0].content != want || i >= 120 && parts[0].content != fmt.Sprintf("Dear %d\r\n", i-119) {
			t.Errorf("message %d says %q", i, parts[0].content)
		}
	}
	// Where an array begins is no matter.
	for _, call := range []string{"send('ann', $1, 'a', 'b')", "send('ann', $1, 'a', 'b', variables => '{}')", "send_batch('ann', $1, 'a', 'b')", "send_batch('ann', $1, 'a', 'b', variables => '{}')"} {
		b.Exec("delete from parley_mail._p_message")
		b.Exec("select parley_mail." + strings.ReplaceAll(call, "$1", "'[5:6]={x@example.com,Why <y@example.com>}'"))
		sqltest.Equal(b.Session, "x@example.com y@example.com", `select string_agg(r.address, ' ' order by m.message_id, r.n)
			from parley_mail._p_message as m cross join unnest(m.recipients) with ordinality as r (address, n)`)
	}
	b.RefusesMail(10, "select parley_mail.send_batch('ann', array['x@example.com', E'y@example.com\nBcc: z@example.com'], 'a', 'b')")
}

// A message that is large, or of a sender whose messages are not to be urgent, is of normal priority and expires like that, whichever way
// it comes.
func TestHighPriorityIsForSmallMessagesOfThoseWhoMayHaveIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Apply(`{"mailbox": {"eager@example.org": {"store": "local", "downgrade_high": true}}, "organization": {"organization": {"max_high_priority_size": 2000}}}`)
	for _, way := range []string{"SMTP", "HTTP", "PICKUP", "send", "send to each", "send_batch"} {
		for _, c := range []struct {
			sender string
			size   int
			want   string
		}{
			{"ann@example.org", 300, "HIGH"}, {"ann@example.org", 3000, "NORMAL"}, {"Eager@example.org", 300, "NORMAL"},
		} {
			switch way {
			case "send":
				b.Exec("select parley_mail.send($1, array['x@example.com'], 'x', repeat('x ', $2 / 2), priority => 'high')", c.sender, c.size)
			case "send to each":
				b.Exec("select parley_mail.send($1, array['x@example.com'], 'x', repeat('x ', $2 / 2), priority => 'high', variables => '{}')", c.sender, c.size)
			case "send_batch":
				b.Exec("select parley_mail.send_batch($1, array['x@example.com'], 'x', repeat('x ', $2 / 2), priority => 'high')", c.sender, c.size)
			default:
				b.Exec(`select parley_mail._p_accept(array[jsonb_build_object('sender', $1::text, 'recipients', array['x@example.com'], 'priority', 0, 'source', $2::text)],
					array[decode(repeat('78', $3), 'hex')])`, c.sender, way, c.size)
			}
			sqltest.Equal(b.Session, c.want, "select (array['HIGH', 'NORMAL'])[priority + 1] from parley_mail._p_message order by message_id desc limit 1")
			sqltest.Equal(b.Session, c.want == "HIGH", "select expires_at < clock_timestamp() + interval '9 hours' from parley_mail._p_message order by message_id desc limit 1")
		}
	}
	sqltest.Equal(b.Session, "5 12, 10 6", `
		select string_agg(format('%s %s', priority, messages), ', ' order by priority)
		from (select priority, count(*) as messages from parley.peek_messages('parley_mail_submission', 100) group by priority) as q`)
}
