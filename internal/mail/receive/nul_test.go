package receive_test

import (
	"fmt"
	"strings"
	"testing"
)

// A message has no NUL, in its header or its body, by DATA or in chunks; neither has what an envelope says in xtext, which no text of the
// database could keep. A refusal is for good: 451 would have it sent again and again.
func TestNULIsRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	for _, text := range []string{"Subject: a\x00b\r\n\r\nx\r\n", "Subject: a\r\n\r\nx\r\n\x00\r\n", "Subject: a\r\n\r\n" + strings.Repeat("x\r\n", 50_000) + "\x00\r\n"} {
		c := f.greeted()
		c.begin()
		c.send(text + ".\r\n")
		c.expect("550 5.6.0")
		c.say("MAIL FROM:<ann@example.net>", "250")
		c.say("RCPT TO:<bob@example.com>", "250")
		c.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(text), text))
		c.expect("550 5.6.0")
	}
	c := f.greeted()
	c.say("MAIL FROM:<ann@example.net> ENVID=a+00b", "501")
	c.say("MAIL FROM:<ann@example.net>", "250")
	c.say("RCPT TO:<bob@example.com> ORCPT=rfc822;a+00b@example.com", "501")
	if n := len(f.store.all()); n != 0 {
		t.Errorf("%d messages were stored", n)
	}
}
