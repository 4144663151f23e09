package receive_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// Sequences that resemble the end of message data, and are none: the message is refused behind its true end, and nothing inside is a
// command.
func TestSmuggledMessagesAreRefused(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.ConnectionsPerSource, connector.Limits.PercentPerSource = 0, 100
	f := start(t, nil, connector)
	second := "MAIL FROM:<second@example.net>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\nsmuggled\r\n"
	for _, end := range []string{
		"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\r.\r\n", "\n.\r", "\r.\n", "\r\n.\r\r\n", "\r\n.\n\r\n", "\r\r\n.\r\n\n.\r\n", "\n\n.\r\n", "\r\n\r.\r\n", "\r\n.\r.\r\n",
	} {
		for _, before := range []string{"", "text", strings.Repeat("x", 900), strings.Repeat("x\r\n", 9000)} {
			c := f.greeted()
			c.begin()
			c.send(before + end + second + ".\r\n")
			if got := c.reply(); !strings.HasPrefix(got, "550 5.6.11") {
				t.Errorf("%q behind %.10q: the reply is %q", end, before, got)
			}
			if got := c.reply(); got != "closed" { // whatever stands behind the true end is not to be trusted
				t.Errorf("%q behind %.10q: another reply is %q", end, before, got)
			}
			_ = c.conn.Close()
		}
	}
	if all := f.store.all(); len(all) != 0 {
		t.Errorf("%d messages were taken", len(all))
	}
}

// The same within BDAT, where the length says what is data: the message would smuggle at the next server.
func TestBareLineEndsOfChunksAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	for _, text := range []string{"a\nb\r\n", "a\rb\r\n", "a\r\r\n", "a\r", "\n", "a\r\n\n", strings.Repeat("x", 5000) + "\n"} {
		for _, split := range []int{0, 1, 2, len(text)} {
			split = min(split, len(text))
			c.say("MAIL FROM:<a@example.net>", "250")
			c.say("RCPT TO:<bob@example.com>", "250")
			c.send(fmt.Sprintf("BDAT %d\r\n%sBDAT %d LAST\r\n%s", split, text[:split], len(text)-split, text[split:]))
			c.expect("250 2.0.0")
			c.expect("550 5.6.11")
		}
	}
	// Nor is there another kind of body in which they are allowed: it could leave by DATA alone.
	c.say("MAIL FROM:<a@example.net> BODY=BINARYMIME", "504 5.5.4")
	c.say("MAIL FROM:<a@example.net>", "250")
	c.say("RCPT TO:<bob@example.com>", "250")
	c.send("BDAT 4\r\na\r\n\rBDAT 1 LAST\r\n\n")
	c.expect("250 2.0.0")
	c.expect("250 2.6.0")
	f.store.only(t)
}

func TestLineEndsAreNormalizedWhereTheConnectorSaysSo(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.IsNormalizing = true
	f := start(t, nil, connector)
	c := f.greeted()
	c.begin()
	c.send("A: 1\nB: 2\r\n\none\n.\ntwo\rthree\r\n..four\r\n.\r\n")
	c.expect("250 2.6.0")
	if m := f.store.only(t); !strings.HasSuffix(m.text, "A: 1\r\nB: 2\r\n\r\none\r\n.\r\ntwo\r\nthree\r\n.four\r\n") {
		t.Errorf("taken was %q", m.text)
	}
}

// A chunk whose length nobody can read ends the connection, so that its bytes are no commands.
func TestChunkOfUnknownLengthEndsTheConnection(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	for _, argument := range []string{"", "x", "-1", "99999999999999999999", "5 LAST LAST", "5 FIRST", "+5", "0x5", "5000000000"} {
		c := f.greeted()
		c.say("MAIL FROM:<a@example.net>", "250")
		c.say("RCPT TO:<bob@example.com>", "250")
		c.send("BDAT " + argument + "\r\nNOOP\r\n")
		c.expect("501 5.5.4")
		c.expect("closed")
	}
}

// A chunk that has no place is passed over, and what is in it is no command.
func TestChunkOutOfPlaceIsPassedOver(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	c.send("BDAT 6\r\nNOOP\r\nBDAT 0 LAST\r\nHELP\r\n")
	c.expect("503 5.5.1")
	c.expect("503 5.5.1")
	c.expect("214 ")
}

func TestLimitsOfAMessageAreAnsweredBehindItsData(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.MessageBytes, connector.Limits.HeaderBytes, connector.Limits.Hops, connector.Limits.LocalHops = 100_000, 20_000, 5, 2
	f := start(t, nil, connector)
	received := func(by string, n int) string {
		return strings.Repeat("Received: from a (by b [1.2.3.4]) by "+by+" with X; date\r\n", n)
	}
	line := strings.Repeat("x", 900) + "\r\n"
	for name, attempt := range map[string]struct{ text, reply string }{
		"size":       {"A: b\r\n\r\n" + strings.Repeat(line, 120), "552 5.3.4"},
		"header":     {strings.Repeat("A: "+line, 30), "552 5.3.4"},
		"field":      {"A: b\r\n" + strings.Repeat(" "+line, 30) + "\r\n", "552 5.3.4"},
		"hops":       {received("other.example", 6) + "\r\n", "554 5.4.6"},
		"local hops": {received("MX.example.com", 3) + "\r\n", "554 5.4.6"},
		"line":       {"\r\n" + strings.Repeat("x", 999) + "\r\n", "554 5.6.0"},
		"long line":  {"\r\n" + strings.Repeat("x", 90_000) + "\r\n", "554 5.6.0"},
		"fits":       {received("other.example", 5) + "\r\n" + strings.Repeat("x", 998) + "\r\n", "250 2.6.0"},
		"no header":  {"\r\nbody\r\n", "250 2.6.0"},
		"nothing":    {"", "250 2.6.0"},
	} {
		c := f.greeted()
		c.begin()
		c.send(attempt.text + ".\r\n")
		if got := c.reply(); !strings.HasPrefix(got, attempt.reply) {
			t.Errorf("%s: the reply is %q, want %s", name, got, attempt.reply)
		}
		c.say("MAIL FROM:<a@example.net>", "250")
		c.say("RCPT TO:<bob@example.com>", "250")
		half := len(attempt.text) / 2
		c.send(fmt.Sprintf("BDAT %d\r\n%sBDAT %d LAST\r\n%s", half, attempt.text[:half], len(attempt.text)-half, attempt.text[half:]))
		c.expect("250 2.0.0")
		if got := c.reply(); !strings.HasPrefix(got, attempt.reply) {
			t.Errorf("%s: the reply to chunks is %q, want %s", name, got, attempt.reply)
		}
		c.say("NOOP", "250")
		_ = c.conn.Close()
	}
	c := f.greeted()
	c.say("MAIL FROM:<a@example.net> SIZE=100001", "552 5.3.4")
	c.say("MAIL FROM:<a@example.net> SIZE=100000", "250")
	c.say("RCPT TO:<bob@example.com>", "250")
	c.send("BDAT 60000\r\n" + strings.Repeat("x\r\n", 20_000) + "BDAT 60000\r\n" + strings.Repeat("x\r\n", 20_000) + "BDAT 4 LAST\r\nRSET")
	c.expect("250 2.0.0")
	c.expect("552 5.3.4")
	c.expect("503 5.5.1")
	c.say("NOOP", "250")
}

func TestTenThousandRecipientsAreTakenUpToTheLimit(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	c.say("MAIL FROM:<a@example.net>", "250")
	go func() {
		for i := range 10_000 {
			c.send(fmt.Sprintf("RCPT TO:<user%d@example.com>\r\n", i))
		}
		c.send("DATA\r\n")
	}()
	for i := range 10_000 {
		begin := "250 2.1.5"
		if i >= 200 {
			begin = "452 4.5.3"
		}
		c.expect(begin)
	}
	c.expect("354")
	c.send("hello\r\n.\r\n")
	c.expect("250 2.6.0")
	if m := f.store.only(t); len(m.envelope.Recipients) != 200 {
		t.Errorf("%d recipients were taken", len(m.envelope.Recipients))
	}
}

func TestCommandsByTheThousandEndTheConnection(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.dial()
	c.send(strings.Repeat("NOOP\r\n", 2000))
	for range 2002 {
		if got := c.reply(); strings.HasPrefix(got, "421 4.7.0 Too many commands") || got == "closed" {
			return
		}
	}
	t.Error("2000 commands at once were answered")
}

func TestErrorsEndTheConnection(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	for range 4 {
		c.say("BLAH", "500")
	}
	c.say("RCPT TO:<bob@example.com>", "503")
	c.expect("421 4.7.0 Too many errors")
	c.expect("closed")
	f.dial().say("GET / HTTP/1.1", "220")
}

func TestBrowserIsNotServed(t *testing.T) {
	t.Parallel()
	c := start(t, nil, internet()).dial()
	c.expect("220 ")
	c.send("POST / HTTP/1.1\r\nHost: x\r\n\r\nHELO x\r\nMAIL FROM:<a@b>\r\n")
	c.expect("421 5.5.1")
	c.expect("closed")
}

func TestSilentPeersAreDroppedInTime(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.InactivityTimeout, connector.Limits.ConnectionTimeout = 300*time.Millisecond, time.Hour
	f := start(t, nil, connector)
	for name, speak := range map[string]func(*client){
		"command": func(c *client) { c.send("NO") },
		"data":    func(c *client) { c.begin(); c.send("hello\r\n.") },
		"nothing": func(*client) {},
	} {
		c := f.greeted()
		speak(c)
		if got := c.reply(); !strings.HasPrefix(got, "421 4.4.2") {
			t.Errorf("%s: the reply is %q", name, got)
		}
		c.expect("closed")
	}
}

// A peer that sends a byte now and then is dropped: by the end of its line's time, or by that of its connection.
func TestSlowPeersAreDroppedInTime(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.InactivityTimeout, connector.Limits.ConnectionTimeout = 400*time.Millisecond, 1200*time.Millisecond
	f := start(t, nil, connector)
	for name, begin := range map[string]func(*client){"command": func(*client) {}, "data": (*client).begin} {
		c := f.greeted()
		begin(c)
		go func() {
			for {
				if _, err := c.conn.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a slow peer
			}
		}()
		if got := c.reply(); !strings.HasPrefix(got, "421 4.4.2") {
			t.Errorf("%s: the reply is %q", name, got)
		}
	}
	if len(f.store.all()) != 0 {
		t.Error("a message was taken")
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*receive.Limits){
		"connector": func(l *receive.Limits) { l.Connections, l.PercentPerSource, l.ConnectionsPerSource = 2, 100, 0 },
		"source":    func(l *receive.Limits) { l.ConnectionsPerSource = 2 },
		"percent":   func(l *receive.Limits) { l.Connections, l.PercentPerSource = 100, 2 },
	} {
		connector := internet()
		limit(&connector.Limits)
		f := start(t, nil, connector)
		first, second := f.greeted(), f.greeted()
		if got := f.dial().reply(); !strings.HasPrefix(got, "421 4.7.0") {
			t.Errorf("%s: the third connection got %q", name, got)
		}
		first.say("QUIT", "221")
		first.expect("closed")
		second.say("NOOP", "250")
		deadline := time.Now().Add(patience)
		for !strings.HasPrefix(f.dial().reply(), "220 ") {
			if time.Now().After(deadline) {
				t.Fatalf("%s: no connection is taken", name)
			}
		}
	}
	connector := internet()
	connector.Limits.ConnectionsPerMinute = 2
	f := start(t, nil, connector)
	f.greeted()
	f.greeted()
	f.dial().expect("421 4.7.0 Too many connections in this minute")
}

// A limit of the node holds over its connectors together, and at once when it is changed.
func TestConnectionsOfANodeAreLimitedOverItsConnectors(t *testing.T) {
	t.Parallel()
	near, err := receive.ParseRange("127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	one, other := internet(), internet()
	other.Name, other.RemoteRanges = "other", []receive.Range{near}
	f := start(t, nil, one, other)
	limit := func(limits receive.NodeLimits) {
		t.Helper()
		if err := f.server.Configure(&receive.Configuration{Connectors: []*receive.Connector{one, other}, Node: limits}); err != nil {
			t.Fatal(err)
		}
	}
	limit(receive.NodeLimits{Connections: 2})
	first := f.dialFrom("127.0.0.1")
	first.expect("220")
	f.dialFrom("127.0.0.2").expect("220")
	for _, source := range []string{"127.0.0.1", "127.0.0.2"} {
		f.dialFrom(source).expect("421 4.3.2 Too many connections to this server, ")
	}
	limit(receive.NodeLimits{Connections: 3})
	f.dialFrom("127.0.0.2").expect("220")
	limit(receive.NodeLimits{ConnectionsPerMinute: 2})
	f.dialFrom("127.0.0.1").expect("220")
	f.dialFrom("127.0.0.2").expect("220")
	f.dialFrom("127.0.0.1").expect("421 4.3.2 Too many connections to this server in this minute")
	first.say("NOOP", "250")
	limit(receive.NodeLimits{})
	f.greeted()
	for name, refused := range f.server.Counters().RefusedConnections() {
		if want := map[string]int64{"node connections": 2, "node connection rate": 1}[name]; refused != want {
			t.Errorf("%d connections are counted as refused by the limit of %s, want %d", refused, name, want)
		}
	}
}

// The bindings that a connector has by default.
func TestBothFamiliesAreListenedOnAtOnePort(t *testing.T) {
	t.Parallel()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp6", "[::]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	port := free.Addr().(*net.TCPAddr).AddrPort().Port()
	_ = free.Close()
	connector := internet()
	connector.Bindings = []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), port), netip.AddrPortFrom(netip.IPv6Unspecified(), port)}
	listeners, err := receive.Listen(t.Context(), &receive.Configuration{Connectors: []*receive.Connector{connector}})
	if err != nil {
		t.Fatal(err)
	}
	for _, listener := range listeners {
		_ = listener.Close()
	}
}

func TestMessageRateIsLimited(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.MessagesPerMinute = 2
	c := start(t, nil, connector).greeted()
	for range 2 {
		c.say("MAIL FROM:<>", "250")
		c.say("RSET", "250")
	}
	c.say("MAIL FROM:<>", "450 4.7.1")
}

func TestTarpitDelaysErrorsOfUnknownPeers(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.Tarpit = 200 * time.Millisecond
	f := start(t, nil, connector)
	c := f.greeted()
	began := time.Now()
	c.say("MAIL FROM:<>", "250")
	c.say("RCPT TO:<x@example.net>", "550 5.7.1")
	if took := time.Since(began); took < connector.Limits.Tarpit {
		t.Errorf("the refusal took %s", took)
	}
}
