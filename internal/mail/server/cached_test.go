package server_test

import (
	netsmtp "net/smtp"
	"strings"
	"testing"
)

// Only the database knows who shares a body: members of groups, forks, services. None of them reads it back, and with the last it is dropped.
func TestABodyIsCachedUntilTheLastWhoSharesItHasIt(t *testing.T) {
	t.Parallel()
	g := newGoverned(t, `{
		"organization": {"organization": {"expansion_size_limit": 2}},
		"mailbox": {"bob@example.org": {"store": "local"}, "eve@example.org": {"store": "local"}},
		"distribution group": {"all@example.org": {"members": ["ann@example.org", "bob@example.org", "eve@example.org", "x@c.example"]}}
	}`)
	letter := []byte("From: bob@b.example\r\nTo: all@example.org\r\nSubject: x\r\n\r\n" + strings.Repeat("Thank you.\r\n", 2000))
	send := func(recipients ...string) {
		t.Helper()
		if err := netsmtp.SendMail(g.address, nil, "bob@b.example", recipients, letter); err != nil {
			t.Fatal(err)
		}
	}
	cached := func() float64 { return g.counter("Database", "Body Cache Bytes", "") }
	g.exec("select parley_mail.hold_domain('c.example')")
	send("all@example.org")
	g.await("all but one", func() bool {
		return g.text("select concat(string_agg(distinct lane, ' '), count(*)) from parley_mail._p_recipient") == "DNS/outbound/c.example1"
	})
	if cached() < 20_000 {
		t.Error("a body is dropped that somebody waits for")
	}
	if got := g.text("select count(*)::text from parley_mail.tracking where event_id = 'TRANSFER'"); got == "0" {
		t.Error("no message was forked")
	}
	g.exec("select parley_mail.release_domain('c.example')")
	g.await("the last", func() bool { return len(g.relayed()) == 1 && g.empty() && cached() == 0 })
	send("orders@example.org")
	g.await("the row", func() bool {
		return g.text("select count(*)::text from public.orders") == "1" && g.empty() && cached() == 0
	})
	if got := g.counter("Database", "Body Cache Misses", ""); got != 0 {
		t.Errorf("%g bodies were read back", got)
	}
}
