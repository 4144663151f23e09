package tcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// The secrets of a definition, all PEM: a certificate with those that lead to its authority, its key, and authorities of the other side.
const (
	certificateSecret = "certificate"
	keySecret         = "private_key"
	authoritySecret   = "authority"
)

// certificates read the secrets of TLS, and again after some time: certificates are renewed while connections come and go.
type certificates struct {
	endpoint adapter.Endpoint

	mu     sync.Mutex
	config *tls.Config
	read   time.Time
}

// renewal is how old what was read may be.
const renewal = time.Minute

// configure makes a configuration of TLS of own certificates and of the authorities of the other side.
type configure func(own []tls.Certificate, authorities *x509.CertPool) *tls.Config

// of gives the configuration of TLS that is made of the secrets. One that cannot be made anew stays as it was.
func (c *certificates) of(ctx context.Context, configured configure) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config != nil && time.Since(c.read) < renewal {
		return c.config, nil
	}
	own, authorities, err := c.load(ctx)
	if err != nil {
		if c.config == nil {
			return nil, err
		}
		c.endpoint.Logger.Warn("certificates cannot be read anew, and stay as they were",
			slog.String("endpoint", c.endpoint.Name), slog.Any("error", err))
	} else {
		c.config = configured(own, authorities)
	}
	c.read = time.Now()
	return c.config, nil
}

func (c *certificates) load(ctx context.Context) (own []tls.Certificate, authorities *x509.CertPool, err error) {
	values := map[string]string{}
	for _, name := range []string{certificateSecret, keySecret, authoritySecret} {
		value, found, err := c.endpoint.Secret(ctx, name)
		if err != nil {
			return nil, nil, fmt.Errorf("read the secret %s: %w", name, err)
		}
		switch {
		case found && strings.TrimSpace(value) == "":
			// Without authorities of its own TLS believes those of the system.
			return nil, nil, fmt.Errorf("the secret %s is empty", name)
		case found:
			values[name] = value
		}
	}
	if values[certificateSecret] != "" {
		pair, err := tls.X509KeyPair([]byte(values[certificateSecret]), []byte(values[keySecret]))
		if err != nil {
			return nil, nil, fmt.Errorf("read the secrets %s and %s: %w", certificateSecret, keySecret, err)
		}
		own = append(own, pair)
	}
	if values[authoritySecret] != "" {
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM([]byte(values[authoritySecret])) {
			return nil, nil, errors.New("the secret authority has no certificate in PEM")
		}
	}
	return own, authorities, nil
}
