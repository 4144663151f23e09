package host

import (
	"context"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// sink takes messages out of a receive pipeline.
type sink struct {
	ctx  context.Context //nolint:containedctx // that of the call of Run, which lasts as long as the sink
	host *Host
	add  func(d draft) error   // is given each message
	open map[int64]*bodyWriter // by number: a bad record may come while the message around it is written
}

var _ pipeline.Sink = (*sink)(nil)

// Begin begins a message, or begins one anew that turned out to be bad.
func (s *sink) Begin(number int64) (io.Writer, error) {
	if s.open == nil {
		s.open = map[int64]*bodyWriter{}
	}
	w := &bodyWriter{ctx: s.ctx, host: s.host}
	s.open[number] = w
	return w, nil
}

// End ends a good message.
func (s *sink) End(m pipeline.Message) error { return s.end(m, nil) }

// Bad ends a message that is bad. A part of the input comes in place of whatever was written of it.
func (s *sink) Bad(m pipeline.Message, raw []byte, failure error) error {
	if raw != nil {
		w, err := s.Begin(m.Number)
		if err != nil {
			return err
		}
		if _, err := w.Write(raw); err != nil {
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
	written, isOpen := s.open[m.Number]
	if !isOpen {
		return fmt.Errorf("the pipeline ends message %d, which it has not begun", m.Number)
	}
	delete(s.open, m.Number)
	if err := written.finish(&d); err != nil {
		return err
	}
	return s.add(d)
}
