package flatfile

import (
	"fmt"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/xsd"
)

// positional reads a positional record. It ends at the next line end or, where records may end early, at any delimiter of a record
// around it; its fields have their lengths.
func (p *parser) positional(d *definition, node int32) bool {
	bound := -1
	if s := d.outer; s != nil && len(s.delimiters) > 0 {
		lines := s
		if !p.schema.allowEarly {
			lines = s.lineEnds()
		}
		if len(lines.delimiters) > 0 {
			bound, _ = p.stop(p.pos, lines)
			if p.broken() != nil {
				p.hard = p.broken()
				return false
			}
		}
	}
	return p.positionalRecord(d, node, bound)
}

// lineEnds gives those of some stops that end lines.
func (s *stops) lineEnds() *stops {
	var ends []*delimiter
	for _, d := range s.delimiters {
		if d.isNewline() {
			ends = append(ends, d)
		}
	}
	if len(ends) == len(s.delimiters) && len(s.escape) == 0 {
		return s
	}
	return newStops(ends, nil)
}

// positionalRecord reads a record up to a bound, or without one up to the end of the file where bound is negative.
func (p *parser) positionalRecord(d *definition, node int32, bound int) bool {
	if len(d.tag) > 0 && !p.hasTag(d, p.pos) {
		return p.fail(p.pos, d, nil, fmt.Sprintf("tag %q of record %s", d.tag, d.name.Local))
	}
	s := state{definition: d, node: node}
	return p.positions(d.content, &s, bound)
}

// positions reads the parts of a group one behind the other.
func (p *parser) positions(g *group, s *state, bound int) bool {
	if g.order == xsd.Choice {
		for _, pt := range g.tries {
			m := p.mark(s)
			if p.positionalPart(pt, s, bound, true) && p.pos > m.pos {
				return true
			}
			p.restore(m, s)
		}
		return false
	}
	for _, pt := range g.parts {
		if !p.positionalPart(pt, s, bound, false) {
			return false
		}
	}
	return true
}

func (p *parser) positionalPart(pt *part, s *state, bound int, mustBeThere bool) bool {
	for count := 0; pt.mayRepeat(count); count++ {
		required := count < pt.min || mustBeThere && count == 0
		atBound := bound >= 0 && p.pos >= bound || !p.have(p.pos)
		d := pt.definition
		if !required && atBound && (d == nil || !d.isField || pt.max != 1 || p.schema.earlyOptional) {
			break
		}
		if d != nil && d.isField && atBound && p.schema.earlyOptional && pt.min == 0 {
			break
		}
		m := p.mark(s)
		var ok bool
		switch {
		case pt.group != nil:
			ok = p.positions(pt.group, s, bound)
		case d.isField:
			ok = p.positionalField(d, s, bound)
		default:
			n := p.add(s.node, instance{definition: d, start: p.pos})
			if p.hard != nil {
				return false
			}
			ok = p.positionalRecord(d, n, bound)
			if ok {
				p.instances[n].end = p.pos
			}
		}
		if ok && (p.pos > m.pos || required || d != nil && d.isField) {
			continue
		}
		p.restore(m, s)
		if required || d != nil && d.isField {
			return ok
		}
		break
	}
	return true
}

// positionalField reads a field of its length, without its pad characters.
func (p *parser) positionalField(d *definition, s *state, bound int) bool {
	if d.length < 0 {
		return p.fail(p.pos, d, s.definition, fmt.Sprintf("a pos_length for field %s in the schema", d.name.Local))
	}
	limit := bound
	if limit < 0 {
		// Without a delimiter the field reaches as far as its length, or to the end of the file.
		for !p.hasUnits(p.pos, d.offset+d.length) && p.have(len(p.buf)) {
			continue
		}
		limit = len(p.buf)
	}
	start, missing := p.take(p.pos, d.offset, limit)
	end, short := p.take(start, d.length, limit)
	if missing+short > 0 && (!p.schema.allowEarly) {
		return p.fail(limit, d, s.definition, fmt.Sprintf("%d more %s of field %s", missing+short, p.units(), d.name.Local))
	}
	p.pos = end
	return p.addField(d, s.definition, s.node, instance{definition: d, value: d.trimmed(p.buf[start:end]), start: start, end: end})
}

func (p *parser) units() string {
	if p.schema.byBytes {
		return "bytes"
	}
	return "characters"
}

// hasUnits reports whether so many characters, or bytes of the charset, are in the window behind from.
func (p *parser) hasUnits(from, units int) bool {
	if len(p.buf)-from >= units*utf8.UTFMax {
		return true
	}
	_, missing := p.take(from, units, len(p.buf))
	return missing == 0
}

// take gives the end of so many characters, or bytes of the charset, and how many are missing before limit. A character that
// would be cut belongs to what comes next.
func (p *parser) take(from, units, limit int) (end, missing int) {
	end = from
	if limit > len(p.buf) {
		limit = len(p.buf)
	}
	for units > 0 && end < limit {
		size, width := 1, 1
		if b := p.buf[end]; b >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(p.buf[end:limit])
		}
		if p.schema.byBytes {
			width = p.charset.Width(p.buf[end : end+size])
		}
		if width > units {
			return end, 0
		}
		units -= width
		end += size
	}
	return end, units
}
