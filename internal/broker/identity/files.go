package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/ownpath"
)

// Files are a certificate, its key, and the authorities that vouch for peers, as a certificate authority hands them out: PEM. They are
// read again when they change.
type Files struct {
	certificate, key, authorities string

	mu       sync.Mutex
	current  *Certificate
	pool     *x509.CertPool
	versions [3]version
}

// version reports whether a file has changed.
type version struct {
	size    int64
	changed time.Time
}

// OpenFiles names the files and reads them once. The authorities may be "", then only peers that a database knows are trusted.
func OpenFiles(certificate, key, authorities string) (*Files, error) {
	f := &Files{certificate: certificate, key: key, authorities: authorities}
	if _, err := f.Certificate(); err != nil {
		return nil, err
	}
	return f, nil
}

// Certificate gives the certificate that the files hold now. While they are being replaced, and do not fit, it gives the last one that did.
func (f *Files) Certificate() (*Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil && f.current == nil {
		return nil, err
	}
	return f.current, nil
}

// Authorities gives the certificates of the authorities, nil for none.
func (f *Files) Authorities() *x509.CertPool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.refresh() // the last ones stay in force
	return f.pool
}

func (f *Files) refresh() error {
	var versions [3]version
	for i, path := range []string{f.certificate, f.key, f.authorities} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
		versions[i] = version{info.Size(), info.ModTime()}
	}
	if f.current != nil && versions == f.versions {
		return nil
	}
	if err := ownpath.RequirePrivate(f.key); err != nil {
		return err
	}
	chain, err := os.ReadFile(f.certificate)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		return fmt.Errorf("read the key of the certificate: %w", err)
	}
	current, err := decode(chain, key)
	if err != nil {
		return fmt.Errorf("%s with %s: %w", f.certificate, f.key, err)
	}
	var pool *x509.CertPool
	if f.authorities != "" {
		text, err := os.ReadFile(f.authorities)
		if err != nil {
			return fmt.Errorf("read the certificates of the authority: %w", err)
		}
		pool = x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: %w", f.authorities, errors.New("there is no certificate in PEM"))
		}
	}
	f.current, f.pool, f.versions = current, pool, versions
	return nil
}
