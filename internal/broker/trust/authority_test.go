package trust_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/broker/trust"
)

// authority is a certificate authority as a company has one.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(time.Hour),
	})
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return c, key
}

// files hands out a certificate for a host as files, with the certificate of an authority. It is good for both ends of a connection, or for
// those that are named.
func (a *authority) files(host string, notAfter time.Time, trusted *authority, usage ...x509.ExtKeyUsage) *identity.Files {
	a.t.Helper()
	if len(usage) == 0 {
		usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, KeyUsage: x509.KeyUsageDigitalSignature, NotAfter: notAfter,
		ExtKeyUsage: usage, DNSNames: []string{host},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	c, key := a.sign(template)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	folder := a.t.TempDir()
	var names [3]string
	for i, block := range []*pem.Block{
		{Type: "CERTIFICATE", Bytes: c.Raw}, {Type: "PRIVATE KEY", Bytes: raw}, {Type: "CERTIFICATE", Bytes: trusted.cert.Raw},
	} {
		names[i] = filepath.Join(folder, []string{"broker.crt", "broker.key", "ca.crt"}[i])
		if err := os.WriteFile(names[i], pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	files, err := identity.OpenFiles(names[0], names[1], names[2])
	if err != nil {
		a.t.Fatal(err)
	}
	return files
}

func withFiles(files *identity.Files) func(*trust.Config) {
	return func(c *trust.Config) { c.Source, c.Authorities = files, files.Authorities }
}

// With an authority nobody has to be in a list; who is in it as revoked stays outside.
func TestAuthorityVouchesForPeers(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	soon := time.Now().Add(time.Hour)
	b := newBroker(t, "b", withFiles(ours.files("127.0.0.1", soon, ours)))
	a := newBroker(t, "a", withFiles(ours.files("a.example", soon, ours)))
	m := a.meet(b)
	m.requireOpen(t)

	m = b.meet(a) // which shows a certificate for another host than the one that was called
	requireRefusal(t, m.clientErr, trust.Unknown)

	outsider := newBroker(t, "outsider", withFiles(theirs.files("a.example", soon, ours)))
	m = outsider.meet(b)
	requireRefusal(t, m.serverErr, trust.Unknown)
	m = newBroker(t, "old", withFiles(ours.files("a.example", time.Now().Add(-time.Minute), ours))).meet(b)
	requireRefusal(t, m.clientErr, trust.Expired)

	// A list counts beside the authority.
	files := ours.files("a.example", soon, ours)
	c, err := files.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	revoked := newBroker(t, "revoked", withFiles(files))
	b.exec("select parley.trust_peer($1, 'revoked')", c.Fingerprint.String())
	m = revoked.meet(b)
	m.requireOpen(t)
	b.exec("select parley.revoke_peer('revoked')")
	m = revoked.meet(b)
	requireRefusal(t, m.serverErr, trust.NotPermitted)

	self := newBroker(t, "self", func(c *trust.Config) { c.Authorities = files.Authorities })
	m = self.meet(b)
	requireRefusal(t, m.serverErr, trust.Unknown)
	b.trusts(self)
	m = self.meet(b)
	m.requireOpen(t)
}

// The name in a certificate identifies a caller that only an authority vouches for; keys under that name may change.
func TestWhoIsLetInByAnAuthorityAloneIsNoPeer(t *testing.T) {
	t.Parallel()
	company := newAuthority(t)
	caller, listed := company.files("caller.test", time.Now().Add(time.Hour), company), company.files("listed.test", time.Now().Add(time.Hour), company)
	called := company.files("called.test", time.Now().Add(time.Hour), company)
	b := newBroker(t, "b", func(c *trust.Config) { c.Source, c.Authorities = called, called.Authorities })
	known, err := listed.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	b.exec("select parley.trust_peer($1, 'listed')", known.Fingerprint.String())
	for files, isAlone := range map[*identity.Files]bool{caller: true, listed: false} {
		c, err := files.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		t.Cleanup(func() { _, _ = near.Close(), far.Close() })
		go func() {
			_ = tls.Client(near, &tls.Config{
				InsecureSkipVerify: true, NextProtos: []string{trust.LinkProtocol}, Certificates: []tls.Certificate{*c.TLS()},
			}).HandshakeContext(t.Context())
		}()
		conn, state, err := b.trust.Accept(t.Context(), far)
		if err != nil {
			t.Fatal(err)
		}
		_ = near.Close() // at once: to close a link of TLS waits until the other end has read it
		_ = conn.Close()
		if got := len(state.VerifiedChains) > 0; got != isAlone {
			t.Errorf("%s is let in by an authority alone: %v, want %v", c.Leaf.Subject.CommonName, got, isAlone)
		}
	}
}

// A company's authority signs for mail and web sites too: a certificate counts for the end of a connection that it was made for.
func TestAuthorityVouchesForTheEndThatACertificateWasMadeFor(t *testing.T) {
	t.Parallel()
	company := newAuthority(t)
	soon := time.Now().Add(time.Hour)
	const client, server, mail = x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageEmailProtection
	both := newBroker(t, "both", withFiles(company.files("127.0.0.1", soon, company)))
	for _, test := range []struct {
		name               string
		usage              x509.ExtKeyUsage
		mayCall, mayAnswer bool
	}{
		{"client", client, true, false},
		{"server", server, false, true},
		{"mail", mail, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, test.name, withFiles(company.files("127.0.0.1", soon, company, test.usage)))
			m := b.meet(both)
			if test.mayCall {
				m.requireOpen(t)
			} else {
				requireRefusal(t, m.serverErr, trust.Unknown)
			}
			m = both.meet(b)
			if test.mayAnswer {
				m.requireOpen(t)
			} else {
				requireRefusal(t, m.clientErr, trust.Unknown)
			}
		})
	}
}
