package security

import (
	"errors"
	"time"
)

// Keys makes certificates of dialogs and carries them in files. Only the command that runs a script has them: a session that runs for
// somebody else neither opens the master key nor reaches files of its host.
type Keys interface {
	// Make makes a certificate; its private keys are sealed under the master key.
	Make(subject string, start, end time.Time) (certificate, private []byte, err error)
	// Export writes a certificate to a new file, with the proof that a broker instance has its private keys.
	// Errors: [ErrNotWritten].
	Export(path string, certificate, private []byte, instance string) error
	// Import reads a certificate that Export has written; a file without a valid proof is refused.
	// Errors: [ErrNotRead].
	Import(path string) (certificate []byte, err error)
}

var (
	// ErrNotWritten says that a file is there already or cannot be written.
	ErrNotWritten = errors.New("the file cannot be written")
	// ErrNotRead says that a file is not there or holds no certificate that Parley has exported.
	ErrNotRead = errors.New("the file cannot be read, or holds no certificate of Parley")
)
