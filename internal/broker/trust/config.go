package trust

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
)

// LinkProtocol is the name of links in the handshake (ALPN): that of HTTP/2, which gRPC speaks.
const LinkProtocol = "h2"

// own gives the certificate of this broker, if it can be used.
func (t *Trust) own() (*identity.Certificate, error) {
	c, err := t.source.Certificate()
	if errors.Is(err, identity.ErrNoCertificate) {
		return nil, refuse(NoCertify, "this broker has no certificate: parley certificate create")
	}
	if err != nil {
		return nil, refuse(NoCertify, "the certificate of this broker cannot be read: %v", err)
	}
	if err := identity.Check(c.Leaf, time.Now()); err != nil {
		return nil, ofDates(err, "the certificate of this broker")
	}
	return c, nil
}

// base holds the settings that both sides of a connection have in common.
func (t *Trust) base() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{LinkProtocol},
		SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := t.own()
			if err != nil {
				return nil, err
			}
			return c.TLS(), nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := t.own()
			if err != nil {
				return nil, err
			}
			return c.TLS(), nil
		},
	}
}

// ServerConfig is for accepting links: TLS 1.3 with a client that has to show a key that is trusted. Connections made with it
// alone are not checked again later; see [Trust.Accept].
func (t *Trust) ServerConfig() *tls.Config {
	config := t.base()
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		return t.judgeNow(t.serving(), state.PeerCertificates, "")
	}
	if t.unknownPeers == nil {
		return config
	}
	open := t.base()
	open.ClientAuth = tls.RequireAnyClientCert
	open.NextProtos = []string{t.unknownPeers.Protocol()}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		isAsked := slices.Contains(hello.SupportedProtos, t.unknownPeers.Protocol())
		if isAsked && t.unknownPeers.IsOpen(hello.Context(), hello.Conn.RemoteAddr()) {
			return open, nil
		}
		return nil, nil
	}
	return config
}

// ClientConfig is for opening a link to an address, host:port; see [Trust.Connect].
func (t *Trust) ClientConfig(address string) *tls.Config {
	config := t.base()
	// Keys are trusted, not names: judge takes the place of the usual verification.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		return t.judgeNow(context.WithoutCancel(t.serving()), state.PeerCertificates, normal(address))
	}
	return config
}
