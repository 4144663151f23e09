package receive_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// filled gives text of so many bytes in lines of 80.
func filled(length int) string {
	text := strings.Repeat(strings.Repeat("x", 78)+"\r\n", length/80)
	if rest := length % 80; rest > 0 {
		text = text[:len(text)-2] + strings.Repeat("x", rest) + "\r\n"
	}
	return text
}

// Each limit of a message holds to its last byte, line, hop and recipient, whether the message comes by DATA or in chunks.
func TestEachLimitOfAMessageHoldsToItsEnd(t *testing.T) {
	t.Parallel()
	connector := internet()
	connector.Limits.MessageBytes, connector.Limits.HeaderBytes, connector.Limits.TextLine = 10_000, 2000, 200
	connector.Limits.Hops, connector.Limits.LocalHops = 5, 2
	connector.Limits.ConnectionsPerSource, connector.Limits.PercentPerSource = 0, 100
	f := start(t, nil, connector)
	hops := func(by string, n int) string {
		return strings.Repeat("Received: by "+by+" with X; date\r\n", n) + "\r\nx\r\n"
	}
	header := func(length int) string {
		return "A: b\r\n" + strings.Repeat("C: "+strings.Repeat("y", 95)+"\r\n", (length-8)/100) + "D: " + strings.Repeat("z", (length-8)%100-5) + "\r\n\r\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"as many bytes", "A: b\r\n\r\n" + filled(9992), "250 2.6.0"},
		{"a byte more", "A: b\r\n\r\n" + filled(9993), "552 5.3.4"},
		{"a header of as many bytes", header(2000) + "x\r\n", "250 2.6.0"},
		{"a header of one more", header(2001) + "x\r\n", "552 5.3.4"},
		{"a line of as many bytes", "A: b\r\n\r\n" + strings.Repeat("x", 198) + "\r\n", "250 2.6.0"},
		{"a line of one more", "A: b\r\n\r\n" + strings.Repeat("x", 199) + "\r\n", "554 5.6.0"},
		{"as many hops", hops("other.example", 5), "250 2.6.0"},
		{"a hop more", hops("other.example", 6), "554 5.4.6"},
		{"as many hops of ours", hops("mx.example.com", 2), "250 2.6.0"},
		{"a hop of ours more", hops("mx.example.com", 3), "554 5.4.6"},
	} {
		peer := f.greeted()
		peer.begin()
		peer.send(c.text + ".\r\n")
		if got := peer.reply(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %s", c.name, got, c.want)
		}
		peer.say("MAIL FROM:<a@example.net>", "250")
		peer.say("RCPT TO:<bob@example.com>", "250")
		peer.send(fmt.Sprintf("BDAT %d LAST\r\n%s", len(c.text), c.text))
		if got := peer.reply(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, in a chunk: %q, want %s", c.name, got, c.want)
		}
		peer.say("QUIT", "221")
	}
}

// Where a connector has no limit for lines, or more than there is memory for, they may have 10,000 bytes.
func TestLinesAreBoundedWhateverTheConnectorSays(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 10_000, 10_001, 1_000_000} {
		connector := internet()
		connector.Limits.TextLine = most
		f := start(t, nil, connector)
		for length, want := range map[int]string{10_000: "250 2.6.0", 10_001: "554 5.6.0"} {
			c := f.greeted()
			c.begin()
			c.send("A: b\r\n\r\n" + strings.Repeat("x", length-2) + "\r\n.\r\n")
			if got := c.reply(); !strings.HasPrefix(got, want) {
				t.Errorf("with a limit of %d a line of %d bytes: %q", most, length, got)
			}
		}
	}
}

// A command may have as many bytes as the connector says, an answer of AUTH 12,288 where that is more, and so many commands may come at once.
func TestCommandsAreBounded(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Limits.CommandLine, connector.Limits.PipelinedCommands, connector.Limits.ProtocolErrors, connector.Limits.FailedAuth = 512, 3, 0, 0
	f := start(t, nil, connector)
	c := f.greeted()
	c.say("NOOP "+strings.Repeat("x", 512-7), "250 2.0.0")
	c.say("NOOP "+strings.Repeat("x", 513-7), "500 5.5.6")
	c.say("AUTH PLAIN", "334")
	c.say(strings.Repeat("A", 12_288-2), "501 5.5.2") // It is read, and is no base64.
	c.say("AUTH PLAIN", "334")
	c.say(strings.Repeat("A", 12_288-1), "500 5.5.6")
	c = f.greeted()
	c.send(strings.Repeat("NOOP\r\n", 3))
	for range 3 {
		c.expect("250 2.0.0")
	}
	c.say("NOOP", "250 2.0.0") // It counts what comes at once.
	c.send(strings.Repeat("NOOP\r\n", 4))
	for range 3 {
		c.expect("250 2.0.0")
	}
	c.expect("421 4.7.0 Too many commands")
	c.expect("closed")
}

// asking remembers for which users it was asked.
type asking struct {
	credentials
	mu    sync.Mutex
	users []string
}

func (a *asking) Verifier(ctx context.Context, user string) (receive.Verifier, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.users = append(a.users, user)
	return a.credentials.Verifier(ctx, user)
}

// A name of more than 256 bytes is nobody's, and nobody is asked about it.
func TestNamesOfUsersAreBounded(t *testing.T) {
	t.Parallel()
	longest, connector := strings.Repeat("n", 256), submission()
	connector.Limits.FailedAuth, connector.Limits.LockoutFailures = 0, 0
	known := &asking{credentials: credentials{longest: "secret", longest + "n": "secret"}}
	f := start(t, func(s *receive.Server) { s.Credentials = known }, connector)
	for name, want := range map[string]string{longest: "235", longest + "n": "535 5.7.8", "": "535 5.7.8"} {
		f.greeted().say("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00"+name+"\x00secret")), want)
	}
	if len(known.users) != 1 {
		t.Errorf("asked about %d names", len(known.users))
	}
}

// The proxy's statement about its client, by either version; a header that is none, or is cut off or too long, is no statement.
func TestHeaderOfAProxyIsRead(t *testing.T) {
	t.Parallel()
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	four, six := "\xc0\x00\x02\x07\x7f\x00\x00\x01\x12\x67\x00\x19", "\x20\x01\x0d\xb8"+strings.Repeat("\x00", 11)+"\x01"+strings.Repeat("\x00", 16)+"\x12\x67\x00\x19"
	padded := func(length int) string { // a line of so many bytes
		return "PROXY UNKNOWN " + strings.Repeat("x", length-len("PROXY UNKNOWN ")-2) + "\r\n"
	}
	for text, want := range map[string]string{
		"PROXY TCP4 192.0.2.7 127.0.0.1 4711 25\r\n":     "192.0.2.7:4711",
		"PROXY TCP6 2001:db8::1 ::1 4711 25\r\n":         "[2001:db8::1]:4711",
		"PROXY TCP6 ::ffff:192.0.2.7 ::1 65535 25\r\n":   "192.0.2.7:65535",
		"PROXY UNKNOWN\r\n":                              "nobody",
		"PROXY UNKNOWN ffff:f:f ffff::f 65535 65535\r\n": "nobody",
		padded(107):                              "nobody",
		padded(108):                              "none",
		"PROXY TCP4 2001:db8::1 ::1 4711 25\r\n": "none",
		"PROXY TCP6 192.0.2.7 127.0.0.1 4711 25\r\n":        "none",
		"PROXY TCP4 192.0.2.7 127.0.0.1 65536 25\r\n":       "none",
		"PROXY TCP4 192.0.2.7 127.0.0.1 4711\r\n":           "none",
		"PROXY TCP4 192.0.2.7 127.0.0.1 4711 25 26\r\n":     "none",
		"PROXY UDP4 192.0.2.7 127.0.0.1 4711 25\r\n":        "none",
		"PROXY TCP6 fe80::1%eth0 ::1 4711 25\r\n":           "none",
		"PROXX TCP4 192.0.2.7 127.0.0.1 4711 25\r\n":        "none",
		signature + "\x21\x11\x00\x0c" + four:               "192.0.2.7:4711",
		signature + "\x21\x11\x00\x0f" + four + "\x01\x00z": "192.0.2.7:4711",
		signature + "\x21\x21\x00\x24" + six:                "[2001:db8::1]:4711",
		signature + "\x20\x11\x00\x0c" + four:               "nobody",
		signature + "\x21\x11\x00\x0b" + four[:11]:          "none",
		signature + "\x21\x11\x00\x0c" + four[:11]:          "none",
		signature + "\x21\x21\x00\x23" + six[:35]:           "none",
		signature + "\x11\x11\x00\x0c" + four:               "none",
		signature + "\x22\x11\x00\x0c" + four:               "none",
		signature + "\x21\x12\x00\x0c" + four:               "none",
	} {
		peer, err := receive.ReadProxyHeader(strings.NewReader(text))
		got := peer.String()
		switch {
		case err != nil:
			got = "none"
		case !peer.IsValid():
			got = "nobody"
		}
		if got != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}
