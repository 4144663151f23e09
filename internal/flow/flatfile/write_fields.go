package flatfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

func (t *tree) broken(message, remedy string) error {
	f := &fault.Fault{Message: message, Remedy: remedy, Place: t.place, Field: t.definition.name.Local}
	if cut := strings.LastIndexByte(t.definition.path, '/'); cut >= 0 {
		f.Record = t.definition.path[:cut]
	}
	return f
}

// converted gives a value as the flat file has it.
func (w *writer) converted(t *tree) (string, error) {
	value := t.value
	if d := t.definition; d.dates != nil && value != "" {
		flat, ok := d.dates.toFlat(value)
		if !ok {
			return "", t.broken(fmt.Sprintf("%q is no date or time of XML Schema", value), "write it as 2026-11-28 or 2026-11-28T09:00:00")
		}
		value = flat
	}
	switch w.schema.letterCase {
	case "upper":
		value = strings.ToUpper(value)
	case "lower":
		value = strings.ToLower(value)
	}
	for _, r := range value {
		if slices.ContainsFunc(w.schema.restricted, func(x xsd.Range) bool { return r >= x.First && r <= x.Last }) {
			return "", t.broken(fmt.Sprintf("character %q is restricted", r),
				"remove it from the document, or from restrictedCharacterRanges of the schema")
		}
	}
	return value, nil
}

// appendField appends a value of a delimited record: padded, wrapped or escaped. A value that could not be read again as it is, is refused.
func (w *writer) appendField(to []byte, t *tree) ([]byte, error) {
	d := t.definition
	value, err := w.converted(t)
	if err != nil {
		return to, err
	}
	if short := d.minPadded - w.units([]byte(value)); short > 0 {
		value = d.padded(value, short)
	}
	if value == "" {
		return to, nil
	}
	if len(d.wrap) > 0 {
		escape := d.wrap
		inner := value
		if len(d.stops.escape) > 0 && !bytes.Equal(d.stops.escape, d.wrap) {
			escape = d.stops.escape
			inner = strings.ReplaceAll(inner, string(escape), string(escape)+string(escape))
		}
		inner = strings.ReplaceAll(inner, string(d.wrap), string(escape)+string(d.wrap))
		return append(append(append(to, d.wrap...), inner...), d.wrap...), nil
	}
	if len(d.stops.escape) > 0 {
		return d.appendEscaped(to, value), nil
	}
	if found := d.stops.within(value); found != nil {
		return to, t.broken(fmt.Sprintf("the value %q contains the delimiter %q", shortened(value), found.text),
			"give the field a wrap_char or its record an escape_char in the schema, or leave the delimiter out of the value")
	}
	return append(to, value...), nil
}

// appendEscaped puts the escape character before everything in a value that has a meaning.
func (d *definition) appendEscaped(to []byte, value string) []byte {
	s := d.stops
	for i := 0; i < len(value); {
		_, size := utf8.DecodeRuneInString(value[i:])
		isSpecial := strings.HasPrefix(value[i:], string(s.escape))
		for _, delimiter := range s.delimiters {
			// The first character of a delimiter is escaped even alone: the rest of it may follow the value.
			r, _ := utf8.DecodeRune(delimiter.text)
			isSpecial = isSpecial || strings.HasPrefix(value[i:], string(r)) || delimiter.anyNewline && (value[i] == '\r' || value[i] == '\n')
		}
		if isSpecial {
			to = append(to, s.escape...)
		}
		to = append(to, value[i:i+size]...)
		i += size
	}
	return to
}

// within finds a delimiter that would end a value before its end, also together with the delimiter that follows it.
func (s *stops) within(value string) *delimiter {
	for _, d := range s.delimiters {
		if d.anyNewline {
			if strings.ContainsAny(value, "\r\n") {
				return d
			}
			continue
		}
		if strings.Contains(value, string(d.text)) {
			return d
		}
		if len(d.text) > 1 {
			for _, next := range s.delimiters {
				if i := strings.Index(value+string(next.text), string(d.text)); i >= 0 && i < len(value) {
					return d
				}
			}
		}
	}
	return nil
}

// checkTags refuses a child that would be read as another record, because its text begins with the tag of that one.
func (w *writer) checkTags(p *part, t *tree, unit []byte) error {
	d := t.definition
	for _, longer := range d.longerTags {
		if bytes.HasPrefix(unit, longer) {
			return t.broken(fmt.Sprintf("the record begins with %q, the tag of another record", longer),
				"choose tags of which none begins another, or another value")
		}
	}
	if len(d.tag) > 0 || p == nil || p.min > 0 && p.max == 1 {
		return nil
	}
	for _, later := range p.laterTags {
		if later.tagOffset == 0 && bytes.HasPrefix(unit, later.tag) {
			return t.broken(fmt.Sprintf("the value begins with %q, the tag of record %s, which may follow", later.tag, later.name.Local),
				"choose another tag, or another value")
		}
	}
	return nil
}

// units counts characters, or bytes of the charset.
func (w *writer) units(value []byte) int {
	if w.schema.byBytes {
		return w.charset.Width(value)
	}
	return utf8.RuneCount(value)
}

func (d *definition) padded(value string, missing int) string {
	pad := strings.Repeat(string(d.pad), missing)
	if d.isRight {
		return pad + value
	}
	return value + pad
}

func shortened(value string) string {
	const most = 60
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "…"
}

// appendPositional appends a record, or a field of one, in its positions.
func (w *writer) appendPositional(to []byte, t *tree) ([]byte, error) {
	d := t.definition
	if d.isField {
		return w.appendPositions(to, t)
	}
	from := len(to)
	u := &units{writer: w, record: d, to: to}
	if err := w.parts(u, d.content, t.children, t.place); err != nil {
		return to, err
	}
	to = u.to
	if len(d.tag) == 0 {
		return to, nil
	}
	start := from
	for range d.tagOffset {
		if start >= len(to) {
			return to, t.broken("the record is shorter than the place of its tag", "give it fields up to tag_offset")
		}
		_, size := utf8.DecodeRune(to[start:])
		start += size
	}
	if start+len(d.tag) > len(to) {
		return to, t.broken("the record is too short for its tag", "give its first field a pos_offset that leaves room for the tag")
	}
	switch there := to[start : start+len(d.tag)]; {
	case bytes.Equal(there, d.tag):
	case len(bytes.Trim(there, " ")) == 0:
		copy(there, d.tag)
	default:
		return to, t.broken(fmt.Sprintf("%q stands where the tag %q of record %s must be", there, d.tag, d.name.Local),
			"let the field that covers the tag have its value")
	}
	return to, nil
}

// appendPositions appends a field: offset, value and pad characters.
func (w *writer) appendPositions(to []byte, t *tree) ([]byte, error) {
	d := t.definition
	value, err := w.converted(t)
	if err != nil {
		return to, err
	}
	if d.length < 0 {
		return to, t.broken("the field has no pos_length in the schema", "add it")
	}
	for range d.offset {
		to = append(to, ' ')
	}
	missing := d.length - w.units([]byte(value))
	if missing < 0 {
		if !w.settings.Truncate {
			return to, t.broken(fmt.Sprintf("the value %q has %d %s, and its place %d",
				shortened(value), d.length-missing, unitsName(w.schema), d.length),
				"shorten it, give it a longer pos_length, or let values be cut, as BizTalk does")
		}
		for w.units([]byte(value)) > d.length {
			if d.isRight {
				_, size := utf8.DecodeRuneInString(value)
				value = value[size:]
			} else {
				_, size := utf8.DecodeLastRuneInString(value)
				value = value[:len(value)-size]
			}
		}
		missing = d.length - w.units([]byte(value))
	}
	if found := d.stops.lineEnds().within(value); found != nil {
		return to, t.broken(fmt.Sprintf("the value %q contains a line end, which ends the record", shortened(value)),
			"leave it out of the value")
	}
	return append(to, d.padded(value, missing)...), nil
}

func unitsName(s *Schema) string {
	if s.byBytes {
		return "bytes"
	}
	return "characters"
}
