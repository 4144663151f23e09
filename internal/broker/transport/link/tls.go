package link

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
)

// http2 is how TLS calls the protocol on top of it.
const http2 = "h2"

// Fingerprint names a key: the SHA-256 of the certificate's SubjectPublicKeyInfo, as 64 lower-case hexadecimal digits. It stays the
// same when a certificate is renewed for the same key.
func Fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// Security makes TLS of sockets: 1.3, HTTP/2, certificates at both ends. It is safe for concurrent use.
type Security interface {
	// Connect is for the dialling end; address is host:port.
	Connect(ctx context.Context, raw net.Conn, address string) (net.Conn, tls.ConnectionState, error)
	// Accept is for the accepting end. [credentials.ErrConnDispatched] means that another protocol has taken the connection.
	Accept(ctx context.Context, raw net.Conn) (net.Conn, tls.ConnectionState, error)
}

// certificates is security by settings of TLS alone.
type certificates struct{ config *tls.Config }

func (c certificates) Connect(ctx context.Context, raw net.Conn, address string) (net.Conn, tls.ConnectionState, error) {
	settings, err := clientTLS(c.config, address)
	if err != nil {
		return nil, tls.ConnectionState{}, err
	}
	secured := tls.Client(raw, settings)
	err = secured.HandshakeContext(ctx)
	return secured, secured.ConnectionState(), err
}

func (c certificates) Accept(ctx context.Context, raw net.Conn) (net.Conn, tls.ConnectionState, error) {
	secured := tls.Server(raw, serverTLS(c.config))
	err := secured.HandshakeContext(ctx)
	return secured, secured.ConnectionState(), err
}

// clientTLS holds the settings of the dialling end to the rules.
func clientTLS(config *tls.Config, address string) (*tls.Config, error) {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS13
	config.NextProtos = []string{http2}
	if len(config.Certificates) == 0 && config.GetClientCertificate == nil {
		return nil, errors.New("TLS of a link needs a certificate at both ends")
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}
	config.ClientSessionCache = nil
	return config, nil
}

// serverTLS holds the settings of the accepting end to the rules. Sessions are not resumed: each connection proves its key anew, so
// that a peer whose key was revoked is out with its next connection.
func serverTLS(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS13
	config.SessionTicketsDisabled = true
	if !slices.Contains(config.NextProtos, http2) {
		config.NextProtos = []string{http2}
	}
	if config.ClientAuth < tls.RequireAnyClientCert {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if choose := config.GetConfigForClient; choose != nil {
		config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			if chosen == nil || err != nil {
				return nil, err
			}
			chosen = chosen.Clone()
			chosen.GetConfigForClient = nil
			return serverTLS(chosen), nil
		}
	}
	return config
}

// accepted describes to a stream the socket it came on.
type accepted struct {
	credentials.CommonAuthInfo

	socket *socket
	tls    *tls.ConnectionState
}

// AuthType is asked for by gRPC.
func (accepted) AuthType() string { return "parley" }

// acceptor secures the sockets that the server accepts, if that is wanted.
type acceptor struct {
	security Security
	timeout  time.Duration
}

var errNotAccepting = errors.New("these credentials accept connections")

func (a acceptor) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errNotAccepting
}

// ServerHandshake is called by gRPC for each socket.
func (a acceptor) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	s, ok := conn.(*socket)
	if !ok {
		return nil, nil, fmt.Errorf("accepted a %T", conn)
	}
	info := accepted{socket: s}
	if a.security == nil {
		info.SecurityLevel = credentials.NoSecurity
		return conn, info, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.timeout)
	defer cancel()
	secured, state, err := a.security.Accept(ctx, conn)
	switch {
	case errors.Is(err, credentials.ErrConnDispatched):
		s.dispatch()
		return nil, nil, credentials.ErrConnDispatched // which gRPC knows by identity
	case err != nil:
		return nil, nil, fmt.Errorf("TLS: %w", err)
	case len(state.PeerCertificates) == 0 || state.NegotiatedProtocol != http2:
		return nil, nil, errors.New("TLS: the peer gave no certificate, or does not speak HTTP/2")
	}
	info.SecurityLevel = credentials.PrivacyAndIntegrity
	info.tls = &state
	return secured, info, nil
}

func (a acceptor) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (a acceptor) Clone() credentials.TransportCredentials { return a }

// OverrideServerName is asked for by gRPC.
func (a acceptor) OverrideServerName(string) error { return nil }

// encryption names the protection of a connection.
func encryption(state *tls.ConnectionState) (authentication, algorithm, identity string) {
	if state == nil {
		return "NONE", "NONE", ""
	}
	return "CERTIFICATE", tls.CipherSuiteName(state.CipherSuite), Fingerprint(state.PeerCertificates[0])
}

// vouchedName is the name in a certificate for which an authority vouches; "" when none does, or it has none.
func vouchedName(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return ""
	}
	leaf := state.PeerCertificates[0]
	name := leaf.Subject.CommonName
	if len(leaf.DNSNames) > 0 {
		name = strings.ToLower(leaf.DNSNames[0])
	}
	// A name for which no database has a text is none.
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "\uFFFD")
}
