package console

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
)

// Listening says where a console is served and how browsers reach it. Errors name flags, to which Prefix is added.
type Listening struct {
	Address           string // host and port
	CertFile, KeyFile string // PEM; both or none
	IsBehindProxy     bool   // a proxy in front of it speaks TLS with browsers
	ReadOnly          bool
	Prefix            string // of the flags' names, such as "console-"
	certificate       *tls.Certificate
}

// Validate finds what cannot be meant, and reads the certificate. Passwords of roles go through the console, so it listens for other
// machines only where TLS protects them.
func (l *Listening) Validate() error {
	if (l.CertFile == "") != (l.KeyFile == "") {
		return fmt.Errorf("give --%scert and --%skey, or neither", l.Prefix, l.Prefix)
	}
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return fmt.Errorf("the address of the console is a host and a port, such as 127.0.0.1:7440: %w", err)
	}
	if l.CertFile == "" && !l.IsBehindProxy && !isLoopback(host) {
		return fmt.Errorf("%s is reached from other machines, and passwords of roles go through the console: give --%scert and --%skey, "+
			"or --%sbehind-proxy where a proxy speaks TLS", l.Address, l.Prefix, l.Prefix, l.Prefix)
	}
	if l.CertFile == "" {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(l.CertFile, l.KeyFile)
	if err != nil {
		return fmt.Errorf("read the certificate of the console: %w", err)
	}
	l.certificate = &certificate
	return nil
}

// IsSecure reports whether browsers reach the console by TLS.
func (l *Listening) IsSecure() bool { return l.CertFile != "" || l.IsBehindProxy }

// Certificate gives the certificate that Validate has read; nil for none.
func (l *Listening) Certificate() *tls.Certificate { return l.certificate }

// Open listens.
func (l *Listening) Open(ctx context.Context) (net.Listener, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the console: %w", err)
	}
	return listener, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
