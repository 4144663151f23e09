package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// The checks that users and partners meet: TLS, authentication, rights of senders, limits, recipients that do not exist.
func TestUsersAndPartnersSubmitOverTLS(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	log := &logtest.Log{}
	h.logger = log.Logger(slog.LevelInfo)
	submission, partner := mailtest.FreeAddress(t), mailtest.FreeAddress(t)
	certificateFile, keyFile := mailtest.CertificateFiles(t, "hub.example.org")
	otherFile, otherKey := mailtest.CertificateFiles(t, "partners.example.org")
	clientFile, clientKey := mailtest.CertificateFiles(t, "mail.partner.example")
	role := "mail_" + strings.ReplaceAll(h.text(`select current_database()`), "-", "_")
	h.exec(fmt.Sprintf(`create role %[1]s login password 'r0le'; create role %[1]s_other login password 'r0le'`, role))
	h.exec(`select parley_mail.grant_right('SEND', $1)`, role)
	t.Cleanup(func() {
		if _, err := h.pool.Exec(context.Background(), fmt.Sprintf(`drop role %[1]s; drop role %[1]s_other`, role)); err != nil {
			t.Error(err)
		}
	})
	h.exec(`select parley_mail.apply($1::jsonb)`, fmt.Sprintf(`{
		"organization": {"organization": {"max_send_size": "1 MB", "max_recipients": 3}},
		"mailbox": {"ann@example.org": {"max_send_size": 200000, "max_recipients": 2}, "bob@example.org": {"store": "local", "max_receive_size": 5000}},
		"credential": {"ann": {"password": "secret", "allowed_senders": ["ann@example.org", "shop.example.org"]}, "bob": {"password": "secret", "message_rate": 2},
			"clerk": {"role": %[7]q}, "eve": {"role": "%[8]s"}},
		"receive connector": {
			"submission": {"usage": "CLIENT", "bindings": [%[1]q], "certificate_file": %[3]q, "certificate_key_file": %[4]q, "tarpit": 0,
				"protocol_log": "VERBOSE", "message_rate": 0, "max_protocol_errors": 0, "banner": "for users"},
			"partner": {"usage": "PARTNER", "bindings": [%[2]q], "tls_domains": ["*.partner.example"], "tarpit": 0,
				"certificate_file": %[5]q, "certificate_key_file": %[6]q, "client_ca_file": %[9]q}}
	}`, submission, partner, certificateFile, keyFile, otherFile, otherKey, role, role+"_other", clientFile))
	h.start()

	t.Run("required TLS, and the certificate by name, then by connector", func(t *testing.T) {
		p := h.dial(submission)
		p.say("MAIL FROM:<ann@example.org>", "530 5.7.0")
		p.say("AUTH PLAIN AGFubgBzZWNyZXQ=", "530 5.7.0")
		if name := p.secure(&tls.Config{}); name != "hub.example.org" {
			t.Errorf("without a name the certificate is that of %s", name)
		}
		p.say("MAIL FROM:<ann@example.org>", "530 5.7.0 Authenticate")
		if name := h.dial(submission).secure(&tls.Config{ServerName: "partners.example.org"}); name != "partners.example.org" {
			t.Errorf("for another name the certificate is that of %s", name)
		}
	})
	t.Run("rows and roles", func(t *testing.T) {
		for user, attempt := range map[string][2]string{
			"ann": {"secret", "235"}, "bob": {"wrong", "535"}, "clerk": {"r0le", "235"}, "eve": {"r0le", "535"}, "nobody": {"secret", "535"},
		} {
			p := h.dial(submission)
			p.secure(&tls.Config{})
			p.login(user, attempt[0], attempt[1])
		}
		p := h.dial(submission)
		p.secure(&tls.Config{})
		p.login("clerk", "wrong", "535")
		if strings.Contains(log.String(), "AGFubgBzZWNyZXQ") || !strings.Contains(log.String(), "EHLO client.example.net") {
			t.Error("the protocol log has a password, or no protocol")
		}
	})
	ann := h.dial(submission)
	ann.secure(&tls.Config{})
	ann.login("ann", "secret", "235")
	t.Run("allowed senders", func(*testing.T) {
		ann.say("MAIL FROM:<bob@example.org>", "550 5.7.1 You may not send")
		ann.say("MAIL FROM:<ann@other.example>", "550 5.7.1")
		ann.give("ann@example.org", "From: bob@example.org\n\nhello", "550 5.7.1 You may not send")
		ann.give("ann@example.org", "Subject: no author\n\nhello", "550 5.7.1")
		ann.give("ann@example.org", "From: ann@example.org\n\nhello", "250 2.6.0")
	})
	t.Run("limits of organization, sender and recipient", func(*testing.T) {
		if hello := ann.say("EHLO client.example.net", "250"); !strings.Contains(hello, "SIZE 1048576") {
			t.Errorf("the size of the organization is not announced: %s", hello)
		}
		ann.say("MAIL FROM:<ann@example.org> SIZE=2000000", "552 5.3.4")
		ann.say("MAIL FROM:<ann@example.org> SIZE=300000", "552 5.3.4")
		ann.say("MAIL FROM:<ann@example.org> SIZE=100000", "250")
		ann.say("RCPT TO:<bob@example.org>", "552 5.2.3")
		ann.say("RCPT TO:<a@c.example.com>", "250") // an address space names it
		ann.say("RCPT TO:<ann@example.org>", "250")
		ann.say("RCPT TO:<orders@example.org>", "550 5.5.3")
		ann.say("RSET", "250")
		bob := h.dial(submission)
		bob.secure(&tls.Config{})
		bob.login("bob", "secret", "235")
		for _, begin := range []string{"250", "250", "450 4.7.1"} {
			bob.say("MAIL FROM:<bob@example.org>", begin)
			bob.say("RSET", "250")
		}
	})
	t.Run("recipients that cannot exist", func(*testing.T) {
		ann.say("MAIL FROM:<ann@example.org>", "250")
		ann.say("RCPT TO:<carl@example.org>", "550 5.1.1")
		ann.say("RCPT TO:<x@y.test>", "550 5.1.4")
		ann.say("RCPT TO:<x@word>", "550 5.1.6")
		h.exec(`select parley_mail.create_object('mailbox', 'carl@example.org', '{"store": "local"}')`)
		h.await("the new mailbox", func() bool {
			ann.send("RCPT TO:<carl@example.org>")
			return strings.HasPrefix(ann.expect("RCPT TO", ""), "250")
		})
		ann.say("RSET", "250")
	})
	t.Run("mutual TLS", func(*testing.T) {
		p := h.dial(partner)
		p.secure(&tls.Config{})
		p.say("MAIL FROM:<x@partner.example>", "550 5.7.1")
		pair, err := tls.LoadX509KeyPair(clientFile, clientKey)
		if err != nil {
			t.Fatal(err)
		}
		p = h.dial(partner)
		p.secure(&tls.Config{Certificates: []tls.Certificate{pair}})
		p.give("x@partner.example", "Subject: x\n\nx", "250 2.6.0")
		p.say("MAIL FROM:<x@partner.example>", "250")
		for _, begin := range []string{"250", "250", "250", "550 5.5.3"} { // the organization allows fewer than the connector
			p.say("RCPT TO:<bob@example.org>", begin)
		}
	})
	t.Run("bindings and limits of the node that change", func(*testing.T) {
		next := mailtest.FreeAddress(t)
		h.exec(`select parley_mail.apply(jsonb_build_object('organization', '{"organization": {"connection_rate_per_node": 1}}'::jsonb,
			'receive connector', jsonb_build_object('submission', jsonb_build_object('bindings', jsonb_build_array($1::text)))))`, next)
		h.dial(next).say("QUIT", "221")
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", next)
		if err != nil {
			t.Fatal(err)
		}
		refusal, _ := io.ReadAll(conn)
		_ = conn.Close()
		if !strings.HasPrefix(string(refusal), "421 4.3.2 ") {
			t.Errorf("beyond the rate of the node a connection gets %q", refusal)
		}
		h.await("the end of the old binding", func() bool {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", submission)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
		ann.say("NOOP", "250")
	})
}
