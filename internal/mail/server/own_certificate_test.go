package server_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/mailtest"
)

// A certificate whose key is another's makes the mail of its connector wait, and nothing else; a diagnosis says why. It is read anew when
// the mail is tried again, and when its files have changed.
func TestCertificateOfASendConnectorIsReadFromItsFiles(t *testing.T) {
	t.Parallel()
	relayFile, relayKey := mailtest.CertificateFiles(t, "relay.example")
	ownFile, ownKey := mailtest.CertificateFiles(t, "hub.example.org")
	_, otherKey := mailtest.CertificateFiles(t, "other.example.org")
	shown, err := tls.LoadX509KeyPair(relayFile, relayKey)
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(t)
	secured := &relay{secured: &tls.Config{Certificates: []tls.Certificate{shown}, ClientAuth: tls.RequireAnyClientCert}}
	_, port, _ := net.SplitHostPort(secured.serve(t))
	key, err := os.ReadFile(ownKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) {
		if err := os.WriteFile(ownKey, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrong, err := os.ReadFile(otherKey)
	if err != nil {
		t.Fatal(err)
	}
	write(wrong)
	settings := fmt.Sprintf(`{"address_spaces": [{"pattern": "secured.example"}], "routing": "SMART_HOST", "authentication": "EXTERNAL",
		"smart_hosts": [{"host": "[127.0.0.1]", "port": %s}], "certificate_file": %q, "certificate_key_file": %q}`, port, ownFile, ownKey)
	h.exec(`select parley_mail.create_object('send connector', 'secured', $1::jsonb)`, settings)
	h.start()
	h.submit("x@secured.example", "x@c.example")
	h.await("the mail that leaves otherwise", func() bool { return len(h.relayed()) == 1 })
	h.await("why the other waits", func() bool {
		return strings.Contains(h.text(`select coalesce(string_agg(q.last_error, ' '), '') from parley_mail.queues as q where q.status = 'RETRY'`),
			"4.3.5 our certificate cannot be used")
	})
	h.await("the fault, and that the certificate ends soon as well", func() bool {
		found := h.text(`select coalesce(string_agg(f.cause || f.cure, ' '), '') from parley.diagnose_configuration() as f
			where f.code like 'mail-certificate%' and f.object_name = 'secured'`)
		return strings.Contains(found, "is not a certificate and its key that match") && strings.Contains(found, ownFile+" expires at")
	})
	write(key)
	h.exec(`select parley_mail.retry_queue(q.queue) from parley_mail.queues as q where q.status = 'RETRY'`)
	h.await("the mail", func() bool {
		secured.mu.Lock()
		defer secured.mu.Unlock()
		return len(secured.messages) == 1
	})
}
