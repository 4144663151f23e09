package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
	"github.com/parley-broker/parley/parleytest"
)

// newCertificate makes a certificate that signs itself, and its key.
func newCertificate(t *testing.T, name string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}

func withSecrets(e adapter.Endpoint, values map[string]string) adapter.Endpoint {
	e.Secret = func(_ context.Context, name string) (string, bool, error) {
		value, ok := values[name]
		return value, ok, nil
	}
	return e
}

func TestALocationAndAPortSpeakOverTLS(t *testing.T) {
	t.Parallel()
	certificate, key := newCertificate(t, "orders.example")
	kind, address, in := web.New(), "https://"+free(t)+"/orders", &adaptertest.Intake{}
	e, _ := endpoint(t, address, open)
	receiver, err := kind.NewReceiver(withSecrets(e, map[string]string{"certificate": certificate, "private_key": key}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- receiver.Run(ctx, in) }()
	e, _ = endpoint(t, address, `{"authorities": true}`)
	trusting, err := kind.NewSender(withSecrets(e, map[string]string{"authorities": certificate}))
	if err != nil {
		t.Fatal(err)
	}
	defer trusting.Close()
	parleytest.Until(t, "the message arrives", func() bool { return sendOne(t, trusting, message(1, "x")).Err == nil })
	if got := in.Bodies(); len(got) != 1 {
		t.Errorf("taken were %q", got)
	}
	f := failure(t, sendOne(t, newSender(t, address, `{}`), message(2, "x")))
	if !f.Unreachable && f.Code != "send.transport" || f.Permanent || len(in.Bodies()) != 1 {
		t.Errorf("an address whose certificate nobody knows gave %v", f)
	}
	cancel()
	if err := parleytest.Receive(t, ended, "the end of the location"); err != nil {
		t.Error(err)
	}
}

func TestAPortShowsItsCertificate(t *testing.T) {
	t.Parallel()
	certificate, key := newCertificate(t, "shop.example")
	names := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	authorities := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	e, _ := endpoint(t, server.URL, `{"authorities": true, "client_certificate": true}`)
	s, err := web.New().NewSender(withSecrets(e, map[string]string{
		"authorities": authorities, "certificate": certificate, "private_key": key,
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if d := sendOne(t, s, message(1, "x")); d.Err != nil {
		t.Fatal(d.Err)
	}
	if name := parleytest.Receive(t, names, "the request"); name != "shop.example" {
		t.Errorf("the port is %s", name)
	}
}

func TestALocationWithoutACertificateSaysSo(t *testing.T) {
	t.Parallel()
	e, _ := endpoint(t, "https://"+free(t)+"/orders", open)
	receiver, err := web.New().NewReceiver(withSecrets(e, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Run(t.Context(), &adaptertest.Intake{}); err == nil {
		t.Error("the location ended without an error")
	}
}
