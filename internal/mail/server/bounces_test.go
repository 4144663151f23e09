package server_test

import (
	"net"
	"slices"
	"strings"
	"testing"
)

// A report has the null sender, so nobody is informed of a report that cannot be delivered: neither to a sender who does not exist nor, as
// a copy, to a postmaster who does not.
func TestNothingIsReportedOfAReport(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.apply('{"organization": {"organization": {"postmaster": "nobody@c.example", "dsn_copies": ["5.1.1"]}}}')`)
	h.start()
	// Of these the first two get a report, which fails; the third does, with a copy that fails.
	for _, sender := range []string{"nobody@c.example", "absent@example.org", "x@d.example", ""} {
		h.exec(`select parley_mail._p_accept(array[jsonb_build_object('sender', $1::text, 'recipients', array['nobody@c.example'], 'source', 'SMTP')],
			array['Subject: hello'::bytea || '\x0d0a0d0a'])`, sender)
	}
	h.await("the end", func() bool {
		h.exec("update parley_mail._p_report set due_at = now()")
		return h.empty()
	})
	if relayed := strings.Join(h.relayed(), ""); strings.Count(relayed, "Action: failed") != 1 || len(h.inbox()) != 0 {
		t.Errorf("relayed was %s, and in the mailbox is %s", relayed, h.inbox())
	}
	if got, want := h.text(`select string_agg(event_id || ' ' || events, ', ' order by event_id) from (
		select event_id, sum(cardinality(recipient_address)) as events from parley_mail.tracking group by event_id) as e
		where event_id in ('DSN', 'FAIL', 'SEND')`), "DSN 5, FAIL 8, SEND 1"; got != want {
		t.Errorf("the events are %s, want %s", got, want)
	}
}

// Two databases that each send the mail of a domain to the other: the count of hops ends it, and the sender learns of that once.
func TestMailBetweenTwoDatabasesEnds(t *testing.T) {
	t.Parallel()
	hubs := []*hub{newHub(t), newHub(t)}
	for i, h := range hubs {
		host, port, err := net.SplitHostPort(hubs[1-i].address)
		if err != nil {
			t.Fatal(err)
		}
		h.exec(`select parley_mail.apply(jsonb_build_object(
			'organization', jsonb_build_object('organization', jsonb_build_object('fqdn', $1::text, 'max_hops', 5)),
			'receive connector', jsonb_build_object('inbound', jsonb_build_object('fqdn', $1::text)),
			'permission group', '{"Anonymous": {"rights": ["SUBMIT", "ANY_RECIPIENT", "ANY_SENDER", "AUTHORITATIVE_DOMAIN_SENDER", "ACCEPT_ROUTING_HEADERS"]}}'::jsonb,
			'send connector', jsonb_build_object('other', jsonb_build_object('address_spaces', '[{"pattern": "circle.example"}]'::jsonb, 'routing', 'SMART_HOST', 'tls', 'OFF',
				'smart_hosts', jsonb_build_array(jsonb_build_object('host', '[' || $2::text || ']', 'port', $3::integer))))))`,
			[]string{"one.example.net", "two.example.com"}[i], host, port)
		h.start()
		h.await("the listener", h.listens)
	}
	hubs[0].submit("x@circle.example")
	var reports []string
	hubs[0].await("the report", func() bool {
		for _, h := range hubs {
			h.exec("update parley_mail._p_report set due_at = now()")
		}
		reports = append(hubs[0].inbox(), hubs[1].inbox()...)
		return len(reports) > 0
	})
	for _, h := range hubs {
		h.await("the end", h.empty)
	}
	if reports = append(hubs[0].inbox(), hubs[1].inbox()...); len(reports) != 1 || !anyOf(reports, "Final-Recipient: rfc822; x@circle.example", "554 5.4.6") ||
		strings.Count(reports[0], "\r\nReceived: from ") > 6 || !strings.Contains(reports[0], "Received: from one.example.net") || !strings.Contains(reports[0], "Received: from two.example.com") {
		t.Errorf("the reports are %s", reports)
	}
}

// With return paths of their own, what distinguishes recipients is where a bounce comes back to: one that a host sends later, and our own.
func TestBounceComesBackToTheReturnPathOfItsRecipient(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley.create_queue('bounces'); select parley.create_service('//bounces', 'bounces', array['DEFAULT'])`)
	h.exec(`select parley_mail.apply('{"service binding": {"bounces": {
		"pattern": "bounces+*@example.org", "service": "//bounces", "from_service": "parley_mail/Status", "conversation_key": "PLUS_TAG"}}}')`)
	h.exec(`select parley_mail.send('News <bounces@example.org>', array['x@c.example', 'nobody@c.example', 'none@c.example', 'ann@example.org'], 'News', 'Hello', verp => true)`)
	h.start()
	h.await("the listener", h.listens)
	p := h.dial(h.address)
	p.say("MAIL FROM:<>", "250")
	p.say("RCPT TO:<bounces+x=c.example@example.org>", "250")
	p.say("DATA", "354")
	p.say("Subject: no\r\n\r\nno\r\n.", "250")
	h.await("the end", h.empty)
	// Each is of a conversation of its own: one is received at a time.
	var got []string
	for range 4 {
		got = append(got, h.text(`select coalesce(string_agg(concat_ws(' ', m.body ->> 'sender', m.body ->> 'recipient'), ','), '')
			from parley.receive('bounces', 10) as r cross join lateral (select convert_from(r.message_body, 'UTF8')::jsonb as body) as m`))
	}
	slices.Sort(got)
	if want := []string{"", " bounces+nobody=c.example@example.org", " bounces+none=c.example@example.org", " bounces+x=c.example@example.org"}; !slices.Equal(got, want) {
		t.Errorf("bounces were %q, want %q", got, want)
	}
	if inbox := strings.Join(h.inbox(), ""); !strings.Contains(inbox, "Return-Path: <bounces+ann=example.org@example.org>") {
		t.Errorf("in the mailbox is %s", inbox)
	}
	h.relay.mu.Lock()
	defer h.relay.mu.Unlock()
	paths := strings.Join(h.relay.paths, "\n")
	for _, name := range []string{"x", "nobody", "none"} {
		if !strings.Contains(paths, "bounces+"+name+"=c.example@example.org "+name+"@c.example") {
			t.Errorf("the paths are %s", paths)
		}
	}
}
