package receive_test

import (
	"net/netip"
	"strings"
	"testing"
)

func TestXClientSpeaksForAnotherHost(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.XClientRange = prefixes("127.0.0.1/32")
	f := start(t, nil, connector)
	c := f.dial()
	c.expect("220 ")
	// The server offers it to whoever may say it: a proxy asks first.
	const offered = "XCLIENT NAME ADDR PORT HELO LOGIN PROTO\r\n"
	if got := c.say("EHLO client.example.net", "250"); !strings.Contains(got, offered) {
		t.Errorf("offered is %q", got)
	}
	c.say("XCLIENT ADDR=nonsense", "501 5.5.4")
	c.say("XCLIENT FOO=1", "501 5.5.4")
	c.say("XCLIENT ADDR=192.0.2.7 NAME=client.example+2Enet HELO=x PROTO=ESMTP LOGIN=[UNAVAILABLE]", "220 ")
	c.say("MAIL FROM:<a@example.net>", "503 5.5.1")
	if got := c.say("EHLO other", "250"); strings.Contains(got, offered) {
		t.Errorf("offered to another host is %q", got)
	}
	c.say("XCLIENT ADDR=127.0.0.1", "550 5.7.0")
	c.begin()
	c.send("hello\r\n.\r\n")
	c.expect("250 2.6.0")
	if m := f.store.only(t); m.envelope.Peer != netip.MustParseAddr("192.0.2.7") || !strings.HasPrefix(m.text, "Received: from other (client.example.net [192.0.2.7])") {
		t.Errorf("taken was %+v", m)
	}
}
