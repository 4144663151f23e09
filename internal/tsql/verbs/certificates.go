package verbs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/verbs/trust"
	"github.com/parley-broker/parley/internal/tsql/security"
)

// ownKeys are the master key and the files of the user who runs the command.
type ownKeys struct{ masterKey *trust.MasterKeyFlag }

// Make makes a certificate; the master key is made where it is missing and none was named.
func (k ownKeys) Make(subject string, start, end time.Time) (certificate, private []byte, err error) {
	master, err := k.masterKey.OpenIn("")
	if err != nil {
		return nil, nil, err
	}
	made, private, err := dialogsecurity.NewCertificate(master, subject, start, end)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	return made.Bytes, private, nil
}

// Export writes a file that is not there yet.
func (k ownKeys) Export(path string, certificate, private []byte, instance string) error {
	master, err := k.masterKey.OpenIn("")
	if err != nil {
		return err
	}
	parsed, err := dialogsecurity.ParseCertificate(certificate)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	of, err := parley.ParseUUID(instance)
	if err != nil {
		return fmt.Errorf("reading the instance of the broker: %w", err)
	}
	exported, err := dialogsecurity.ProveExport(master, parsed, private, of)
	if err != nil {
		return fmt.Errorf("proving whose the certificate is: %w", err)
	}
	file, err := os.OpenFile(ofWindows(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("%w: %w", security.ErrNotWritten, err)
	}
	_, err = file.Write(exported.Text())
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w: %w", security.ErrNotWritten, err)
	}
	return nil
}

// Import reads a file whose maker has proven to hold the private keys.
func (ownKeys) Import(path string) ([]byte, error) {
	text, err := os.ReadFile(ofWindows(path))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", security.ErrNotRead, err)
	}
	found, err := dialogsecurity.Import(text)
	if err == nil {
		err = found.Verify()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", security.ErrNotRead, err)
	}
	return found.Bytes, nil
}

// ofWindows gives a path with the separators of this system for one that may have those of Windows.
func ofWindows(path string) string { return filepath.FromSlash(strings.ReplaceAll(path, `\`, "/")) }
