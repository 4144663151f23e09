package flatfile

import (
	"bytes"
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// message reads one message of a schema. It is written through begin, except for what is left in the emitter.
func (p *parser) message(schema *Schema, begin func() (io.Writer, error)) (bool, error) {
	root := schema.root
	p.schema = schema
	p.instances = append(p.instances[:0], instance{definition: root, start: p.pos})
	p.opens = append(p.opens[:0], open{})
	p.scratch, p.hard, p.unwound, p.furthest = p.scratch[:0], nil, 0, 0
	p.out = emitter{begin: begin, buf: p.out.buf[:0]}
	ok := false
	switch {
	case root.isPositional:
		ok = p.positional(root, 0)
	case p.takeTag(root):
		s := state{definition: root, streams: root.streams}
		ok = p.group(root.content, &s)
	}
	if p.hard != nil {
		return false, p.hard
	}
	if !ok {
		return false, nil
	}
	if err := p.closeOpen(); err != nil {
		return true, err
	}
	return true, nil
}

// longBad is from how many bytes on a bad part is not given as bytes any more.
const longBad = 1 << 20

// passOver goes on at the next message behind one that is bad. from is where it began, if nothing was discarded; wasRead, that the
// message was read to its end and is wrong in what it says.
func (r *reading) passOver(f *fault.Fault, start int64, from int, isDiscarded, wasRead bool) error {
	p := r.parser
	root := r.schema.root
	if !wasRead || !r.isBoundary() {
		if !r.resynchronise(root, from, isDiscarded) {
			f.Remedy = "nothing behind this place can be read: " + f.Remedy
		}
	}
	if err := p.broken(); err != nil {
		return err
	}
	bad := interchange.Bad{Fault: f, From: start, To: p.byteOf(p.pos)}
	if !isDiscarded && from <= p.pos && p.gone <= start && p.pos-from <= longBad {
		bad.Raw = p.buf[from:p.pos]
	}
	f.End = bad.To
	p.failure = failure{expected: p.failure.expected[:0]}
	return r.reportMessage(bad)
}

// isBoundary reports whether a message may begin or the file may end here.
func (r *reading) isBoundary() bool {
	p := r.parser
	return p.atEnd() || r.delimiterHere() || r.followsHere() || r.canBegin()
}

// resynchronise finds where the next message begins: at the tag of the root behind a delimiter or, where messages have no tag and a
// certain number of parts, at the first delimiter behind which one can be read. It gives false where nothing says where one begins: then
// the rest of the file is passed over.
func (r *reading) resynchronise(root *definition, from int, isDiscarded bool) bool {
	p := r.parser
	switch {
	case isDiscarded:
	case len(root.tag) > 0:
		p.pos = from
	default:
		p.pos = max(from, p.failure.at)
	}
	if root.delimiter == nil || len(root.tag) == 0 && isOpenEnded(root) {
		if p.settings.Trailer != nil && root.delimiter != nil {
			return r.scan(func() bool { return r.trailerHere(false) })
		}
		r.passRest()
		return false
	}
	return r.scan(func() bool { return r.followsHere() || len(root.tag) == 0 && r.canBegin() })
}

// isOpenEnded reports whether a message of the root may have any number of parts.
func isOpenEnded(root *definition) bool {
	for _, p := range root.content.parts {
		if p.max == xsd.Unbounded {
			return true
		}
	}
	return false
}

// scan goes to the first place behind a delimiter of the root where a message begins, or to the end of the file.
func (r *reading) scan(begins func() bool) bool {
	p := r.parser
	ends := newStops([]*delimiter{r.schema.root.delimiter}, nil)
	for {
		at, _ := p.stop(p.pos, ends)
		n := p.match(r.schema.root.delimiter, at)
		p.pos = at + n
		if p.pos > longBad {
			p.discard()
		}
		if n == 0 || p.atEnd() {
			return false
		}
		if begins() {
			return true
		}
	}
}

// passRest goes to the end of the file.
func (r *reading) passRest() {
	p := r.parser
	for p.have(p.pos) {
		p.pos = len(p.buf)
		if p.pos > longBad {
			p.discard()
		}
	}
}

// mayContinue reports whether a record that has all it needs could have gone on: then what stands behind it and cannot be read may be a
// part of it. A child is over with its delimiter, unless its own children have the same one.
func (d *definition) mayContinue() bool {
	if d.isField || len(d.content.parts) == 0 {
		return false
	}
	return d.content.parts[len(d.content.parts)-1].mayContinue(d)
}

func (p *part) mayContinue(in *definition) bool {
	switch {
	case p.max != p.min, p.group != nil && (p.group.order != xsd.Sequence || len(p.group.parts) == 0):
		return true
	case p.group != nil:
		return p.group.parts[len(p.group.parts)-1].mayContinue(in)
	case in.delimiter == nil, p.definition.delimiter != nil && bytes.Equal(p.definition.delimiter.text, in.delimiter.text):
		return p.definition.mayContinue()
	}
	return false
}
