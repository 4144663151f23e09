package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// location takes in the requests of a path.
type location struct {
	adapter.Endpoint

	shared   *listeners
	url      *url.URL
	settings receiveSettings
	secrets  *secrets
	sender   authenticator
	places   chan struct{} // one for each request under way

	mu    sync.Mutex
	pair  *tls.Certificate
	until time.Time // when the certificate is read again

	describing   sync.Mutex
	definitions  definitions
	definedUntil time.Time // when the host is asked for the definitions again
}

func newLocation(e adapter.Endpoint, shared *listeners) (*location, error) {
	u, settings, problems := readReceive(e.Address, e.Settings, anySecret)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	l := &location{
		Endpoint: e, shared: shared, url: u, settings: settings, secrets: newSecrets(e), places: make(chan struct{}, settings.MaxRequests),
	}
	l.sender = authenticator{settings: &l.settings, secrets: l.secrets, now: time.Now}
	return l, nil
}

// Run takes in until ctx ends, and answers what is in hand then.
func (l *location) Run(ctx context.Context, in adapter.Intake) error {
	address := hostPort(l.url)
	if err := l.Permission.CheckListen(address); err != nil {
		return err
	}
	if l.url.Scheme == "https" {
		// A certificate that cannot be read is an error of the location, and not of each client.
		if _, err := l.certificate(ctx); err != nil {
			return err
		}
	}
	// A client that goes away, and the end of ctx, undo nothing of what is published at that time.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	l.Logger.Debug("taking requests", "location", l.Name, "address", address, "path", l.url.Path)
	r := &route{location: l.Name, serve: l.handler(work, in), certificate: l.certificate}
	if l.settings.OpenAPI != shownToNobody {
		r.describe = l.describe
	}
	joined, err := l.shared.join(ctx, address, l.url.Path, l.url.Scheme == "https", r, l.Logger)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-joined.failed:
	}
	draining, cancel := context.WithTimeout(work, time.Duration(l.settings.DrainTimeout))
	defer cancel()
	l.shared.leave(draining, joined, l.url.Path)
	if ctx.Err() == nil {
		return fmt.Errorf("take requests at %s: %w", address, joined.err)
	}
	return nil
}

// certificate gives the certificate of the location, which may be renewed meanwhile.
func (l *location) certificate(ctx context.Context) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pair != nil && time.Now().Before(l.until) {
		return l.pair, nil
	}
	certificate, err := l.secrets.get(ctx, secretCertificate)
	if err != nil {
		return nil, err
	}
	key, err := l.secrets.get(ctx, secretKeyOfTLS)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of location %q: %w", l.Name, err)
	}
	l.pair, l.until = &pair, time.Now().Add(time.Minute)
	return l.pair, nil
}
