package pipeline

import (
	"bytes"
	"io"
)

// Only takes the only message of a body. A bad part ends the run with its failure.
type Only struct {
	Message Message
	Body    bytes.Buffer
}

var _ Sink = (*Only)(nil)

// Begin implements [Sink].
func (o *Only) Begin(int64) (io.Writer, error) {
	o.Body.Reset()
	return &o.Body, nil
}

// End implements [Sink].
func (o *Only) End(m Message) error {
	o.Message = m
	return nil
}

// Bad implements [Sink].
func (*Only) Bad(_ Message, _ []byte, failure error) error { return failure }
