package flatfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// instancesMost bounds the records and fields of one record that is kept whole.
const instancesMost = 1 << 20

// An instance is a record or a field as it was read. Indexes are into the parser's instances; 0 is none.
type instance struct {
	definition        *definition
	value             []byte
	start, end        int // in the window
	first, last, next int32
}

// A parser reads one file by one program.
type parser struct {
	window
	schema    *Schema
	settings  ReadSettings
	instances []instance
	scratch   []byte // values that are not slices of the window
	failure   failure
	hard      error // ends the message
	unwound   int   // choices that were taken back since the last progress
	furthest  int   // to where an instance was read, in complexity mode
	out       emitter
	opens     []open      // records that are given out piece by piece, the innermost last
	follows   func() bool // whether what may follow the message stands here
	bad       func(interchange.Bad) error
}

// An open record is given out piece by piece.
type open struct {
	node      int32
	isWritten bool // its start tag is
}

// A failure is what was met where reading went furthest, and what would have gone on.
type failure struct {
	at         int
	definition *definition
	parent     *definition
	expected   []string
	message    string
}

// A state is how far a record has been read.
type state struct {
	definition *definition
	node       int32
	count      int // children read, of all parts
	streams    bool
}

type mark struct {
	pos, instances, scratch, count int
	last                           int32
}

func (p *parser) mark(s *state) mark {
	return mark{pos: p.pos, instances: len(p.instances), scratch: len(p.scratch), count: s.count, last: p.instances[s.node].last}
}

func (p *parser) restore(m mark, s *state) {
	p.pos, p.instances, p.scratch, s.count = m.pos, p.instances[:m.instances], p.scratch[:m.scratch], m.count
	node := &p.instances[s.node]
	node.last = m.last
	if m.last == 0 {
		node.first = 0
	} else {
		p.instances[m.last].next = 0
	}
}

func (p *parser) add(parent int32, i instance) int32 {
	n := int32(len(p.instances)) // bounded by instancesMost
	if n >= instancesMost && p.hard == nil {
		p.hard = &fault.Fault{
			Message: fmt.Sprintf("a record has more than %d parts", instancesMost), Place: p.placeOf(p.pos),
			Remedy: "let the part that repeats stand in records without attributes behind it, so that it can be given out piece by piece",
		}
	}
	p.instances = append(p.instances, i)
	if parent == 0 && n == 0 {
		return n
	}
	up := &p.instances[parent]
	if up.first == 0 {
		up.first = n
	} else {
		p.instances[up.last].next = n
	}
	up.last = n
	return n
}

// fail records what was expected, if no reading went further.
func (p *parser) fail(at int, d, parent *definition, expected string) bool {
	switch {
	case at > p.failure.at || p.failure.definition == nil:
		p.failure = failure{at: at, definition: d, parent: parent, expected: append(p.failure.expected[:0], expected)}
	case at == p.failure.at && !slices.Contains(p.failure.expected, expected):
		p.failure.expected = append(p.failure.expected, expected)
	}
	return false
}

// fault makes an error of the furthest failure.
func (p *parser) fault() *fault.Fault {
	f := &fault.Fault{Place: p.placeOf(p.failure.at), Expected: strings.Join(p.failure.expected, " or ")}
	if d := p.failure.definition; d != nil {
		if d.isField {
			f.Field = d.name.Local
			if p.failure.parent != nil {
				f.Record = p.failure.parent.path
			}
		} else {
			f.Record = d.path
		}
	}
	f.Message = p.failure.message
	if f.Message == "" {
		f.Message = "found " + p.found(p.failure.at)
	}
	f.Remedy = "correct the file here, or the schema if the file is right"
	if strings.Contains(f.Expected, "end otherwise") {
		f.Remedy = "read the file with any newline, where CR, LF and CR LF are the same, or correct the delimiter of the schema"
	}
	return f
}

// found quotes what stands at a place, to the end of its line.
func (p *parser) found(at int) string {
	const most = 32
	if !p.have(at) {
		return "the end of the file"
	}
	p.have(at + most)
	text := p.buf[at:min(len(p.buf), at+most)]
	if end := bytes.IndexAny(text, "\r\n"); end > 0 {
		text = text[:end]
	}
	for len(text) > 0 && !utf8.Valid(text) {
		text = text[:len(text)-1]
	}
	return fmt.Sprintf("%q", text)
}

// record reads a record: its tag, then its children.
func (p *parser) record(d *definition, parent int32) bool {
	n := p.add(parent, instance{definition: d, start: p.pos})
	if p.hard != nil {
		return false
	}
	var ok bool
	if d.isPositional {
		ok = p.positional(d, n)
	} else if ok = p.takeTag(d); ok {
		s := state{definition: d, node: n}
		ok = p.group(d.content, &s)
	}
	p.instances[n].end = p.pos
	return ok
}

// takeTag passes over the tag of a delimited record.
func (p *parser) takeTag(d *definition) bool {
	if len(d.tag) == 0 {
		return true
	}
	if !p.hasTag(d, p.pos) {
		return p.fail(p.pos, d, nil, fmt.Sprintf("tag %q of record %s", d.tag, d.name.Local))
	}
	p.pos += len(d.tag)
	return true
}

// hasTag reports whether the tag of a record stands where the record would begin, and no longer one of a sibling.
func (p *parser) hasTag(d *definition, at int) bool {
	if d.tagOffset > 0 {
		bound := len(p.buf)
		for !p.hasUnits(at, d.tagOffset) && p.have(bound) {
			bound = len(p.buf)
		}
		at, _ = p.take(at, d.tagOffset, len(p.buf))
	}
	if !p.begins(d.tag, at) {
		return false
	}
	for _, longer := range d.longerTags {
		if p.begins(longer, at) {
			return false
		}
	}
	return true
}

// group reads the parts of a group once.
func (p *parser) group(g *group, s *state) bool {
	switch g.order {
	case xsd.Choice:
		return p.choice(g, s)
	case xsd.All:
		return p.all(g, s)
	case xsd.Sequence:
	}
	if p.schema.isComplex && !s.streams {
		return p.backtracking(g, s, 0, 0)
	}
	for i := range g.parts {
		if !p.part(g, i, s) {
			return false
		}
	}
	return true
}

// part reads a part as often as it occurs.
func (p *parser) part(g *group, index int, s *state) bool {
	pt := g.parts[index]
	for count := 0; pt.mayRepeat(count); count++ {
		required := count < pt.min
		if !required && p.isAbsent(pt, s, count) {
			break
		}
		m := p.mark(s)
		ok := p.instance(pt, s, count, required)
		if p.hard != nil {
			return false
		}
		if ok && p.pos == m.pos && !required {
			p.restore(m, s)
			break
		}
		if ok {
			if s.streams && !p.giveOut(pt, s, m.pos) {
				return false
			}
			continue
		}
		p.restore(m, s)
		if s.streams && p.recovers(pt, s) && !p.atEnd() && !p.restMatches(g, index+1, s) {
			if !p.passOver(p.fault(), s, m.pos) {
				return false
			}
			continue
		}
		if required && (index < len(g.parts)-1 || !p.mayBeMissing(pt, s)) {
			return false
		}
		break
	}
	return true
}

// mayBeMissing is a rule of the speed mode: where the data of the parent ends behind an optional child, a record that is required and comes
// last may be absent with it.
func (p *parser) mayBeMissing(pt *part, s *state) bool {
	return !p.settings.Validate && pt.afterOptional && pt.definition != nil && !pt.definition.isField && !p.schema.isComplex && s.count > 0 &&
		(p.atEnd() || p.matchAny(s.definition.outer, p.pos) > 0)
}

// isAbsent reports whether a part that need not be there is not, without trying to read it.
func (p *parser) isAbsent(pt *part, s *state, count int) bool {
	d := s.definition
	separator := d.delimiter
	if count > 0 && d.repeating != nil {
		separator = d.repeating
	}
	at := p.pos
	if separator != nil && (d.order == prefix || d.order == infix && s.count > 0) {
		n := p.match(separator, at)
		if n == 0 {
			return true
		}
		at += n
		if !p.have(at) && p.matchAny(d.outer, p.pos) > 0 {
			return true // the delimiter is that of the record around it
		}
	} else {
		if !p.have(at) {
			return true
		}
		if p.matchAny(d.outer, at) > 0 && p.match(separator, at) == 0 {
			return true
		}
	}
	if pt.definition != nil && len(pt.definition.tag) > 0 {
		return !p.hasTag(pt.definition, at)
	}
	for _, later := range pt.laterTags {
		if p.hasTag(later, at) {
			return true
		}
	}
	return false
}

// instance reads one occurrence of a part, with its delimiter.
func (p *parser) instance(pt *part, s *state, count int, required bool) bool {
	if pt.group != nil {
		whole := *s // a group is given out whole: it may turn out not to be there
		whole.streams = false
		ok := p.group(pt.group, &whole)
		s.count = whole.count
		return ok
	}
	d, child := s.definition, pt.definition
	if d.delimiter != nil && (d.order == prefix || d.order == infix && s.count > 0) {
		separator := d.delimiter
		if count > 0 && d.repeating != nil {
			separator = d.repeating
		}
		n := p.match(separator, p.pos)
		if n == 0 {
			return p.fail(p.pos, child, d, fmt.Sprintf("delimiter %q before %s %s", separator.text, child.kind(), child.name.Local))
		}
		p.pos += n
	}
	start := p.pos
	switch {
	case child.isField:
		if !p.field(child, d, s.node) {
			return false
		}
	case s.streams && child.streams && (required || len(child.tag) > 0):
		if !p.stream(child, s) {
			return false
		}
	case !p.record(child, s.node):
		return false
	}
	s.count++
	return d.delimiter == nil || d.order != postfix || p.takePostfix(pt, d, start)
}

// takePostfix passes over the delimiter behind a child. The last one of a file may be missing.
func (p *parser) takePostfix(pt *part, d *definition, start int) bool {
	if d.repeating != nil && pt.max != 1 {
		if n := p.match(d.repeating, p.pos); n > 0 {
			p.pos += n
			return true
		}
	}
	n := p.match(d.delimiter, p.pos)
	if n == 0 && (p.pos == start || !p.atEnd() || p.settings.RequireFinalDelimiter || p.broken() != nil) {
		return p.fail(p.pos, pt.definition, d, fmt.Sprintf("delimiter %q behind %s %s",
			d.delimiter.text, pt.definition.kind(), pt.definition.name.Local))
	}
	if n == 0 && d.delimiter.isNewline() && !p.schema.wraps && bytes.ContainsAny(p.buf[start:p.pos], "\r\n") {
		return p.fail(p.pos, pt.definition, d,
			fmt.Sprintf("delimiter %q: the lines of the file end otherwise than the schema says", d.delimiter.text))
	}
	p.pos += n
	return true
}
