package host

import (
	"context"
	"io"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// sink takes the messages of an input out of the pipeline.
type sink struct {
	ctx     context.Context //nolint:containedctx // that of the call of Run, which lasts as long as the sink
	take    *take
	into    *processed
	current *bodyWriter
}

var _ pipeline.Sink = (*sink)(nil)

// Begin begins a message.
func (s *sink) Begin(int64) (io.Writer, error) {
	s.current = &bodyWriter{ctx: s.ctx, host: s.take.in.host}
	return s.current, nil
}

// End ends a good message.
func (s *sink) End(m pipeline.Message) error { return s.end(m, nil) }

// Bad ends a message that is bad, or keeps a part of the input that was none.
func (s *sink) Bad(m pipeline.Message, raw []byte, failure error) error {
	if s.current == nil {
		s.current = &bodyWriter{ctx: s.ctx, host: s.take.in.host}
		if _, err := s.current.Write(raw); err != nil {
			return err
		}
	}
	return s.end(m, failure)
}

func (s *sink) end(m pipeline.Message, failure error) error {
	d := draft{messageType: m.Type, contentType: m.ContentType, charset: m.Charset, promoted: m.Promoted, written: m.Written}
	if failure != nil {
		d.fail(failure)
	}
	if s.current == nil {
		s.current = &bodyWriter{ctx: s.ctx, host: s.take.in.host}
	}
	if err := s.current.finish(&d); err != nil {
		return err
	}
	s.current = nil
	s.take.add(s.into, d)
	if s.take.messages < spillMessages && s.take.bytes < spillBytes {
		return nil
	}
	return s.take.spill(s.ctx, s.into)
}
