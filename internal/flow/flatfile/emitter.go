package flatfile

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// emitBytes is how much XML is collected before it is written.
const emitBytes = 32 << 10

// An emitter collects the XML of a message.
type emitter struct {
	begin func() (io.Writer, error)
	w     io.Writer
	buf   []byte
}

// spill writes what was collected. The first writing begins the message.
func (e *emitter) spill() error {
	if e.w == nil {
		w, err := e.begin()
		if err != nil {
			return err
		}
		e.w = w
	}
	_, err := e.w.Write(e.buf)
	e.buf = e.buf[:0]
	return err
}

// special has the bytes that cannot stand in XML as they are.
var special = func() (table [256]bool) {
	for b := range 0x20 {
		table[b] = b != '\t'
	}
	for _, b := range []byte{'&', '<', '>', 0xef} {
		table[b] = true
	}
	return table
}()

// appendValue appends a value as text or as the value of an attribute, and gives the first byte of a character that XML does not have,
// or -1.
func appendValue(to, value []byte, isAttr bool) ([]byte, int) {
	first := 0
	for i, b := range value {
		if !special[b] && (!isAttr || b != '"' && b != '\t') {
			continue
		}
		var text string
		switch b {
		case '&':
			text = "&amp;"
		case '<':
			text = "&lt;"
		case '>':
			text = "&gt;"
		case '"':
			text = "&quot;"
		case '\r':
			text = "&#xD;"
		case '\n':
			text = "&#xA;"
		case '\t':
			text = "&#x9;"
		case 0xef:
			if i+2 < len(value) && value[i+1] == 0xbf && value[i+2] >= 0xbe {
				return to, i
			}
			continue
		default:
			return to, i
		}
		to = append(to, value[first:i]...)
		to = append(to, text...)
		first = i + 1
	}
	return append(to, value[first:]...), -1
}

// emit appends the XML of an instance with all it contains.
func (p *parser) emit(n int32) error {
	i := &p.instances[n]
	d := i.definition
	if d.isField {
		return p.emitField(i)
	}
	if !p.schema.generateEmptyNodes && !p.hasData(n) || p.schema.suppressEmptyNodes && !p.hasData(n) {
		return nil
	}
	if err := p.emitStart(n); err != nil {
		return err
	}
	isEmpty, err := p.emitElements(n)
	if err != nil {
		return err
	}
	if isEmpty {
		p.out.buf = append(p.out.buf[:len(p.out.buf)-1], '/', '>')
		return nil
	}
	p.out.buf = append(p.out.buf, d.end...)
	return nil
}

// emitStart appends the start tag of a record with its attributes.
func (p *parser) emitStart(n int32) error {
	p.out.buf = append(p.out.buf, p.instances[n].definition.open...)
	for child := p.instances[n].first; child != 0; child = p.instances[child].next {
		if p.instances[child].definition.isAttr {
			if err := p.emitField(&p.instances[child]); err != nil {
				return err
			}
		}
	}
	p.out.buf = append(p.out.buf, '>')
	return nil
}

// emitElements appends the children of a record that are elements, in the order of XML.
func (p *parser) emitElements(n int32) (isEmpty bool, err error) {
	isEmpty = true
	if p.instances[n].definition.isReordered {
		for _, child := range p.inOrder(n) {
			isEmpty = false
			if err := p.emit(child); err != nil {
				return isEmpty, err
			}
		}
		return isEmpty, nil
	}
	for child := p.instances[n].first; child != 0; child = p.instances[child].next {
		if p.instances[child].definition.isAttr {
			continue
		}
		isEmpty = false
		if err := p.emit(child); err != nil {
			return isEmpty, err
		}
	}
	return isEmpty, nil
}

// inOrder sorts the elements of a record whose order in the file is another than in XML.
func (p *parser) inOrder(n int32) []int32 {
	var all []int32
	for child := p.instances[n].first; child != 0; child = p.instances[child].next {
		if !p.instances[child].definition.isAttr {
			all = append(all, child)
		}
	}
	slices.SortStableFunc(all, func(a, b int32) int { return p.instances[a].definition.index - p.instances[b].definition.index })
	return all
}

func (p *parser) hasData(n int32) bool {
	i := &p.instances[n]
	if i.definition.isField {
		return len(i.value) > 0
	}
	for child := i.first; child != 0; child = p.instances[child].next {
		if p.hasData(child) {
			return true
		}
	}
	return false
}

func (p *parser) emitField(i *instance) error {
	d := i.definition
	if p.settings.Validate || len(p.schema.restricted) > 0 {
		if err := p.checkField(i); err != nil {
			return err
		}
	}
	if len(i.value) == 0 && !d.isAttr {
		if !p.schema.suppressEmptyNodes {
			p.out.buf = append(p.out.buf, d.empty...)
		}
		return nil
	}
	if len(i.value) == 0 && p.schema.suppressEmptyNodes {
		return nil
	}
	out, bad := appendValue(append(p.out.buf, d.open...), i.value, d.isAttr)
	out = append(out, d.end...)
	p.out.buf = out
	if bad >= 0 {
		r, _ := utf8.DecodeRune(i.value[bad:])
		return p.invalid(i, fmt.Sprintf("character U+%04X, which XML does not have", r),
			"remove it from the file, or name the charset in which the file is written")
	}
	return nil
}

// checkField holds a value against the type that the schema gives it.
func (p *parser) checkField(i *instance) error {
	if len(p.schema.restricted) > 0 {
		for _, r := range string(i.value) {
			if slices.ContainsFunc(p.schema.restricted, func(x xsd.Range) bool { return r >= x.First && r <= x.Last }) {
				return p.invalid(i, fmt.Sprintf("character %q is restricted", r),
					"remove it from the file, or from restrictedCharacterRanges of the schema")
			}
		}
	}
	if !p.settings.Validate {
		return nil
	}
	d := i.definition
	if d.fixed != nil && string(i.value) != *d.fixed && len(i.value) > 0 {
		return p.invalid(i, fmt.Sprintf("%q is not the fixed value %q", i.value, *d.fixed), "correct the value")
	}
	if len(i.value) == 0 && d.fallback != nil {
		return nil
	}
	if why := d.simple.Check(string(i.value)); why != "" {
		return p.invalid(i, why, "correct the value, or the type in the schema")
	}
	return nil
}

func (p *parser) invalid(i *instance, message, remedy string) error {
	f := &fault.Fault{Message: message, Remedy: remedy, Place: p.placeOf(i.start), Field: i.definition.name.Local}
	if cut := strings.LastIndexByte(i.definition.path, '/'); cut >= 0 {
		f.Record = i.definition.path[:cut]
	}
	return f
}
