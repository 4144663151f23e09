package receive_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// filter does at an event what a test says.
type filter struct {
	err error
	at  map[receive.Event]func(e *receive.Exchange) receive.Verdict
}

func (f filter) Session(context.Context) (receive.FilterSession, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f, nil
}

func (f filter) Handle(_ context.Context, event receive.Event, e *receive.Exchange) receive.Verdict {
	if handle := f.at[event]; handle != nil {
		return handle(e)
	}
	return receive.Verdict{}
}

func (filter) Close() {}

// filtered gives a server with one filter.
func filtered(t *testing.T, f filter) *fixture {
	t.Helper()
	return start(t, func(s *receive.Server) { s.Filters = []receive.Filter{f} }, internet())
}

func verdict(v receive.Verdict) func(*receive.Exchange) receive.Verdict {
	return func(*receive.Exchange) receive.Verdict { return v }
}

func refusal() receive.Verdict {
	return receive.Verdict{Action: receive.Refuse, Reply: receive.NewReply(550, 7, 9, "Not from you")}
}

func TestFilterRefusesAtEachStage(t *testing.T) {
	t.Parallel()
	at := func(event receive.Event) *fixture {
		return filtered(t, filter{at: map[receive.Event]func(*receive.Exchange) receive.Verdict{event: verdict(refusal())}})
	}
	c := at(receive.Connected).dial()
	c.expect("550 5.7.9 Not from you")
	c.expect("closed")
	c = at(receive.Greeted).dial()
	c.expect("220")
	c.say("EHLO client", "550 5.7.9")
	at(receive.SenderGiven).greeted().say("MAIL FROM:<>", "550 5.7.9")
	c = at(receive.RecipientGiven).greeted()
	c.say("MAIL FROM:<>", "250")
	c.say("RCPT TO:<bob@example.com>", "550 5.7.9")
	c.say("DATA", "503")
	for _, event := range []receive.Event{receive.DataBegins, receive.HeaderEnded, receive.DataEnded, receive.BeforeQueue} {
		f := at(event)
		c = f.greeted()
		c.begin()
		c.send("x: y\r\n\r\nhello\r\n.\r\n")
		c.expect("550 5.7.9")
		c.say("NOOP", "250")
		if len(f.store.all()) != 0 {
			t.Errorf("a message that was refused at %d was taken", event)
		}
	}
	away := filtered(t, filter{err: errors.New("away")})
	away.greeted().say("MAIL FROM:<>", "451 4.7.1")
}

func TestFilterChangesHoldsAndDropsMessages(t *testing.T) {
	t.Parallel()
	discarded := make(chan message.Envelope, 1)
	f := start(t, func(s *receive.Server) {
		s.Discarded = func(_ context.Context, e message.Envelope, _ int64) { discarded <- e }
		s.Filters = []receive.Filter{changing(t)}
	}, internet())
	c := f.greeted()
	c.begin()
	c.send("A: b\r\n\r\nhello\r\n.\r\n")
	c.expect("250 2.6.0")
	m := f.store.only(t)
	if m.envelope.Quarantine != "a virus" || m.envelope.Sender != "changed@example.net" || !strings.HasSuffix(m.text, "A: b\r\nX-Filter: seen\r\n\r\nnew body\r\n") {
		t.Errorf("taken was %+v", m)
	}
	if got := string(m.envelope.Verdicts); got != `{"filters":[{"filter":"scan","action":"QUARANTINE","reason":"a virus","changes":["body"]}]}` {
		t.Errorf("verdicts: %s", got)
	}
	c.say("MAIL FROM:<drop@example.net>", "250")
	c.say("RCPT TO:<bob@example.com>", "250")
	c.say("DATA", "354")
	c.send("hello\r\n.\r\n")
	c.expect("250 2.6.0")
	f.store.only(t)
	if e := <-discarded; len(e.Recipients) != 1 || e.Local != netip.MustParseAddr("127.0.0.1") || e.Took <= 0 {
		t.Errorf("discarded was %+v", e)
	}
	c.say("MAIL FROM:<end@example.net>", "421 4.7.0 Go away")
	c.expect("closed")
}

// changing is a filter that changes and holds what it gets, and drops or ends what comes from some.
func changing(t *testing.T) filter {
	t.Helper()
	return filter{at: map[receive.Event]func(*receive.Exchange) receive.Verdict{
		receive.SenderGiven: func(e *receive.Exchange) receive.Verdict {
			switch e.Envelope.Sender {
			case "drop@example.net":
				return receive.Verdict{Action: receive.Discard}
			case "end@example.net":
				return receive.Verdict{Action: receive.Disconnect, Reply: receive.NewReply(421, 7, 0, "Go away")}
			}
			return receive.Verdict{}
		},
		receive.DataEnded: func(e *receive.Exchange) receive.Verdict {
			e.Header = append(e.Header, message.NewField("X-Filter", "seen"))
			e.Envelope.Sender = "changed@example.net"
			if err := e.Body.Truncate(); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(e.Body, "new body\r\n")
			return receive.Verdict{Action: receive.Quarantine, Reason: "a virus", Filter: "scan", Changes: []string{"body"}}
		},
	}}
}

func TestFilterEndsTheConnectionBehindTheData(t *testing.T) {
	t.Parallel()
	for _, event := range []receive.Event{receive.DataBegins, receive.DataEnded, receive.BeforeQueue} {
		f := filtered(t, filter{at: map[receive.Event]func(*receive.Exchange) receive.Verdict{event: func(*receive.Exchange) receive.Verdict {
			return receive.Verdict{Action: receive.Disconnect, Reply: receive.NewReply(421, 7, 0, "Go away")}
		}}})
		c := f.greeted()
		c.begin()
		c.send("x: y\r\n\r\nhello\r\n.\r\nNOOP\r\n")
		c.expect("421 4.7.0 Go away")
		c.expect("closed")
		if event == receive.DataBegins {
			continue
		}
		c = f.greeted()
		c.say("MAIL FROM:<a@example.net>", "250")
		c.say("RCPT TO:<bob@example.com>", "250")
		c.send("BDAT 8 LAST\r\nx: y\r\n\r\nNOOP\r\n")
		c.expect("421 4.7.0 Go away")
		c.expect("closed")
	}
}

// origin gives a fixed verdict on what a message says of its origin.
type origin struct{ verdict authenticity.Verdict }

func (o origin) Verify(_ context.Context, m authenticity.Message) authenticity.Verdict {
	o.verdict.Field = message.NewField("Authentication-Results", m.Identity+"; spf=none")
	return o.verdict
}

func (o origin) VerifySender(context.Context, authenticity.Message) authenticity.SenderVerdict {
	return authenticity.SenderVerdict{IsRefused: o.verdict.IsRefused, IsDeferred: o.verdict.IsDeferred}
}

func TestVerdictOnTheOriginIsFollowed(t *testing.T) {
	t.Parallel()
	for reply, v := range map[string]authenticity.Verdict{
		"550 5.7.1 p": {IsRefused: true, Reason: "p"}, "451 4.7.1 d": {IsDeferred: true, Reason: "d"}, "250 2.6.0": {Quarantine: "q", Results: []byte("{}")},
	} {
		f := start(t, func(s *receive.Server) { s.Verifier = origin{v} }, internet())
		c := f.greeted()
		c.begin()
		c.send("Authentication-Results: mx.example.com; spf=pass\r\nAuthentication-Results: other.example.com; spf=pass\r\nFrom: a@b\r\n\r\nhello\r\n.\r\n")
		c.expect(reply)
		if v.Quarantine == "" {
			continue
		}
		m := f.store.only(t)
		if m.envelope.Quarantine != "q" || string(m.envelope.Verdicts) != "{}" || strings.Count(m.text, "Authentication-Results: mx.example.com; spf=none\r\n") != 1 ||
			strings.Contains(m.text, "spf=pass") {
			t.Errorf("taken was %+v", m)
		}
	}
}

// A host that got no reply sends a message again, over whatever hosts: it is the same message, and no other is.
func TestCopiesOfAMessageHaveOneIdentity(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	give := func(text string) {
		c := f.greeted()
		c.begin()
		c.send(text + "\r\n.\r\n")
		c.expect("250 2.6.0")
	}
	const letter = "Message-ID: <1@example.net>\r\nDate: Tue, 1 Jul 2025 10:00:00 +0000\r\nSubject: a\r\n b\r\n\r\nhello"
	give(letter)
	if err := f.server.Configure(&receive.Configuration{
		Connectors: []*receive.Connector{internet()}, AcceptedDomains: []string{"example.com"}, IdentifiesMessages: true,
	}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		letter, "Received: from a by b; Tue, 1 Jul 2025 10:00:00 +0000\r\n" + strings.Replace(letter, "a\r\n b", "a b", 1), letter + "!",
		strings.Replace(letter, "10:00", "10:01", 1), "Resent-Date: Tue, 1 Jul 2025 11:00:00 +0000\r\n" + letter, "Subject: none\r\n\r\nhello",
	} {
		give(text)
	}
	var identities []string
	for _, m := range f.store.all() {
		identities = append(identities, m.envelope.Identity)
	}
	if len(identities) != 7 || identities[0] != "" || identities[6] != "" || identities[1] != identities[2] {
		t.Fatalf("identities: %q", identities)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(identities[1:6]))); len(distinct) != 4 || len(distinct[0]) != 36 {
		t.Errorf("identities: %q", identities)
	}
}

// The inside of a message is no concern of receiving: it is taken as it is, however deep.
func TestPartsOfAMessageAreNotRead(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	c.begin()
	bomb := "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n", 20_000)
	c.send(bomb + ".\r\n")
	c.expect("250 2.6.0")
	if m := f.store.only(t); !strings.HasSuffix(m.text, bomb) {
		t.Error("the message was changed")
	}
}

// permit permits a folder.
func permit(t *testing.T, folder string) *hostfolders.Folders {
	t.Helper()
	folders, err := hostfolders.Permit(folder)
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// write writes a certificate for names into files.
func write(t *testing.T, files receive.CertificateFiles, names ...string) {
	t.Helper()
	k := certificate(t, names...)
	private, err := x509.MarshalPKCS8PrivateKey(k.tls.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		files.Certificate: {Type: "CERTIFICATE", Bytes: k.tls.Certificate[0]}, files.Key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificateIsChosenByNameAndReadAnew(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := receive.CertificateFiles{Certificate: filepath.Join(folder, "a.crt"), Key: filepath.Join(folder, "a.key"), Folders: permit(t, folder)}
	second := receive.CertificateFiles{Certificate: filepath.Join(folder, "b.crt"), Key: filepath.Join(folder, "b.key"), Folders: first.Folders}
	write(t, first, "a.example")
	write(t, second, "b.example", "*.b.example")
	certificates, err := receive.NewCertificates(slog.New(slog.DiscardHandler), first, second)
	if err != nil {
		t.Fatal(err)
	}
	requireName := func(asked, want string) {
		t.Helper()
		got, err := certificates.Get(&tls.ClientHelloInfo{ServerName: asked})
		if err != nil || got.Leaf.DNSNames[0] != want {
			t.Errorf("asked for %q: got %v, %v; want %s", asked, got.Leaf.DNSNames, err, want)
		}
	}
	for asked, want := range map[string]string{"": "a.example", "a.example": "a.example", "x.b.example": "b.example", "other": "a.example"} {
		requireName(asked, want)
	}
	write(t, first, "new.example")
	later := time.Now().Add(time.Hour)
	if err := errors.Join(os.Chtimes(first.Certificate, later, later), certificates.Reload()); err != nil {
		t.Fatal(err)
	}
	requireName("", "new.example")
	if err := os.WriteFile(second.Key, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(second.Key, later, later)); err != nil {
		t.Fatal(err)
	}
	if err := certificates.Reload(); err == nil {
		t.Error("a broken key was read")
	}
	requireName("b.example", "b.example")
	if _, err := receive.NewCertificates(slog.New(slog.DiscardHandler), receive.CertificateFiles{Certificate: folder + "/missing", Key: folder + "/missing", Folders: first.Folders}); err == nil {
		t.Error("a certificate that is missing was read")
	}
}
