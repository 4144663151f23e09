package receive

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/parley-broker/parley/internal/hostfolders"
)

// fileMax is how large a file of certificates or of a key may be.
const fileMax = 1 << 20

// FileError says that a file which the configuration names cannot be used. Its text goes to roles that may see the configuration, who may
// have named any path of the machine: it says nothing of the files there. The cause is for the log of the daemon.
type FileError struct {
	text  string
	Cause error
}

func (e *FileError) Error() string { return e.text }

// LogCause writes why a file cannot be used.
func LogCause(log *slog.Logger, err error) {
	if file, is := errors.AsType[*FileError](err); is {
		log.Error("a file that the configuration names cannot be used", "error", err, "cause", file.Cause)
	}
}

// ReadFile reads a file of certificates or of a key that the configuration names, below some folders. The path may be anything: a pipe
// keeps nobody waiting, and a device without an end is not read. An error is a *FileError, or that of a path which is not permitted.
func ReadFile(folders *hostfolders.Folders, path string) ([]byte, error) {
	if err := folders.Check(path); err != nil {
		return nil, err
	}
	content, err := readRegular(folders, path)
	if err != nil {
		return nil, &FileError{path + " cannot be read", err}
	}
	return content, nil
}

func readRegular(folders *hostfolders.Folders, path string) ([]byte, error) {
	file, err := folders.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, fileMax+1))
	if err != nil {
		return nil, err
	}
	if len(content) > fileMax {
		return nil, fmt.Errorf("%s has more than %d bytes", path, fileMax)
	}
	return content, nil
}

// Load reads a certificate and its key. An error is that of [ReadFile].
func (f CertificateFiles) Load() (*tls.Certificate, error) {
	pair, _, err := f.LoadWithEnd()
	return pair, err
}

// LoadWithEnd reads a certificate and its key, and when the certificate ends: known also where the key cannot be used, and zero where there
// is no certificate. An error is that of [ReadFile].
func (f CertificateFiles) LoadWithEnd() (pair *tls.Certificate, end time.Time, err error) {
	certificate, err := ReadFile(f.Folders, f.Certificate)
	if err != nil {
		return nil, time.Time{}, err
	}
	end = EndOf(certificate)
	key, err := ReadFile(f.Folders, f.Key)
	if err != nil {
		return nil, end, err
	}
	read, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, end, &FileError{fmt.Sprintf("%s with the key %s is not a certificate and its key that match", f.Certificate, f.Key), err}
	}
	return &read, end, nil
}

// EndOf is when the first of some certificates in PEM ends; zero where there is none.
func EndOf(written []byte) time.Time {
	for block, rest := pem.Decode(written); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}
		}
		return certificate.NotAfter
	}
	return time.Time{}
}

// LoadAuthorities reads the certificates of authorities, below some folders. An error is that of [ReadFile].
func LoadAuthorities(folders *hostfolders.Folders, path string) (*x509.CertPool, error) {
	content, err := ReadFile(folders, path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, &FileError{path + " is not a file of certificates", errors.New("there is no certificate in PEM")}
	}
	return pool, nil
}
