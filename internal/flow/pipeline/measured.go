package pipeline

import (
	"errors"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
)

// measured reads a body and holds it against the size that its source has said: the end of the bytes alone is not the end of the body.
type measured struct {
	body io.Reader
	size int64 // -1: not known
	read int64
	err  error // of the source, and not of the content
}

// Read implements [io.Reader].
func (m *measured) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.body.Read(p)
	m.read += int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		m.err = fmt.Errorf("read the input: %w", err)
	case m.size >= 0 && (m.read > m.size || err != nil && m.read < m.size):
		m.err = &adapter.Failure{Code: codeIncomplete, Err: &fault.Fault{
			Message:  fmt.Sprintf("the source ends behind %d bytes", m.read),
			Expected: fmt.Sprintf("%d bytes", m.size), Place: fault.Place{Byte: min(m.read, m.size)},
			Remedy: "have the sender write the whole source before it is taken, and do not change it meanwhile",
		}}
		if m.read > m.size {
			m.err.(*adapter.Failure).Err.(*fault.Fault).Message = "the source has more bytes than it had when it was found"
		}
	case err != nil:
		return n, err
	}
	return n, m.err
}
