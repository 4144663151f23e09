package server

import (
	"crypto/tls"
	"log/slog"
	"sync"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// ownCertificate is the certificate that a send connector shows to hosts. Its files are read when it is needed first, and again while they
// cannot be read: mail that leaves by other ways does not wait for them. Files that were replaced are read anew, as those of receive
// connectors are.
type ownCertificate struct {
	files receive.CertificateFiles
	log   *slog.Logger

	mu   sync.Mutex
	read *receive.Certificates
}

func (c *ownCertificate) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil {
		read, err := receive.NewCertificates(c.log, c.files)
		if err != nil {
			return nil, err
		}
		c.read = read
	}
	return c.read.Get(new(tls.ClientHelloInfo))
}
