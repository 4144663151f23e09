package receive

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
)

// CertificateFiles are the files of a certificate, with those of its issuers behind it, and of its key, in PEM. They are read below Folders
// alone; nil is none.
type CertificateFiles struct {
	Certificate, Key string
	Folders          *hostfolders.Folders
}

// Certificates chooses certificates by the name that a client asks for, and reads their files anew when they have changed.
type Certificates struct {
	files []CertificateFiles
	log   *slog.Logger

	mu      sync.Mutex
	loaded  []*tls.Certificate
	changed []time.Time
	checked time.Time
}

// certificatePause is how long files that were checked are taken for unchanged.
const certificatePause = 5 * time.Second

// NewCertificates reads certificates. The first serves clients that ask for no name, or for one that no certificate has.
func NewCertificates(log *slog.Logger, files ...CertificateFiles) (*Certificates, error) {
	if len(files) == 0 {
		return nil, errors.New("TLS needs a certificate: name its file and that of its key")
	}
	c := &Certificates{files: files, log: log, loaded: make([]*tls.Certificate, len(files)), changed: make([]time.Time, len(files))}
	return c, c.Reload()
}

// Get chooses a certificate. It has the form that a Server asks for.
func (c *Certificates) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	isDue := time.Since(c.checked) >= certificatePause
	c.mu.Unlock()
	if isDue {
		if err := c.Reload(); err != nil {
			c.log.Error("a certificate could not be read anew, and the one before is used", "error", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, certificate := range c.loaded {
		if hello.ServerName != "" && certificate.Leaf.VerifyHostname(hello.ServerName) == nil {
			return certificate, nil
		}
	}
	return c.loaded[0], nil
}

// Reload reads the files that have changed. A file that cannot be read leaves its certificate as it was.
func (c *Certificates) Reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checked = time.Now()
	var wrong []error
	for i, files := range c.files {
		changed, err := latest(files)
		if err == nil && c.loaded[i] != nil && changed.Equal(c.changed[i]) {
			continue
		}
		var certificate *tls.Certificate
		if err == nil {
			certificate, err = files.Load()
		}
		if err != nil {
			LogCause(c.log, err)
			wrong = append(wrong, err)
			continue
		}
		c.loaded[i], c.changed[i] = certificate, changed
	}
	return errors.Join(wrong...)
}

// latest gives when one of the files was changed last.
func latest(files CertificateFiles) (changed time.Time, err error) {
	if err := files.Folders.Check(files.Certificate, files.Key); err != nil {
		return time.Time{}, err
	}
	for _, name := range []string{files.Certificate, files.Key} {
		info, err := files.Folders.Stat(name)
		if err != nil {
			return time.Time{}, &FileError{name + " cannot be read", err}
		}
		if info.ModTime().After(changed) {
			changed = info.ModTime()
		}
	}
	return changed, nil
}
