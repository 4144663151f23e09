package receive_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/netip"
	"net/smtp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdg-go/scram"

	"github.com/parley-broker/parley/internal/mail/receive"
)

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// secured gives a client that has said EHLO over TLS.
func (f *fixture) secured() *client {
	f.t.Helper()
	c := f.greeted()
	c.say("STARTTLS", "220 2.0.0")
	c.startTLS(trusting)
	c.say("EHLO client", "250")
	return c
}

// Bytes that somebody put into the clear behind STARTTLS are no command within TLS, and the session begins anew.
func TestCommandsSentAheadOfTLSAreDropped(t *testing.T) {
	t.Parallel()
	f := start(t, nil, internet())
	c := f.greeted()
	c.say("STARTTLS now", "501 5.5.4")
	c.send("STARTTLS\r\nMAIL FROM:<injected@example.net>\r\n")
	c.expect("220 ")
	c.startTLS(trusting)
	c.say("MAIL FROM:<a@example.net>", "503 5.5.1 Say EHLO first")
	if got := c.say("EHLO client", "250"); strings.Contains(got, "STARTTLS") {
		t.Errorf("TLS is offered within TLS: %q", got)
	}
	c.say("STARTTLS", "502 5.5.1")
	c.begin()
	c.send("hello\r\n.\r\n")
	c.expect("250 2.6.0")
	if m := f.store.only(t); m.envelope.Sender != "ann@example.net" || !strings.Contains(m.text, "with ESMTPS (TLS1.3 TLS_AES") {
		t.Errorf("taken was %+v", m)
	}
}

func TestModesOfTLS(t *testing.T) {
	t.Parallel()
	required, off, implicit := internet(), internet(), internet()
	required.TLS, off.TLS, implicit.Implicit = receive.TLSRequired, receive.TLSOff, true
	f := start(t, nil, required)
	c := f.greeted()
	c.say("MAIL FROM:<a@example.net>", "530 5.7.0")
	c.say("RCPT TO:<bob@example.com>", "530 5.7.0")
	f.secured().begin()

	c = start(t, nil, off).greeted()
	c.say("STARTTLS", "502 5.5.1")
	c.begin()

	f = start(t, nil, implicit)
	c = f.dial()
	c.startTLS(trusting)
	c.expect("220 ")
	if got := c.say("EHLO client", "250"); strings.Contains(got, "STARTTLS") {
		t.Errorf("TLS is offered within TLS: %q", got)
	}
	c.begin()

	old := f.dial()
	secured := tls.Client(old.conn, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if err := secured.HandshakeContext(t.Context()); err == nil {
		t.Error("TLS 1.1 was taken")
	}
}

func TestMutualTLSNeedsTheCertificateOfAPartner(t *testing.T) {
	t.Parallel()
	partner, other := certificate(t, "mail.partner.example"), certificate(t, "mail.other.example")
	connector := receive.NewConnector("partner", receive.Partner)
	connector.Bindings, connector.FQDN, connector.Limits.Tarpit, connector.TLSDomains = []netip.AddrPort{binding}, "mx.example.com", 0, []string{"*.partner.example"}
	f := start(t, func(s *receive.Server) {
		s.ClientCAs = func(string) *tls.Config {
			pool := partner.pool.Clone()
			pool.AddCert(other.tls.Leaf)
			return &tls.Config{ClientCAs: pool}
		}
	}, connector)
	f.greeted().say("MAIL FROM:<a@partner.example>", "530 5.7.0")
	for _, attempt := range []struct {
		certificates []tls.Certificate
		reply        string
	}{{nil, "550 5.7.1"}, {[]tls.Certificate{other.tls}, "550 5.7.1"}, {[]tls.Certificate{partner.tls}, "250 2.1.0"}} {
		c := f.greeted()
		c.say("STARTTLS", "220")
		c.startTLS(&tls.Config{InsecureSkipVerify: true, Certificates: attempt.certificates})
		c.say("EHLO client", "250")
		c.say("MAIL FROM:<a@partner.example>", attempt.reply)
	}
}

// leavers are users of whom one can be taken away.
type leavers struct {
	credentials
	isGone atomic.Bool
}

func (l *leavers) MaySubmit(context.Context, string) (bool, error) { return !l.isGone.Load(), nil }

// A right that is taken away counts in connections that are open.
func TestUserWhoMayNoLongerSubmitIsRefusedInHisConnection(t *testing.T) {
	t.Parallel()
	known := &leavers{credentials: credentials{"ann": "secret"}}
	f := start(t, func(s *receive.Server) { s.Credentials = known }, submission())
	c := f.greeted()
	c.say("AUTH PLAIN "+encoded("\x00ann\x00secret"), "235")
	c.say("MAIL FROM:<ann@example.com>", "250")
	c.say("RSET", "250")
	known.isGone.Store(true)
	c.say("MAIL FROM:<ann@example.com>", "550 5.7.1 You may no longer")
}

func TestUsersAuthenticateByPassword(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Limits.FailedAuth, connector.Limits.ProtocolErrors = 0, 0
	c := start(t, nil, connector).greeted()
	c.say("MAIL FROM:<ann@example.com>", "530 5.7.0 Authenticate first")
	for _, wrong := range [][2]string{
		{"AUTH CRAM-MD5", "504 5.5.4"},
		{"AUTH", "504 5.5.4"},
		{"AUTH PLAIN " + encoded("\x00ann\x00wrong"), "535 5.7.8"},
		{"AUTH PLAIN " + encoded("\x00eve\x00secret"), "535 5.7.8"},
		{"AUTH PLAIN " + encoded("bob\x00ann\x00secret"), "535 5.7.8"},
		{"AUTH PLAIN " + encoded("ann"), "535 5.7.8"},
		{"AUTH PLAIN =", "535 5.7.8"},
		{"AUTH PLAIN !", "501 5.5.2"},
		{"AUTH PLAIN " + encoded("\x00broken\x00secret"), "454 4.7.0"},
		{"AUTH PLAIN " + encoded("\x00\x00"), "535 5.7.8"},
	} {
		c.say(wrong[0], wrong[1])
	}
	c.say("AUTH PLAIN", "334")
	c.say("*", "501")
	c.say("AUTH LOGIN", "334 "+encoded("Username:"))
	c.say(encoded("ann"), "334 "+encoded("Password:"))
	c.say(encoded("wrong"), "535 5.7.8")
	c.say("AUTH LOGIN "+encoded("ann"), "334 "+encoded("Password:"))
	c.say(encoded("secret"), "235 2.7.0")
	c.say("AUTH LOGIN", "503 5.5.1")
	c.say("MAIL FROM:<ann@example.net>", "550 5.7.1")
	c.say("MAIL FROM:<ann@example.com>", "250")
	c.say("RCPT TO:<somebody@example.net>", "250")
}

func TestNobodyAuthenticatesInTheClear(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.IsClearAuth = false
	f := start(t, nil, connector)
	c := f.greeted()
	if got := c.say("EHLO client", "250"); strings.Contains(got, "AUTH") {
		t.Errorf("AUTH is offered: %q", got)
	}
	c.say("AUTH PLAIN "+encoded("\x00ann\x00secret"), "538 5.7.11")
	c = f.secured()
	c.say("AUTH PLAIN "+encoded("\x00ann\x00secret"), "235 2.7.0")
	c.say("MAIL FROM:<ann@example.com>", "250")
	c.say("RCPT TO:<x@example.net>", "250")
	c.say("DATA", "354")
	c.send("From: ann@example.com\r\nSubject: x\r\n\r\nhello\r\n.\r\n")
	c.expect("250 2.6.0")
	m := f.store.only(t)
	if m.envelope.AuthenticatedAs != "ann" || m.envelope.Directionality != "ORIGINATING" || m.envelope.HeaderMessageID == "" ||
		!strings.Contains(m.text, "\r\nDate: ") || !strings.Contains(m.text, "with ESMTPSA (") {
		t.Errorf("taken was %+v", m)
	}
}

// scramDialog authenticates by SCRAM and returns the last reply.
func (c *client) scramDialog(mechanism, user, password string, binding *scram.ChannelBinding) string {
	c.t.Helper()
	return c.scramDialogWith(mechanism, user, password, binding, func() {})
}

// scramDialogWith does something before it proves that it knows the password.
func (c *client) scramDialogWith(mechanism, user, password string, binding *scram.ChannelBinding, meanwhile func()) string {
	c.t.Helper()
	scramClient, err := scram.SHA256.NewClient(user, password, "")
	if err != nil {
		c.t.Fatal(err)
	}
	conversation := scramClient.NewConversation()
	if binding != nil {
		conversation = scramClient.NewConversationWithChannelBinding(*binding)
	}
	text, err := conversation.Step("")
	if err != nil {
		c.t.Fatal(err)
	}
	c.send("AUTH " + mechanism + " " + encoded(text) + "\r\n")
	for {
		got := c.reply()
		challenge, isChallenge := strings.CutPrefix(got, "334 ")
		if !isChallenge {
			if strings.HasPrefix(got, "235") && !conversation.Valid() {
				c.t.Error("the server did not prove that it knows the password")
			}
			return got
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(challenge))
		if err != nil {
			c.t.Fatal(err)
		}
		if text, err = conversation.Step(string(raw)); err != nil {
			return err.Error()
		}
		meanwhile()
		meanwhile = func() {}
		if c.send(encoded(text) + "\r\n"); text == "" && !conversation.Done() {
			return "unfinished"
		}
	}
}

func TestUsersAuthenticateByScram(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Limits.FailedAuth = 0
	f := start(t, nil, connector)
	for _, user := range [][2]string{{"ann", "secret"}, {"bob", "pass=,word"}} {
		if got := f.greeted().scramDialog("SCRAM-SHA-256", user[0], user[1], nil); !strings.HasPrefix(got, "235 2.7.0") {
			t.Errorf("%s got %q", user, got)
		}
		if got := f.greeted().scramDialog("SCRAM-SHA-256", user[0], "wrong", nil); !strings.HasPrefix(got, "535 5.7.8") {
			t.Errorf("%s with a wrong password got %q", user, got)
		}
		if got := f.greeted().scramDialog("SCRAM-SHA-256", "eve", user[1], nil); !strings.HasPrefix(got, "535 5.7.8") {
			t.Errorf("an unknown user got %q", got)
		}
	}
	c := f.secured()
	state := c.conn.(*tls.Conn).ConnectionState()
	binding, err := scram.NewTLSExporterBinding(&state)
	if err != nil {
		t.Fatal(err)
	}
	foreign := binding
	foreign.Data = []byte("another connection")
	if got := c.scramDialog("SCRAM-SHA-256-PLUS", "ann", "secret", &foreign); !strings.HasPrefix(got, "535") {
		t.Errorf("a binding to another connection got %q", got)
	}
	if got := c.scramDialog("SCRAM-SHA-256-PLUS", "ann", "secret", &binding); !strings.HasPrefix(got, "235") {
		t.Errorf("SCRAM-SHA-256-PLUS got %q", got)
	}
}

func TestFailedAuthenticationsEndTheConnectionAndLockOutTheSource(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Limits.LockoutFailures = 4
	f := start(t, nil, connector)
	c := f.greeted()
	wrong := "AUTH PLAIN " + encoded("\x00ann\x00wrong")
	for range 3 {
		c.say(wrong, "535")
	}
	c.expect("421 4.7.0 Too many failed")
	c.expect("closed")
	c = f.greeted()
	c.say(wrong, "535")
	c.say("AUTH PLAIN "+encoded("\x00ann\x00secret"), "454 4.7.0")
}

func TestVerifiersArePostgreSQLs(t *testing.T) {
	t.Parallel()
	// made by: create role ... password 'secret'
	const text = "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA=="
	v, err := receive.NewVerifier("secret", []byte("saltsaltsaltsalt"), 4096)
	if err != nil {
		t.Fatal(err)
	}
	whole := text + "$" + base64.StdEncoding.EncodeToString(v.StoredKey) + ":" + base64.StdEncoding.EncodeToString(v.ServerKey)
	read, err := receive.ParseVerifier(whole)
	if err != nil || !read.Matches("secret") || read.Matches("Secret") || read.Matches("") {
		t.Errorf("read %+v: %v", read, err)
	}
	for _, bad := range []string{
		"", "md5abc", text, text + "$:", "SCRAM-SHA-256$0:c2FsdA==$" + strings.SplitN(whole, "$", 3)[2], "SCRAM-SHA-256$99999999:c2FsdA==$" + strings.SplitN(whole, "$", 3)[2],
		whole + "AAAA", strings.Replace(whole, "4096:", "4096", 1), "SCRAM-SHA-1" + whole[len("SCRAM-SHA-256"):],
	} {
		if _, err := receive.ParseVerifier(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestProxySpeaksForItsClients(t *testing.T) {
	t.Parallel()
	inner, outer := named("inner", "192.0.2.0/24"), named("outer", "0.0.0.0/0")
	inner.IsVerbose = true
	outer.ProxyRanges = prefixes("127.0.0.0/8")
	f := start(t, nil, inner, outer)
	for header, banner := range map[string]string{
		"PROXY TCP4 192.0.2.7 127.0.0.1 4711 25\r\n":                                             "220 inner",
		"PROXY TCP4 198.51.100.7 127.0.0.1 4711 25\r\n":                                          "220 outer",
		"PROXY UNKNOWN\r\n":                                                                      "220 outer",
		"PROXY TCP6 2001:db8::1 ::1 4711 25\r\n":                                                 "closed",
		"PROXY TCP4 192.0.2.999 127.0.0.1 4711 25\r\n":                                           "closed",
		"EHLO client.example.net\r\nMAIL FROM:<a@b>\r\n":                                         "closed",
		"PROXY TCP4 " + strings.Repeat("1", 200) + "\r\n":                                        "closed",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\x12\x67\x00\x19": "220 inner",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00":                                                 "220 outer",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x04\xc0\x00\x02\x07":                                 "closed",
	} {
		c := f.dial()
		c.send(header)
		if got := c.reply(); !strings.HasPrefix(got, banner) && (banner != "closed" || strings.HasPrefix(got, "2")) {
			t.Errorf("%q: the reply is %q, want %q", header, got, banner)
		}
	}
}

// governor refuses some and delays others.
type governor struct{ delay time.Duration }

func (g governor) Pressure(class receive.PeerClass, isOurSender bool) receive.Pressure {
	return receive.Pressure{Delay: g.delay, IsRefused: class == receive.AnonymousPeer && !isOurSender}
}

func TestPressureActsOnSendersByClass(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.Groups = append(connector.Groups, receive.Anonymous)
	c := start(t, func(s *receive.Server) { s.Governor = governor{10 * time.Millisecond} }, connector).greeted()
	c.say("MAIL FROM:<a@example.net>", "452 4.3.1")
	c.say("MAIL FROM:<a@example.com>", "250")
	c.say("RSET", "250")
	c.say("AUTH PLAIN "+encoded("\x00ann\x00secret"), "235")
	c.say("MAIL FROM:<a@example.net>", "250")
}

// The standard library's client is a peer like any other.
func TestNetSMTPSends(t *testing.T) {
	t.Parallel()
	connector := submission()
	connector.TLS = receive.TLSRequired
	f := start(t, nil, connector)
	c, err := smtp.Dial(f.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	require := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	require(c.StartTLS(trusting))
	require(c.Auth(smtp.PlainAuth("", "ann", "secret", "127.0.0.1")))
	require(c.Mail("ann@example.com"))
	require(c.Rcpt("x@example.net"))
	w, err := c.Data()
	require(err)
	_, err = io.WriteString(w, "From: ann@example.com\nSubject: x\n\n.dots\n..\n.\n")
	require(err)
	require(w.Close())
	require(c.Quit())
	if m := f.store.only(t); !strings.HasSuffix(m.text, "\r\n\r\n.dots\r\n..\r\n.\r\n") {
		t.Errorf("taken was %q", m.text)
	}
}
