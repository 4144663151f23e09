package flatfile

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

// ReadSettings are for the reading of a file.
type ReadSettings struct {
	Charset               string  // beside the schema's code page, which it overrides; a byte-order mark overrides both
	Header, Trailer       *Schema // of what stands before and behind the messages
	Validate              bool    // values are held against their types
	Recover               interchange.Recovery
	RequireFinalDelimiter bool // a file whose last line end is missing is cut off
	RecordBytes           int  // most bytes of a record that is kept whole, 16 MiB by default
	Progress              func(bytes int64)
	Opened                func(*text.Source)  // once, before the first record
	HeaderRead            func(header []byte) // the header as XML, before the first message
}

const recordBytes = 16 << 20

// A Summary is what a file held.
type Summary struct {
	Messages, Bad   int64
	Bytes           int64 // of the file
	Header, Trailer []byte
	Charset         string
	Disagreement    string // of byte-order mark and setting
}

// reading is one file on its way.
type reading struct {
	parser  *parser
	schema  *Schema
	sink    interchange.Sink
	summary Summary
	// pending are bad records of the message that is being read, of so many bytes. A message that turns out bad as a whole is reported with
	// all of its records, and these are not reported besides.
	pending      []interchange.Bad
	pendingBytes int
}

// Disassemble reads a flat file into messages of XML.
func (s *Schema) Disassemble(ctx context.Context, r io.Reader, settings ReadSettings, sink interchange.Sink) (Summary, error) {
	charset := settings.Charset
	if charset == "" {
		charset = s.codePage
	}
	source, err := text.Open(r, charset, false)
	if err != nil {
		return Summary{}, err
	}
	if settings.Opened != nil {
		settings.Opened(source)
	}
	p := &parser{schema: s, settings: settings}
	p.window = window{source: source, charset: source.Charset, gone: int64(source.MarkBytes), most: settings.RecordBytes}
	if p.most <= 0 {
		p.most = recordBytes
	}
	run := &reading{
		parser: p, schema: s, sink: sink,
		summary: Summary{Charset: source.Charset.Name, Disagreement: source.Disagreement},
	}
	p.bad = run.reportRecord
	p.follows = run.followsHere
	err = run.all(ctx)
	run.summary.Bytes = p.byteOf(p.pos)
	return run.summary, err
}

// all reads header, messages and trailer.
func (r *reading) all(ctx context.Context) error {
	p := r.parser
	if h := p.settings.Header; h != nil {
		xml, f := r.aside(h)
		if f != nil {
			return f
		}
		r.summary.Header = xml
		p.pos += p.match(h.root.delimiter, p.pos)
		if p.settings.HeaderRead != nil {
			p.settings.HeaderRead(xml)
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.atEnd() {
			return r.atEnd()
		}
		if done, err := r.ended(); done || err != nil {
			return err
		}
		if err := r.next(); err != nil {
			return err
		}
		p.forget()
	}
}

// atEnd says whether the file may end here.
func (r *reading) atEnd() error {
	p := r.parser
	switch {
	case p.broken() != nil:
		return p.broken()
	case p.settings.Trailer != nil && r.summary.Trailer == nil:
		return &fault.Fault{
			Message: "the file ends without its trailer", Expected: "record " + p.settings.Trailer.root.path, Place: p.placeOf(p.pos),
			Remedy: "send the whole file, or leave the trailer schema away",
		}
	case r.summary.Messages+r.summary.Bad == 0:
		return &fault.Fault{
			Message: "the file is empty", Expected: "record " + r.schema.root.path, Place: p.placeOf(p.pos),
			Remedy: "send a file with a message, or treat empty files before they are disassembled",
		}
	}
	return nil
}

// ended reports whether the trailer, or a last delimiter alone, stands here and ends the file.
func (r *reading) ended() (bool, error) {
	p := r.parser
	if p.settings.Trailer != nil && r.summary.Messages+r.summary.Bad > 0 &&
		(len(r.schema.root.tag) == 0 || !p.hasTag(r.schema.root, p.pos)) && r.trailerHere(true) {
		return true, nil
	}
	if r.summary.Messages+r.summary.Bad > 0 && r.delimiterEnds() {
		return true, r.atEnd()
	}
	return false, nil
}

// delimiterEnds passes over a last delimiter, or line end, behind which there is nothing.
func (r *reading) delimiterEnds() bool {
	p := r.parser
	n := p.match(r.schema.root.delimiter, p.pos)
	if n == 0 {
		n = p.match(&delimiter{anyNewline: true, text: []byte{'\n'}}, p.pos)
	}
	if n == 0 || p.have(p.pos+n) {
		return false
	}
	p.pos += n
	return true
}

// aside reads a header or a trailer as XML.
func (r *reading) aside(schema *Schema) ([]byte, *fault.Fault) {
	p := r.parser
	var xml bytes.Buffer
	ok, err := p.message(schema, func() (io.Writer, error) { return &xml, nil })
	p.schema = r.schema
	if err != nil {
		if f, isFault := fault.Of(err); isFault {
			return nil, f
		}
		return nil, &fault.Fault{Message: err.Error(), Err: err, Place: p.placeOf(p.pos)}
	}
	if !ok {
		return nil, p.fault()
	}
	if err := p.out.spill(); err != nil {
		return nil, &fault.Fault{Message: err.Error(), Err: err}
	}
	return xml.Bytes(), nil
}

// trailerHere reports whether the trailer stands here with nothing behind it, and takes it where take is set.
func (r *reading) trailerHere(take bool) bool {
	p := r.parser
	from, before := p.pos, p.failure
	before.expected = append([]string(nil), before.expected...)
	if root := r.schema.root; root.order == infix && r.summary.Messages+r.summary.Bad > 0 {
		p.pos += p.match(root.delimiter, p.pos)
	}
	instances, opens, out, hard, scratch := p.instances, p.opens, p.out, p.hard, p.scratch
	p.instances, p.opens, p.out, p.hard, p.scratch = nil, nil, emitter{}, nil, nil
	xml, f := r.aside(p.settings.Trailer)
	isThere := f == nil && (p.atEnd() || r.delimiterEnds())
	p.instances, p.opens, p.out, p.hard, p.scratch = instances, opens, out, hard, scratch
	if isThere && take {
		r.summary.Trailer = xml
		return true
	}
	p.pos = from
	if before.at > p.failure.at || isThere {
		p.failure = before
	}
	return isThere
}

// followsHere reports whether the trailer or another message stands here.
func (r *reading) followsHere() bool {
	p := r.parser
	if p.settings.Trailer != nil && r.trailerHere(false) {
		return true
	}
	root := r.schema.root
	return len(root.tag) > 0 && p.hasTag(root, p.pos)
}

// next reads one message, or passes over one that is bad.
func (r *reading) next() error {
	p := r.parser
	number := r.summary.Messages + 1
	hasBegun := false
	start := p.byteOf(p.pos)
	from, goneBefore := p.pos, p.gone
	ok, err := p.message(r.schema, func() (io.Writer, error) {
		hasBegun = true
		return r.sink.Begin(number)
	})
	if ok && err == nil {
		err = r.isWhole(p.gone == goneBefore && p.pos == from)
	}
	if ok && err == nil {
		if err := p.out.spill(); err != nil {
			return err
		}
		if err := r.reportPending(); err != nil {
			return err
		}
		r.summary.Messages++
		return r.sink.End(interchange.Message{Number: number, Type: r.schema.MessageType()})
	}
	if hasBegun {
		if err := r.sink.Abort(number); err != nil {
			return err
		}
	}
	f, isFault := fault.Of(err)
	switch {
	case err == nil:
		f = p.fault()
	case !isFault:
		return err
	}
	if broken := p.broken(); broken != nil {
		return broken
	}
	f.Number = number
	if p.settings.Recover == interchange.Nothing {
		return f
	}
	return r.passOver(f, start, from, p.gone != goneBefore, ok)
}

// isWhole holds that a message was not cut off by something that it cannot read.
func (r *reading) isWhole(isEmpty bool) error {
	p := r.parser
	if p.atEnd() {
		return p.broken()
	}
	if isEmpty {
		return p.fault()
	}
	root := r.schema.root
	from := p.pos
	if root.order == infix && p.match(root.delimiter, p.pos) > 0 && !r.delimiterEnds() {
		p.pos = from
		if p.settings.Trailer != nil && r.trailerHere(false) {
			return nil
		}
		if !r.schema.breaksUpInfixRoot {
			p.fail(p.pos, root, nil, "the end of message "+root.name.Local)
			f := p.fault()
			f.Remedy = "correct the file here, or set allow_message_breakup_of_infix_root where several messages of this root follow each other"
			return f
		}
		p.pos += p.match(root.delimiter, p.pos)
		return nil
	}
	if p.pos != from || !root.mayContinue() || r.delimiterHere() || r.followsHere() || r.canBegin() {
		return nil
	}
	p.fail(p.pos, root, nil, fmt.Sprintf("the end of the file or record %s", root.name.Local))
	return p.fault()
}

// delimiterHere reports whether only a delimiter is left.
func (r *reading) delimiterHere() bool {
	from := r.parser.pos
	is := r.delimiterEnds()
	r.parser.pos = from
	return is
}

// canBegin reports whether the first part of another message can be read here.
func (r *reading) canBegin() bool {
	p, root := r.parser, r.schema.root
	if len(root.tag) > 0 {
		return p.hasTag(root, p.pos)
	}
	if len(root.content.parts) == 0 {
		return false
	}
	from := p.pos
	instances, opens, hard := p.instances, p.opens, p.hard
	p.instances, p.opens, p.hard = []instance{{definition: root}}, nil, nil
	s := state{definition: root}
	ok := root.isPositional || p.instance(root.content.parts[0], &s, 0, true)
	p.instances, p.opens, p.hard = instances, opens, hard
	p.pos = from
	return ok
}
