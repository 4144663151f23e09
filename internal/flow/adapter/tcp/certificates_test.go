package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
)

// authority signs certificates for tests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.certificate, a.key, a.pem, _ = a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, string, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.Subject.CommonName == "" {
		c.Subject = pkix.Name{CommonName: "test"}
	}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, parentKey := a.certificate, a.key
	if parent == nil {
		parent, parentKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return made, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes}))
}

func TestConnectionsAreSecured(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	_, _, server, serverKey := ours.sign(t, &x509.Certificate{DNSNames: []string{"erp.example"}})
	_, _, client, clientKey := ours.sign(t, &x509.Certificate{})
	_, _, other, otherKey := theirs.sign(t, &x509.Certificate{})
	in := &adaptertest.Intake{}
	secrets := map[string]string{"certificate": server, "private_key": serverKey, "authority": ours.pem}
	address, _ := serve(t, in, `{"tls": true, "client_certificates": true}`, secrets)
	taken := 0
	for name, c := range map[string]struct {
		settings string
		secrets  map[string]string
		isTaken  bool
	}{
		"as it should be":          {`{"tls": true, "server_name": "erp.example"}`, map[string]string{"authority": ours.pem, "certificate": client, "private_key": clientKey}, true},
		"another name":             {`{"tls": true}`, map[string]string{"authority": ours.pem, "certificate": client, "private_key": clientKey}, false},
		"another authority":        {`{"tls": true, "server_name": "erp.example"}`, map[string]string{"authority": theirs.pem, "certificate": client, "private_key": clientKey}, false},
		"without a certificate":    {`{"tls": true, "server_name": "erp.example"}`, map[string]string{"authority": ours.pem}, false},
		"a certificate of others":  {`{"tls": true, "server_name": "erp.example"}`, map[string]string{"authority": ours.pem, "certificate": other, "private_key": otherKey}, false},
		"without TLS":              {`{}`, nil, false},
		"a certificate that is no": {`{"tls": true}`, map[string]string{"authority": "x"}, false},
	} {
		taken++
		got := codes(port(t, address, c.settings, c.secrets).Send(t.Context(), messages(taken, 1)))
		if c.isTaken != (got == nil) {
			t.Errorf("%s: the failures are %q", name, got)
		}
		if !c.isTaken && !slices.Contains([]string{"send.unreachable, unreachable", "send.transport"}, got[0]) {
			t.Errorf("%s: the failure is %q", name, got[0])
		}
	}
	if got := in.Bodies(); len(got) != 1 {
		t.Errorf("taken are %q", got)
	}
}

// An empty secret would let in, or be sent to, whoever has a certificate of any public authority.
func TestAnEmptyAuthorityIsNone(t *testing.T) {
	t.Parallel()
	_, _, own, ownKey := newAuthority(t).sign(t, &x509.Certificate{})
	for _, empty := range []string{"authority", "certificate", "private_key"} {
		secrets := map[string]string{"certificate": own, "private_key": ownKey, "authority": own}
		secrets[empty] = ""
		c := &certificates{endpoint: adapter.Endpoint{Secret: secretsOf(secrets)}}
		if _, _, err := c.load(t.Context()); err == nil || !strings.Contains(err.Error(), empty) {
			t.Errorf("with an empty %s: %v", empty, err)
		}
	}
}

// A client that uses the key of another one does not have its message taken for that of the other; a certificate that is renewed is that of
// the same client.
func TestAClientHasKeysOfItsOwn(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	_, _, server, serverKey := ours.sign(t, &x509.Certificate{DNSNames: []string{"erp.example"}})
	in := &adaptertest.Intake{}
	address, _ := serve(t, in, `{"tls": true, "client_certificates": true}`,
		map[string]string{"certificate": server, "private_key": serverKey, "authority": ours.pem})
	for n, client := range []string{"north", "south", "north", "south"} {
		_, _, certificate, key := ours.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: client}})
		got := codes(port(t, address, `{"tls": true, "server_name": "erp.example"}`,
			map[string]string{"authority": ours.pem, "certificate": certificate, "private_key": key}).Send(t.Context(), messages(1, 1)))
		if taken := len(in.Bodies()); got != nil || taken != min(n+1, 2) {
			t.Errorf("%d, of %s: the failures are %q, taken are %d", n, client, got, taken)
		}
	}
}
