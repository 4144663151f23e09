package server_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/server"
)

// Mail that would come back to a daemon of the database is found by the address of the next hop, whatever names lead there, and by the
// names that it has come by already.
func TestMailThatWouldComeBackIsRefused(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	host, port, err := net.SplitHostPort(h.address)
	if err != nil {
		t.Fatal(err)
	}
	second := mailtest.FreeAddress(t)
	h.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"receive connector": {"inbound": {"bindings": [%[3]q, %[4]q], "fqdn": "in.example.org", "tarpit": 0}},
		"send connector": {
			"own": {"address_spaces": [{"pattern": "a.example"}], "port": %[2]s, "tls": "OFF", "mta_sts": false},
			"other": {"address_spaces": [{"pattern": "b.example"}], "port": %[2]s, "tls": "OFF", "mta_sts": false, "source_nodes": ["second"]},
			"equal": {"address_spaces": [{"pattern": "c.example"}], "port": %[2]s, "tls": "OFF", "mta_sts": false},
			"elsewhere": {"address_spaces": [{"pattern": "e.example"}], "port": %[2]s, "tls": "OFF", "mta_sts": false, "source_nodes": ["second"]},
			"better": {"address_spaces": [{"pattern": "d.example"}], "port": %[2]s, "tls": "OFF", "mta_sts": false},
			"smart": {"address_spaces": [{"pattern": "s.example"}], "routing": "SMART_HOST", "tls": "OFF", "smart_hosts": [{"host": "[%[1]s]", "port": %[2]s}]}}
	}`, host, port, h.address, second))
	z := newZone(t, "a.example. 300 IN MX 10 mx.example.", "b.example. 300 IN MX 10 mx.example.", "mx.example. 300 IN A 127.0.0.1",
		"c.example. 300 IN MX 10 mx.example.", "c.example. 300 IN MX 10 away.example.", "away.example. 300 IN A 127.0.0.9",
		"e.example. 300 IN MX 10 mail2.example.", "mail2.example. 300 IN A 192.0.2.7",
		"d.example. 300 IN MX 10 away.example.", "d.example. 300 IN MX 20 mx.example.")
	// One on another machine, whose host each daemon here reads when it starts.
	h.exec(`insert into parley_mail._p_daemon (name, role, host, listeners) values ('away', current_user, 'mail2.example.org', array['192.0.2.7:' || $1::text])`, port)
	h.run(server.Config{Name: "first", NameServers: []string{z.address}, Bindings: []netip.AddrPort{netip.MustParseAddrPort(h.address)}})
	h.await("the first daemon's report", func() bool {
		return h.text(`select count(*)::text from parley_mail._p_daemon where name = 'first' and listeners <> '{}'`) == "1"
	})
	h.run(server.Config{Name: "second", NameServers: []string{z.address}, Bindings: []netip.AddrPort{netip.MustParseAddrPort(second)}})

	h.submit("x@a.example", "x@b.example", "x@c.example", "x@d.example", "x@e.example", "x@s.example")
	h.await("five reports", func() bool { return len(h.inbox()) == 5 })
	for recipient, status := range map[string]string{"x@a.example": "5.4.6", "x@b.example": "5.4.6", "x@c.example": "5.4.6", "x@e.example": "5.4.6", "x@s.example": "5.3.5"} {
		if !anyOf(h.inbox(), "Final-Recipient: rfc822; "+recipient, "Status: "+status) {
			t.Errorf("no report says that mail for %s failed with %s: %s", recipient, status, h.inbox())
		}
	}
	h.await("a better host that does not answer", func() bool {
		return strings.Contains(h.text(`select coalesce(max(last_error), '') from parley_mail.queues where queue = 'DNS/better/d.example'`), "4.4.")
	})

	p := h.dial(h.address)
	for _, c := range []struct{ names, reply string }{
		{"in.example.org hub.example.org mail2.example.org", "554 5.4.6"},
		{"in.example.org elsewhere.example hub.example.net", "250"},
	} {
		names, header := strings.Fields(c.names), ""
		for i := range 13 {
			header += "Received: from x by " + names[i%3] + " with ESMTP; Tue, 24 Nov 2026 05:40:12 +0000\n"
		}
		p.give("bob@b.example", header+"Subject: x\n\nx", c.reply)
	}
}

// anyOf is whether one of some texts has all of others.
func anyOf(texts []string, parts ...string) bool {
	for _, text := range texts {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(text, part)
		}
		if has {
			return true
		}
	}
	return false
}
