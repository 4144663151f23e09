package server_test

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"strings"
	"time"
)

// peer speaks SMTP in raw lines.
type peer struct {
	*hub
	conn net.Conn
	in   *bufio.Reader
}

// dial connects to an address as soon as somebody listens there, and says something before the greeting is read.
func (h *hub) dial(address string, first ...string) *peer {
	h.Helper()
	p := &peer{hub: h}
	h.await("a listener on "+address, func() (is bool) {
		var err error
		p.conn, err = new(net.Dialer).DialContext(h.Context(), "tcp", address)
		return err == nil
	})
	h.Cleanup(func() { _ = p.conn.Close() })
	_ = p.conn.SetDeadline(time.Now().Add(time.Minute))
	p.in = bufio.NewReader(p.conn)
	for _, line := range first {
		p.send(line)
	}
	p.expect("", "220")
	p.say("EHLO client.example.net", "250")
	return p
}

func (p *peer) send(line string) {
	p.Helper()
	if _, err := io.WriteString(p.conn, line+"\r\n"); err != nil {
		p.Fatalf("send %.60q: %v", line, err)
	}
}

func (p *peer) expect(to, begin string) (reply string) {
	p.Helper()
	for {
		line, err := p.in.ReadString('\n')
		reply += line
		if err != nil || len(line) < 4 || line[3] != '-' {
			break
		}
	}
	if !strings.HasPrefix(reply, begin) {
		p.Errorf("the reply to %.80q is %q, want %q", to, reply, begin)
	}
	return reply
}

// say sends a line and expects how the reply begins.
func (p *peer) say(line, begin string) string {
	p.Helper()
	p.send(line)
	return p.expect(line, begin)
}

// give sends a message of a sender to Ann, up to the reply behind it.
func (p *peer) give(sender, text, begin string) {
	p.Helper()
	p.say("MAIL FROM:<"+sender+">", "250")
	p.say("RCPT TO:<ann@example.org>", "250")
	p.say("DATA", "354")
	p.say(strings.ReplaceAll(text, "\n", "\r\n")+"\r\n.", begin)
}

// secure goes on over TLS, and gives the first name of the certificate.
func (p *peer) secure(configuration *tls.Config) (name string) {
	p.Helper()
	p.say("STARTTLS", "220")
	configuration.InsecureSkipVerify = true
	secured := tls.Client(p.conn, configuration)
	if err := secured.HandshakeContext(p.Context()); err != nil {
		p.Fatal(err)
	}
	p.conn, p.in = secured, bufio.NewReader(secured)
	p.say("EHLO client.example.net", "250")
	return secured.ConnectionState().PeerCertificates[0].DNSNames[0]
}

func (p *peer) login(user, password, begin string) {
	p.Helper()
	p.say("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00"+user+"\x00"+password)), begin)
}
