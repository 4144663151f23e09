package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Send is a compiled send pipeline.
type Send struct {
	types *Types
	parts []part // of transformer, in the order in which they run
}

// transformer makes the body that the next component reads.
type transformer interface {
	// result is how the body is written behind the component.
	result(in Result, source Source) Result
	// transform writes the body of a message anew. in is how it is written.
	transform(ctx context.Context, body io.Reader, w io.Writer, m outgoing) error
}

// outgoing is a message on its way out, as a component sees it.
type outgoing struct {
	Result // how the body is written

	source Source
	types  *Types
}

// CompileSend makes a send pipeline of its definition. overrides are settings of components in this place, the pipeline_settings of a
// port: an object {component: {setting: value}}; nil: none. An error is [Problems]: everything that is wrong.
func CompileSend(definition Definition, types *Types, overrides json.RawMessage) (*Send, error) {
	parts, problems := compile(definition, directionSend, types, overrides, []string{"pipeline", definition.Name},
		[]string{"pipeline_settings"})
	if len(problems) > 0 {
		return nil, problems
	}
	s := &Send{types: types}
	for _, stage := range Stages(directionSend) {
		s.parts = append(s.parts, parts[stage]...)
	}
	return s, nil
}

// wholeBytes is up to which size a message is made at once, in bytes.
const wholeBytes = 64 << 10

// Open begins a message. The body is made while it is read; an error of reading is an [adapter.Failure] where the pipeline refuses the
// message, and otherwise one of the source. Its reader closes it, also before its end.
func (s *Send) Open(ctx context.Context, source Source) (io.ReadCloser, Result, error) {
	opened, err := source.Open(ctx)
	if err != nil {
		return nil, Result{}, fmt.Errorf("open the message: %w", err)
	}
	m := &measured{ctx: ctx, body: opened, size: source.Size, code: codeSend}
	result := Result{ContentType: source.ContentType, Charset: source.Charset, Size: source.Size}
	if len(s.parts) == 0 {
		return &outgoingBody{Reader: m, closers: []func() error{opened.Close}}, result, nil
	}
	if source.Size >= 0 && source.Size <= wholeBytes {
		body, result, err := s.whole(ctx, m, result, source)
		return body, result, errors.Join(err, opened.Close())
	}
	body := &outgoingBody{Reader: m}
	for _, p := range s.parts {
		t, _ := p.run.(transformer) // as the registry makes them
		out := outgoing{result, source, s.types}
		result = t.result(result, source)
		body.pass(func(from io.Reader, to io.Writer) error { return p.transform(ctx, from, to, out, m) })
	}
	body.closers = append(body.closers, opened.Close)
	result.Size = -1
	return body, result, nil
}

// whole makes a small message at once, so that its errors come before anything of it is sent.
func (s *Send) whole(ctx context.Context, m *measured, result Result, source Source) (io.ReadCloser, Result, error) {
	var body io.Reader = m
	for _, p := range s.parts {
		t, _ := p.run.(transformer) // as the registry makes them
		var made bytes.Buffer
		if err := p.transform(ctx, body, &made, outgoing{result, source, s.types}, m); err != nil {
			return nil, Result{}, err
		}
		result = t.result(result, source)
		result.Size = int64(made.Len())
		body = &made
	}
	return io.NopCloser(body), result, nil
}

// transform runs a component, and makes a failure of what it refuses.
func (p part) transform(ctx context.Context, from io.Reader, to io.Writer, out outgoing, m *measured) error {
	t, _ := p.run.(transformer) // as the registry makes them
	err := t.transform(ctx, from, to, out)
	if err == nil {
		_, err = io.Copy(io.Discard, from) // nothing stands behind what was read, or the source has another size
	}
	switch {
	case err == nil, errors.Is(err, io.ErrClosedPipe):
		return err
	case m.err != nil:
		return m.err
	}
	return failed(codeSend, p.component, err)
}

// outgoingBody is a body that is made while it is read.
type outgoingBody struct {
	io.Reader

	closers []func() error
}

// pass puts what is read through a component, which works until its end or until the body is closed.
func (b *outgoingBody) pass(transform func(from io.Reader, to io.Writer) error) {
	source := b.Reader
	from, to := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffered := bufio.NewWriterSize(to, wholeBytes)
		err := transform(source, buffered)
		if err == nil {
			err = buffered.Flush()
		}
		_ = to.CloseWithError(err) // a pipe has no error of its own
	}()
	b.Reader = from
	b.closers = append([]func() error{func() error {
		_ = from.CloseWithError(io.ErrClosedPipe) // a pipe has no error of its own
		<-done
		return nil
	}}, b.closers...)
}

// Close implements [io.Closer]. It ends the components, the last one first.
func (b *outgoingBody) Close() error {
	var err error
	for _, closeOne := range b.closers {
		err = errors.Join(err, closeOne())
	}
	b.closers = nil
	return err
}
