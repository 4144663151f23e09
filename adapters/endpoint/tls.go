package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/flow/adapter"
)

// The secrets of TLS, each in PEM.
const (
	AuthoritySecret   = "authority"
	CertificateSecret = "certificate"
	KeySecret         = "private_key"
)

// CheckTLS gives what is wrong with the secrets of TLS among those that are given.
func CheckTLS(isTLS bool, given []string) []adapter.Problem {
	var problems []adapter.Problem
	has := func(name string) bool { return slices.Contains(given, name) }
	if !isTLS && (has(AuthoritySecret) || has(CertificateSecret) || has(KeySecret)) {
		problems = append(problems, Wrong("secrets of TLS are given, and the address is one without TLS",
			"Write an address with TLS, or leave these secrets out.", "secrets")...)
	}
	if has(CertificateSecret) != has(KeySecret) {
		problems = append(problems, Wrong("a certificate and its private key go together",
			"Give the secrets certificate and private_key, or neither.", "secrets")...)
	}
	return problems
}

// TLS gives the configuration of a connection to a host. Without the secret authority it believes the authorities of the system.
func TLS(ctx context.Context, e adapter.Endpoint, host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	authority, isKnown, err := Secret(ctx, e, AuthoritySecret)
	if err != nil {
		return nil, err
	}
	if isKnown {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(authority)) {
			return nil, errors.New("the secret authority has no certificate in PEM")
		}
	}
	certificate, isOwn, err := Secret(ctx, e, CertificateSecret)
	if err != nil || !isOwn {
		return config, err
	}
	key, _, err := Secret(ctx, e, KeySecret)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("read the secrets certificate and private_key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// Secret reads a secret of an endpoint. One that is there and empty is an error: it would be taken for none.
func Secret(ctx context.Context, e adapter.Endpoint, name string) (value string, found bool, err error) {
	if e.Secret == nil {
		return "", false, nil
	}
	value, found, err = e.Secret(ctx, name)
	if err != nil {
		return "", false, fmt.Errorf("read the secret %s: %w", name, err)
	}
	if found && strings.TrimSpace(value) == "" {
		return "", false, fmt.Errorf("the secret %s is empty", name)
	}
	return value, found, nil
}
