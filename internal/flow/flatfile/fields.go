package flatfile

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// field reads a field of a delimited record.
func (p *parser) field(d, parent *definition, node int32) bool {
	start := p.pos
	if len(d.wrap) > 0 && p.begins(d.wrap, start) {
		return p.wrapped(d, parent, node)
	}
	end, hasEscape := p.stop(start, d.stops)
	if p.err != nil && p.broken() != nil {
		p.hard = p.broken()
		return false
	}
	value := p.buf[start:end]
	if hasEscape {
		value = p.unescaped(value, d.stops.escape)
	}
	if d.minPadded > 0 {
		value = d.trimmed(value)
	}
	p.pos = end
	return p.addField(d, parent, node, instance{definition: d, value: value, start: start, end: end})
}

func (p *parser) addField(d, parent *definition, node int32, i instance) bool {
	if d.dates != nil && len(i.value) > 0 {
		converted, ok := d.dates.toXML(string(i.value))
		if !ok {
			return p.fail(i.start, d, parent, fmt.Sprintf("a date of the format of field %s", d.name.Local))
		}
		i.value = []byte(converted)
	}
	p.add(node, i)
	return true
}

// unescaped removes escape characters: each makes the next character data. One at the end of the file is passed over.
func (p *parser) unescaped(value, escape []byte) []byte {
	first := len(p.scratch)
	for len(value) > 0 {
		i := bytes.Index(value, escape)
		if i < 0 {
			p.scratch = append(p.scratch, value...)
			break
		}
		p.scratch = append(p.scratch, value[:i]...)
		value = value[i+len(escape):]
		if len(value) > 0 {
			_, size := utf8.DecodeRune(value)
			p.scratch = append(p.scratch, value[:size]...)
			value = value[size:]
		}
	}
	return p.scratch[first:len(p.scratch):len(p.scratch)]
}

// wrapped reads a value between wrap characters. One within it is written twice, or escaped.
func (p *parser) wrapped(d, parent *definition, node int32) bool {
	start := p.pos
	at := start + len(d.wrap)
	from := at
	isPlain := true
	first := len(p.scratch)
	for {
		i := p.indexOf(d.wrap, d.stops.escape, at)
		if i < 0 {
			if p.broken() != nil {
				p.hard = p.broken()
				return false
			}
			return p.fail(len(p.buf), d, parent,
				fmt.Sprintf("the closing %s of field %s, which opened at %s", d.wrap, d.name.Local, brief(p.placeOf(start))))
		}
		if len(d.stops.escape) > 0 && p.begins(d.stops.escape, i) && !bytes.Equal(d.stops.escape, d.wrap) {
			if isPlain {
				p.scratch = append(p.scratch, p.buf[from:at]...)
				isPlain = false
			}
			p.scratch = append(p.scratch, p.buf[at:i]...)
			at = i + len(d.stops.escape)
			if p.have(at) {
				size := p.runeBytes(at)
				p.scratch = append(p.scratch, p.buf[at:at+size]...)
				at += size
			}
			continue
		}
		behind := i + len(d.wrap)
		if p.begins(d.wrap, behind) {
			if isPlain {
				p.scratch = append(p.scratch, p.buf[from:at]...)
				isPlain = false
			}
			p.scratch = append(p.scratch, p.buf[at:behind]...)
			at = behind + len(d.wrap)
			continue
		}
		value := p.buf[from:i]
		if !isPlain {
			p.scratch = append(p.scratch, p.buf[at:i]...)
			value = p.scratch[first:len(p.scratch):len(p.scratch)]
		}
		p.pos = behind
		if p.have(behind) && p.matchAny(d.stops, behind) == 0 {
			return p.fail(behind, d, parent, fmt.Sprintf("a delimiter behind the closing %s of field %s", d.wrap, d.name.Local))
		}
		if d.minPadded > 0 {
			value = d.trimmed(value)
		}
		return p.addField(d, parent, node, instance{definition: d, value: value, start: start, end: behind})
	}
}

// indexOf finds a wrap or escape character, or -1.
func (p *parser) indexOf(wrap, escape []byte, from int) int {
	for {
		i := bytes.Index(p.buf[from:], wrap)
		if len(escape) > 0 {
			if j := bytes.Index(p.buf[from:], escape); j >= 0 && (i < 0 || j < i) {
				i = j
			}
		}
		if i >= 0 {
			return from + i
		}
		from = max(from, len(p.buf)-utf8.UTFMax+1)
		if !p.have(len(p.buf)) {
			return -1
		}
	}
}

// trimmed removes pad characters.
func (d *definition) trimmed(value []byte) []byte {
	if len(d.pad) == 0 {
		return value
	}
	if !d.isRight {
		for bytes.HasSuffix(value, d.pad) {
			value = value[:len(value)-len(d.pad)]
		}
		return value
	}
	for bytes.HasPrefix(value, d.pad) && (!d.keepsOnePad || len(value) > len(d.pad)) {
		value = value[len(d.pad):]
	}
	return value
}

func brief(p fault.Place) string { return fmt.Sprintf("line %d, column %d", p.Line, p.Column) }
