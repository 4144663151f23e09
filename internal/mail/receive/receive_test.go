package receive_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/receive"
)

func TestMessageIsTakenWithItsEnvelope(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	c.say(`MAIL FROM:<"ann \"x\""@example.net> SIZE=100 BODY=8BITMIME RET=HDRS ENVID=QQ+2B1`, "250 2.1.0")
	c.say("RCPT TO:<bob@example.com> NOTIFY=FAILURE,DELAY ORCPT=rfc822;bob+2Bx@example.com", "250 2.1.5")
	c.say("RCPT TO:<@relay.example:eve@sub.example.org>", "250 2.1.5")
	c.say("DATA", "354")
	c.send("Subject: hello\r\n world\r\nReturn-Path: <x@y>\r\nMessage-Id: <1@x>\r\nX-Parley-Organization-Scl: -1\r\n" +
		"X-Parley-Forest-A :b\r\nImportance: High\r\n\r\n..dot\r\n.\r\n")
	c.expect("250 2.6.0 Queued as ")
	c.say("QUIT", "221 2.0.0")
	m := f.store.only(t)
	e := m.envelope
	if e.Sender != `"ann \"x\""@example.net` || e.EnvelopeID != "QQ+1" || e.Return != "HDRS" || e.BodyType != "8BITMIME" || e.HeaderMessageID != "<1@x>" ||
		e.Subject != "hello world" || e.Helo != "client.example.net" || e.Source != "SMTP" || e.Connector != "in" || e.Directionality != "INCOMING" || e.Priority != "high" {
		t.Errorf("the envelope is %+v", e)
	}
	if r := e.Recipients; len(r) != 2 || r[0].Address != "bob@example.com" || r[0].Notify != "DELAY,FAILURE" || r[0].Original != "rfc822;bob+x@example.com" ||
		r[1].Address != "eve@sub.example.org" {
		t.Errorf("the recipients are %+v", r)
	}
	trace, rest, _ := strings.Cut(m.text, "Subject:")
	if !strings.HasPrefix(trace, "Received: from client.example.net (unknown [127.0.0.1])\r\n\tby mx.example.com with ESMTP\r\n\tid "+e.NetworkMessageID+";\r\n\t") {
		t.Errorf("the trace is %q", trace)
	}
	if rest != " hello\r\n world\r\nMessage-Id: <1@x>\r\nImportance: High\r\n\r\n.dot\r\n" {
		t.Errorf("the message is %q", rest)
	}
}

func TestTwoMessagesOnOneConnectionByPipelining(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.dial()
	one := "MAIL FROM:<>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n"
	c.expect("220 mx.example.com ESMTP")
	c.send("EHLO c\r\n" + one)
	for _, begin := range []string{"250-mx.example.com\r\n", "250 ", "250 ", "354"} {
		c.expect(begin)
	}
	c.send("A: 1\r\n\r\none\r\n.\r\n" + one)
	for _, begin := range []string{"250 2.6.0", "250 ", "250 ", "354"} {
		c.expect(begin)
	}
	c.send("two\r\n.\r\nQUIT\r\n")
	c.expect("250 2.6.0")
	c.expect("221 ")
	c.expect("closed")
	all := f.store.all()
	if len(all) != 2 || !strings.HasSuffix(all[0].text, "A: 1\r\n\r\none\r\n") || !strings.HasSuffix(all[1].text, "\r\n\r\ntwo\r\n") {
		t.Errorf("taken was %+v", all)
	}
}

func TestChunksMakeOneMessage(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	c.say("MAIL FROM:<a@example.net> BODY=8BITMIME", "250")
	c.say("RCPT TO:<bob@example.com>", "250")
	body := ".\r\n..\xff\x01" + strings.Repeat("\r\nx", 7_000)
	c.send("BDAT 8\r\nA: 1\r\n\r\nBDAT 0\r\nBDAT 21007 LAST\r\n" + body + "RSET\r\n")
	c.expect("250 2.0.0 8 octets")
	c.expect("250 2.0.0 0 octets")
	c.expect("250 2.6.0")
	c.expect("250 2.0.0 Reset")
	if m := f.store.only(t); !strings.HasSuffix(m.text, "A: 1\r\n\r\n"+body+"\r\n") || m.envelope.BodyType != "8BITMIME" {
		t.Errorf("taken was %.300q", m.text)
	}
}

// Behind the last chunk, and behind one that was refused, nothing of the transaction is left: neither its sender nor its recipients.
func TestTransactionEndsWithItsLastChunk(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.ProtocolErrors = 0
	c := start(t, nil, connector).greeted()
	for text, want := range map[string]string{"A: 1\r\n\r\n": "250 2.6.0", "A: 1\r\n\rx": "5"} {
		c.say("MAIL FROM:<a@example.net>", "250")
		c.say("RCPT TO:<bob@example.com>", "250")
		c.send("BDAT 8 LAST\r\n" + text)
		c.expect(want)
		for _, command := range []string{"RCPT TO:<bob@example.com>", "DATA", "BDAT 0 LAST"} {
			c.say(command, "503 5.5.1")
		}
	}
}

// The replies to commands that are wrong or out of order.
func TestRepliesToCommands(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.ProtocolErrors = 0
	f := start(t, nil, connector)
	long := strings.Repeat("x", 3000)
	c := f.dial()
	c.expect("220 ")
	for _, dialog := range [][2]string{
		{"HELP", "214 2.0.0"},
		{"NOOP hello", "250 2.0.0"},
		{"VRFY bob", "252 2.5.0"},
		{"EXPN list", "502 5.5.1"},
		{"BLAH", "500 5.5.1"},
		{"", "500 5.5.1"},
		{long, "500 5.5.6"},
		{strings.Repeat(long, 10), "500 5.5.6"},
		{"NO\rOP", "500 5.5.2"},
		{"NOOP \x00", "500 5.5.2"},
		{"MAIL FROM:<a@b>", "503 5.5.1"},
		{"EHLO", "501 5.5.2"},
		{"EHLO a b", "501 5.5.2"},
		{"EHLO <x>", "501 5.5.2"},
		{"HELO client", "250 mx.example.com\r\n"},
		{"MAIL FROM:<a@b> SIZE=1", "501 5.5.4"},
		{"AUTH PLAIN AGEAYg==", "502 5.5.1"},
		{"EHLO [IPv6:::1]", "250-"},
		{"RCPT TO:<bob@example.com>", "503 5.5.1"},
		{"DATA", "503 5.5.1"},
		{"BDAT 0 LAST", "503 5.5.1"},
		{"MAIL FROM:a@b", "501 5.1.7"},
		{"MAIL FROM:<a@b@c>", "501 5.1.7"},
		{"MAIL FROM:<a>", "501 5.1.7"},
		{"MAIL FROM:<postmaster>", "501 5.1.7"}, // Without a domain he is a recipient only.
		{"MAIL FROM:<a@b>x", "501 5.1.7"},
		{"MAIL FROM:<a b@c>", "501 5.1.7"},
		{"MAIL <a@b>", "501 5.5.4"},
		{"MAIL FROM:<a@b> SIZE=99999999999999", "552 5.3.4"},
		{"MAIL FROM:<a@b> SIZE=x", "501 5.5.4"},
		{"MAIL FROM:<a@b> BODY=9BIT", "501 5.5.4"},
		{"MAIL FROM:<a@b> FOO=1", "5"},
		{"MAIL FROM:<ä@example.net>", "553 5.6.7"},
		{"MAIL FROM: <ä@example.net> SMTPUTF8", "250 2.1.0"},
		{"MAIL FROM:<a@b>", "503 5.5.1"},
		{"STARTTLS", "503 5.5.1"},
		{"DATA", "503 5.5.1"},
		{"RCPT TO:<>", "501 5.1.3"},
		{"RCPT TO:<bob@example.org>", "550 5.7.1 Unable to relay"},
		{"RCPT TO:<bob@example.net>", "550 5.7.1 Unable to relay"},
		{"RCPT TO:<bob%example.net@sub.example.org>", "250 2.1.5"},
		{"RCPT TO:<postmaster>", "250 2.1.5"},
		{"BDAT 3\r\na", "250 2.0.0 3 octets"},
		{"RSET", "250 2.0.0"},
		{"DATA", "503 5.5.1"},
		{"EXPN", "502"},
		{"XCLIENT ADDR=1.2.3.4", "550 5.7.0"},
	} {
		c.say(dialog[0], dialog[1])
	}
}

func TestMessageThatIsNotStoredIsDeferred(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	f.store.err = errors.New("the database is away")
	c := f.greeted()
	c.begin()
	c.send("hello\r\n.\r\n")
	c.expect("451 4.3.0")
	c.begin()
	c.send("hello\r\n.\r\n")
	c.expect("451 4.3.0")
}

func TestStopLetsTheMessageUnderWayEnd(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	f.store.entered, f.store.release = make(chan struct{}), make(chan struct{})
	idle, busy := f.greeted(), f.greeted()
	busy.begin()
	busy.send("hello\r\n.\r\n")
	<-f.store.entered
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	idle.expect("421 4.3.2")
	idle.expect("closed")
	f.store.release <- struct{}{}
	busy.expect("250 2.6.0")
	busy.expect("421 4.3.2")
	<-stopped
	f.store.only(t)
}

func named(name string, ranges ...string) *receive.Connector {
	c := internet()
	c.Name, c.Banner, c.RemoteRanges = name, name, prefixes(ranges...)
	return c
}

func TestConnectorOfTheMostSpecificRangeServes(t *testing.T) {
	t.Parallel()
	disabled := named("disabled", "127.0.0.1/32")
	disabled.IsDisabled = true
	start(t, nil, named("all", "0.0.0.0/0"), disabled, named("loopback", "127.0.0.0/8")).dial().expect("220 loopback\r\n")
	start(t, nil, named("all", "0.0.0.0/0"), named("host", "127.0.0.1/32"), named("loopback", "127.0.0.0/8")).dial().expect("220 host\r\n")
	start(t, nil, named("other", "10.0.0.0/8"), disabled).dial().expect("closed")
}

func prefixes(texts ...string) (all []receive.Range) {
	for _, text := range texts {
		one, err := receive.ParseRange(text)
		if err != nil {
			panic(err)
		}
		all = append(all, one)
	}
	return all
}
