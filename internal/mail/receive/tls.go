package receive

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// handshakeTimeout bounds the handshake of TLS.
const handshakeTimeout = 30 * time.Second

// offersTLS reports whether STARTTLS is offered now.
func (w *wire) offersTLS() bool {
	c := w.connection
	return c.tls == nil && c.connector.TLS != TLSOff && c.certificate() != nil
}

// needsTLS reports whether the peer must say STARTTLS before anything else.
func (c *connection) needsTLS() bool {
	return c.tls == nil && (c.connector.TLS == TLSRequired || c.connector.TLS == TLSMutual)
}

// startTLS answers STARTTLS. Bytes that the peer sent ahead in the clear are dropped with the wire: they may be from somebody between us.
func (w *wire) startTLS(argument string) {
	c := w.connection
	switch {
	case argument != "":
		w.reply(NewReply(501, 5, 4, "STARTTLS has no parameters"))
		return
	case !w.offersTLS():
		w.reply(NewReply(502, 5, 1, "TLS is not offered here, or has begun already"))
		return
	}
	w.finish(220, []byte("220 2.0.0 Ready to start TLS\r\n"))
	w.flush()
	if w.isOver() {
		return
	}
	if !c.handshake() {
		w.state.CompareAndSwap(stateOpen, stateOver)
		return
	}
	c.isSilent = true
	w.state.CompareAndSwap(stateOpen, stateHanded)
	c.server.announce(c.ctx, c, TLSStarted)
}

// certificate is the function that chooses the certificate of a handshake, or nil where there is none.
func (c *connection) certificate() func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.connector.Certificate != nil {
		return c.connector.Certificate
	}
	return c.server.Certificate
}

// handshake puts TLS on the socket.
func (c *connection) handshake() bool {
	if c.certificate() == nil {
		c.server.Log.Error("a connector that begins with TLS has no certificate", "connector", c.connector.Name)
		return false
	}
	configuration := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.certificate()}
	if c.connector.TLS == TLSMutual || len(c.connector.TLSDomains) > 0 {
		configuration.ClientAuth = tls.VerifyClientCertIfGiven
		if c.connector.ClientCAs != nil {
			configuration.ClientCAs = c.connector.ClientCAs
		} else if c.server.ClientCAs != nil {
			configuration.ClientCAs = c.server.ClientCAs(c.connector.Name).ClientCAs
		}
	}
	secured := tls.Server(c.socket, configuration)
	_ = c.socket.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := secured.HandshakeContext(c.ctx); err != nil {
		c.server.Log.Info("a TLS handshake failed", slog.Any("error", err), c.attribute())
		return false
	}
	_ = c.socket.SetDeadline(time.Time{})
	c.server.counters.Encrypted.Add(1)
	state := secured.ConnectionState()
	c.mu.Lock()
	c.socket, c.tls = secured, &state
	c.mu.Unlock()
	return true
}

// tlsText gives version and cipher of TLS, or nothing.
func (c *connection) tlsText() string {
	if c.tls == nil {
		return ""
	}
	return strings.ReplaceAll(tls.VersionName(c.tls.Version), " ", "") + " " + tls.CipherSuiteName(c.tls.CipherSuite)
}

// isPartner reports whether the peer has a certificate, which was verified in the handshake, for a domain of the connector.
func (c *connection) isPartner() bool {
	if c.tls == nil || len(c.tls.VerifiedChains) == 0 {
		return false
	}
	leaf := c.tls.PeerCertificates[0]
	return slices.ContainsFunc(c.connector.TLSDomains, func(pattern string) bool {
		return slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return matchesDomain(pattern, strings.TrimPrefix(name, "*.")) })
	})
}
