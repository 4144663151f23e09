package send_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/parley-broker/parley/internal/mail/mailtest"
	"github.com/parley-broker/parley/internal/mail/send"
)

func TestTLSAsThePolicyAsks(t *testing.T) {
	t.Parallel()
	shown := mailtest.Certificate(t, "host.example")
	other := mailtest.Certificate(t, "other.example")
	trusted := x509.NewCertPool()
	trusted.AddCert(shown.Leaf)
	record := func(c *x509.Certificate, usage, selector uint8) *dns.TLSA {
		data := c.Raw
		if selector == 1 {
			data = c.RawSubjectPublicKeyInfo
		}
		return &dns.TLSA{Usage: usage, Selector: selector, MatchingType: 1, Certificate: fmt.Sprintf("%x", sha256.Sum256(data))}
	}
	for _, c := range []struct {
		name      string
		policy    send.TLSPolicy
		offered   bool
		encrypted bool
		refused   bool
		injected  string
		// isOther is whether the host shows a certificate for another name.
		isOther bool
	}{
		{name: "opportunistic encrypts what is offered", offered: true, encrypted: true},
		{name: "opportunistic sends in clear where nothing is offered"},
		{name: "opportunistic falls back when TLS fails", offered: true, injected: "250 injected\r\n"},
		{name: "off does not encrypt", policy: send.TLSPolicy{Mode: send.TLSOff}, offered: true},
		{name: "required encrypts", policy: send.TLSPolicy{Mode: send.TLSRequired}, offered: true, encrypted: true},
		{name: "required refuses to send in clear", policy: send.TLSPolicy{Mode: send.TLSRequired}, refused: true},
		{name: "required refuses what came before TLS", policy: send.TLSPolicy{Mode: send.TLSRequired}, offered: true, injected: "250 x\r\n", refused: true},
		{name: "verified accepts a trusted name", policy: send.TLSPolicy{Mode: send.TLSVerified, RootCAs: trusted}, offered: true, encrypted: true},
		{name: "verified refuses another name", policy: send.TLSPolicy{Mode: send.TLSVerified, RootCAs: trusted, Names: []string{"mail.example"}}, offered: true, refused: true},
		{name: "verified knows names below a domain", policy: send.TLSPolicy{Mode: send.TLSVerified, RootCAs: trusted, Names: []string{"*.example"}}, offered: true, encrypted: true},
		{name: "verified refuses an issuer that is not trusted", policy: send.TLSPolicy{Mode: send.TLSVerified, RootCAs: x509.NewCertPool()}, offered: true, refused: true},
		{name: "DANE accepts the named certificate", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(shown.Leaf, 3, 1)}}, offered: true, encrypted: true},
		{name: "DANE accepts one of several", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(other.Leaf, 3, 0), record(shown.Leaf, 3, 0)}}, offered: true, encrypted: true},
		{name: "DANE accepts what the anchor signed", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(shown.Leaf, 2, 0)}}, offered: true, encrypted: true},
		{name: "DANE refuses a name that the anchor did not sign", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(other.Leaf, 2, 0)}}, offered: true, isOther: true, refused: true},
		{name: "DANE accepts the named certificate whatever its name", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(other.Leaf, 3, 0)}}, offered: true, isOther: true, encrypted: true},
		{name: "DANE refuses another certificate", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(other.Leaf, 3, 1)}}, offered: true, refused: true},
		{name: "DANE refuses uses that mean nothing to mail", policy: send.TLSPolicy{Mode: send.TLSDANE, Records: []*dns.TLSA{record(shown.Leaf, 1, 1)}}, offered: true, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &host{certificate: shown, injected: c.injected}
			if c.isOther {
				h.certificate = other
			}
			if c.offered {
				h.extensions = []string{"STARTTLS"}
			}
			connection, err := open(t, h, func(target *send.Target) { target.TLS = c.policy })
			if c.refused {
				var refused *send.OpenError
				if !errors.As(err, &refused) || refused.Result.Class != send.Deferred || refused.Result.Enhanced != "4.7.5" ||
					!refused.Result.HostFailed {
					t.Fatalf("failed with %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if connection.Encrypted() != c.encrypted {
				t.Errorf("encrypted is %v", connection.Encrypted())
			}
			if got := outcome(connection.Send(context.Background(), letter("x\r\n", "a@b.example"))); got != "delivered 2.0.0" {
				t.Errorf("result is %s", got)
			}
		})
	}
}
