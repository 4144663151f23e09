package pipeline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
)

// Receive is a compiled receive pipeline.
type Receive struct {
	types         *Types
	decoders      []part // of decoder
	disassemblers []part // of disassembler
	validators    []part // of validator
}

// decoder makes the body that the next component reads.
type decoder interface {
	decode(body io.Reader, source *Source) (io.Reader, error)
}

// disassembler takes a body apart.
type disassembler interface {
	// refuses says why the component does not take a body that begins with head; empty: it does. isWhole says that the body ends with head.
	refuses(ctx context.Context, head []byte, isWhole bool, source Source) string
	disassemble(ctx context.Context, body io.Reader, run *running) error
}

// CompileReceive makes a receive pipeline of its definition. overrides are settings of components in this place, the pipeline_settings of
// a location: an object {component: {setting: value}}; nil: none. An error is [Problems]: everything that is wrong.
func CompileReceive(definition Definition, types *Types, overrides json.RawMessage) (*Receive, error) {
	parts, problems := compile(definition, directionReceive, types, overrides, []string{"pipeline", definition.Name},
		[]string{"pipeline_settings"})
	if len(problems) > 0 {
		return nil, problems
	}
	return &Receive{
		types: types, decoders: parts[stageDecode], disassemblers: parts[stageDisassemble], validators: parts[stageValidate],
	}, nil
}

// Run puts an input through the pipeline. An [adapter.Failure] says that the whole input has failed: what the sink got is discarded. Any
// other error is one of the sink, of ctx or of the reading of the source.
func (r *Receive) Run(ctx context.Context, source Source, sink Sink) error {
	pipe := r
	stage, isPart := source.Written[StageProperty].(string)
	if isPart {
		source.Written = maps.Clone(source.Written)
		delete(source.Written, StageProperty)
		var err error
		if pipe, err = r.from(stage); err != nil {
			return failed(codePipeline, "", err)
		}
	}
	run := &running{pipe: pipe, source: source, sink: sink, written: source.Written, charset: source.Charset, isPart: isPart}
	defer run.close()
	err := run.all(ctx)
	switch {
	case run.sinkErr != nil:
		return run.sinkErr
	case run.measured.err != nil:
		return run.measured.err
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return failed(codeOf(err, codePipeline), "", err)
	}
	return nil
}

// from gives the pipeline as a part of an input is put through it that the stages before have made. Behind the stage disassemble it is a
// message of XML or JSON, which is typed and promoted again.
func (r *Receive) from(stage string) (*Receive, error) {
	rest := &Receive{types: r.types, validators: r.validators}
	if stage != stageValidate {
		rest.disassemblers = r.disassemblers
		return rest, nil
	}
	for _, name := range []string{"XMLReceive", "JSONReceive"} { // a body that an operator gives has no content type
		parts, problems := compile(BuiltIn()[name], directionReceive, r.types, nil, nil, nil)
		if len(problems) > 0 {
			return nil, problems
		}
		rest.disassemblers = append(rest.disassemblers, parts[stageDisassemble]...)
	}
	return rest, nil
}

// all opens the input and gives it to its disassembler.
func (r *running) all(ctx context.Context) error {
	body, closeBody, err := r.open(ctx, &r.measured)
	if err != nil {
		return err
	}
	r.charset = r.source.Charset // a decoder may have found another one
	err = r.read(ctx, body)
	if err == nil {
		_, err = io.Copy(io.Discard, body) // nothing stands behind what was read, or the size of the source is another one
	}
	return errors.Join(err, closeBody())
}

// open opens the input, decoded.
func (r *running) open(ctx context.Context, m *measured) (io.Reader, func() error, error) {
	opened, err := r.source.Open(ctx)
	if err != nil {
		m.err = fmt.Errorf("open the input: %w", err)
		return nil, nil, m.err
	}
	*m = measured{ctx: ctx, body: opened, size: r.source.Size, code: codeIncomplete}
	var body io.Reader = m
	for _, p := range r.pipe.decoders {
		d, _ := p.run.(decoder) // as the registry makes them
		if body, err = d.decode(body, &r.source); err != nil {
			return nil, nil, errors.Join(failed(codeOf(err, codePipeline), p.component, err), opened.Close())
		}
	}
	return body, opened.Close, nil
}

// probed is how much of a body disassemblers see that are asked whether they take it, in bytes.
const probed = 64 << 10

func (r *running) read(ctx context.Context, body io.Reader) error {
	var chosen part
	switch all := r.pipe.disassemblers; len(all) {
	case 0:
		return r.passThrough(body)
	case 1:
		chosen = all[0]
	default:
		buffered := bufio.NewReaderSize(body, probed)
		head, err := buffered.Peek(probed)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if chosen, err = r.choose(ctx, head, err != nil); err != nil {
			return err
		}
		body = buffered
	}
	r.component = chosen.component
	d, _ := chosen.run.(disassembler) // as the registry makes them
	err := d.disassemble(ctx, body, r)
	switch {
	case err == nil:
		return nil
	case r.measured.read == 0 && r.measured.err == nil:
		return refusal(codeEmpty, r.component, "the body is empty", "send a body, or have the location pass or remove what is empty")
	case r.sinkErr != nil || r.measured.err != nil || ctx.Err() != nil:
		return err
	}
	return r.rest(ctx, err)
}

// choose finds the first disassembler that takes the body.
func (r *running) choose(ctx context.Context, head []byte, isWhole bool) (part, error) {
	if len(head) == 0 {
		return part{}, refusal(codeEmpty, "", "the body is empty", "send a body, or have the location pass or remove what is empty")
	}
	var reasons []string
	for _, p := range r.pipe.disassemblers {
		d, _ := p.run.(disassembler) // as the registry makes them
		why := d.refuses(ctx, head, isWhole, r.source)
		if why == "" {
			return p, nil
		}
		reasons = append(reasons, p.component+": "+why)
	}
	return part{}, refusal(codeDisassemble, "", "no disassembler of the pipeline takes the body: "+strings.Join(reasons, "; "),
		"send a body that one of them takes, or add a disassembler")
}

// buffers are for bodies that are copied.
var buffers = sync.Pool{New: func() any {
	buffer := make([]byte, 32<<10)
	return &buffer
}}

// passThrough makes one message of the whole input.
func (r *running) passThrough(body io.Reader) error {
	r.kind, r.contentType, r.isOpaque = r.source.Type, r.source.ContentType, true
	w, err := r.begin()
	if err != nil {
		return err
	}
	buffer, _ := buffers.Get().(*[]byte) // the pool holds nothing else
	defer buffers.Put(buffer)
	if _, err := io.CopyBuffer(w, body, *buffer); err != nil {
		return err
	}
	return r.end(r.kind)
}
