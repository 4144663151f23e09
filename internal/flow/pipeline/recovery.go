package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

func (r *running) unrecognized(kind string) error {
	if slices.Contains(r.documents, kind) {
		return nil
	}
	return failed(codeRecord, r.component, &fault.Fault{
		Message: fmt.Sprintf("message type %s is not known here", kind),
		Remedy:  "add it to the documents of the component, or set allow_unrecognized",
	})
}

// Bad implements [interchange.Sink]: a part of the input that was passed over. It takes the place of the message that was taken back, or,
// within a message that goes on, has a number of its own.
func (r *running) Bad(bad interchange.Bad) error {
	var number int64
	if m := r.current; m != nil && m.isAborted {
		number = m.number
		r.current = nil
	} else {
		r.last++
		number = r.last
	}
	bad.Fault.Number = number
	m := r.result(number, "")
	m.ContentType = "text/plain"
	if r.isJSON {
		m.ContentType = jsonType
	}
	failure := failed(codeRecord, r.component, bad.Fault)
	r.bad++
	if bad.Raw != nil {
		m.Charset = text.UTF8.Name
		m.Written = with(m.Written, StageProperty, stageDisassemble)
		r.sinkErr = r.sink.Bad(m, slices.Concat(r.prefix, bad.Raw), failure)
		return r.sinkErr
	}
	return r.long(m, bad.From, bad.To, failure)
}

// long gives a bad part that nobody has kept: the input is read again.
func (r *running) long(m Message, from, to int64, failure error) error {
	var again measured
	body, closeBody, err := r.open(r.measured.ctx, &again)
	if err != nil {
		r.sinkErr = err
		return err
	}
	m.Charset = r.bodyCharset
	if r.isText {
		source, err := text.Open(body, r.bodyCharset, false)
		if err != nil {
			return errors.Join(err, closeBody())
		}
		body, m.Charset = source, text.UTF8.Name
	}
	if _, err = io.CopyN(io.Discard, body, from); err == nil {
		var w io.Writer
		if w, r.sinkErr = r.sink.Begin(m.Number); r.sinkErr != nil {
			return errors.Join(r.sinkErr, closeBody())
		}
		if to > from {
			body = io.LimitReader(body, to-from)
		}
		_, err = io.Copy(w, io.MultiReader(bytes.NewReader(r.prefix), body))
	}
	err = errors.Join(err, closeBody())
	switch {
	case errors.Is(err, text.ErrCharset):
		return failed(codeCharset, r.component, err) // the rest cannot be given whole, so nothing of the input is taken
	case err != nil:
		r.sinkErr = err // of the source or the sink: it says nothing of the input
		return err
	}
	m.Written = with(m.Written, StageProperty, stageDisassemble)
	r.sinkErr = r.sink.Bad(m, nil, failure)
	return r.sinkErr
}

// rest ends an input that cannot be read on. Where its good messages go on, the rest of it is one bad part. An input in another charset
// than was thought fails as a whole: its good messages may say something else than was read.
func (r *running) rest(ctx context.Context, err error) error {
	f, is := fault.Of(err)
	failure := failed(codeOf(err, codeDisassemble), r.component, err)
	if _, isDecided := errors.AsType[*adapter.Failure](err); isDecided || !is || !r.recovers || r.good+r.bad == 0 || ctx.Err() != nil ||
		errors.Is(err, text.ErrCharset) {
		return failure
	}
	from := f.Place.Byte
	if u, is := errors.AsType[*interchange.UnreadableError](err); is {
		from = u.From
	}
	var number int64
	if m := r.current; m != nil {
		m.stop()
		r.current = nil
		number = m.number
		if m.from > 0 {
			from = m.from
		}
	} else {
		r.last++
		number = r.last
	}
	f.Number, f.End = number, 0
	r.bad++
	return r.long(r.result(number, ""), from, 0, failure)
}
