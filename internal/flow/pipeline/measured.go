package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
)

// measured reads a body and holds it against the size that its source has said: the end of the bytes alone is not the end of the body.
type measured struct {
	ctx  context.Context //nolint:containedctx // of the one run that reads the body
	body io.Reader
	size int64  // -1: not known
	code string // of the failure of a source of another size
	read int64
	err  error // of the source, and not of the content
}

// Read implements [io.Reader].
func (m *measured) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	if m.ctx.Err() != nil {
		m.err = context.Cause(m.ctx)
		return 0, m.err
	}
	n, err := m.body.Read(p)
	m.read += int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		m.err = fmt.Errorf("read the input: %w", err)
	case m.size >= 0 && m.read > m.size:
		m.err = m.another("the source has more bytes than it had when it was found")
	case m.size >= 0 && err != nil && m.read < m.size:
		m.err = m.another(fmt.Sprintf("the source ends behind %d bytes", m.read))
	case err != nil:
		return n, err
	}
	return n, m.err
}

// another is the failure of a source of another size.
func (m *measured) another(message string) error {
	return &adapter.Failure{Code: m.code, Err: &fault.Fault{
		Message: message, Expected: fmt.Sprintf("%d bytes", m.size), Place: fault.Place{Byte: min(m.read, m.size)},
		Remedy: "have the sender write the whole source before it is taken, and not change it meanwhile",
	}}
}
