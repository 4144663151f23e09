package message

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Field is a field of a header block.
type Field struct {
	Name string // as it was written
	Raw  []byte // the whole field, with its folding and its last CRLF
}

// NewField makes a field. The value is one line, or is folded already; a CR or LF that would begin another field is made a blank.
func NewField(name, value string) Field {
	return Field{Name: name, Raw: []byte(name + ": " + foldedOnly(value) + "\r\n")}
}

// foldedOnly takes every line break that does not fold out of a value.
func foldedOnly(value string) string {
	if !strings.ContainsAny(value, "\r\n\x00") {
		return value
	}
	var kept strings.Builder
	for i := 0; i < len(value); i++ {
		isFold := strings.HasPrefix(value[i:], "\r\n ") || strings.HasPrefix(value[i:], "\r\n\t")
		switch {
		case isFold:
			kept.WriteString("\r\n")
			i++
		case value[i] == '\r', value[i] == '\n', value[i] == 0:
			kept.WriteByte(' ')
		default:
			kept.WriteByte(value[i])
		}
	}
	return kept.String()
}

// Is reports whether the field has this name, in any case.
func (f Field) Is(name string) bool { return strings.EqualFold(f.Name, name) }

// Value gives the value on one line, as text that a database takes: valid UTF-8 without null characters.
func (f Field) Value() string {
	_, value, _ := bytes.Cut(f.Raw, []byte{':'})
	value = bytes.ReplaceAll(value, []byte("\r\n"), nil)
	if bytes.IndexByte(value, 0) >= 0 {
		value = bytes.ReplaceAll(value, []byte{0}, nil)
	}
	return validUTF8(string(bytes.Trim(value, " \t\r\n")))
}

// validUTF8 makes U+FFFD of each byte that is no character.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// Unfolded gives the value as it was written behind the colon, with its folding, without the last CRLF.
func (f Field) Unfolded() string {
	_, value, _ := bytes.Cut(f.Raw, []byte{':'})
	return strings.TrimPrefix(string(bytes.TrimSuffix(value, []byte("\r\n"))), " ")
}

// Header is a header block in its order.
type Header []Field

// ParseHeader reads the header block that data begins with, and gives how many bytes the block and the empty line behind it have. Where the
// block is not complete in data, isComplete is false. A line that is no field ends the block, and belongs to the body: so nothing behind
// it is a field to anybody who reads what Bytes wrote.
func ParseHeader(data []byte) (header Header, length int, isComplete bool) {
	at := 0
	for {
		line := lineAt(data[at:])
		switch {
		case line == nil:
			return header, at, false
		case len(line) == 2:
			return header, at + 2, true
		case line[0] == ' ' || line[0] == '\t':
			if len(header) == 0 {
				return header, at, true
			}
			last := &header[len(header)-1]
			last.Raw = data[at-len(last.Raw) : at+len(line)]
		default:
			name := fieldName(line)
			if name == "" {
				return header, at, true
			}
			header = append(header, Field{Name: name, Raw: line})
		}
		at += len(line)
	}
}

// lineAt gives the line that data begins with, with its CRLF, or nil where it does not end.
func lineAt(data []byte) []byte {
	for from := 0; ; {
		i := bytes.IndexByte(data[from:], '\n')
		if i < 0 {
			return nil
		}
		from += i + 1
		if from > 1 && data[from-2] == '\r' {
			return data[:from]
		}
	}
}

// fieldName gives the name that a line begins with, or nothing where it is no field.
func fieldName(line []byte) string {
	end := bytes.IndexByte(line, ':')
	if end < 1 {
		return ""
	}
	name := bytes.TrimRight(line[:end], " \t") // an old form has blanks before the colon
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return ""
		}
	}
	return string(name)
}

// Get gives the first field of a name.
func (h Header) Get(name string) (Field, bool) {
	for _, field := range h {
		if field.Is(name) {
			return field, true
		}
	}
	return Field{}, false
}

// Value gives the value of the first field of a name, or nothing.
func (h Header) Value(name string) string {
	if field, found := h.Get(name); found {
		return field.Value()
	}
	return ""
}

// All gives the fields of a name.
func (h Header) All(name string) (fields []Field) {
	for _, field := range h {
		if field.Is(name) {
			fields = append(fields, field)
		}
	}
	return fields
}

// Without gives the header without the fields for which drop says so.
func (h Header) Without(drop func(Field) bool) Header {
	kept := make(Header, 0, len(h))
	for _, field := range h {
		if !drop(field) {
			kept = append(kept, field)
		}
	}
	return kept
}

// Bytes gives the block with the empty line that ends it.
func (h Header) Bytes() []byte {
	size := 2
	for _, field := range h {
		size += len(field.Raw)
	}
	block := make([]byte, 0, size)
	for _, field := range h {
		block = append(block, field.Raw...)
	}
	return append(block, '\r', '\n')
}

// HasBareLineEnd reports whether a field has a CR or LF by itself. Some read a line end in it, and behind it another field.
func (h Header) HasBareLineEnd() bool {
	for _, field := range h {
		ends := bytes.Count(field.Raw, []byte("\r\n"))
		if bytes.Count(field.Raw, []byte{'\r'}) != ends || bytes.Count(field.Raw, []byte{'\n'}) != ends {
			return true
		}
	}
	return false
}

// BeginsField reports whether a field begins with a line.
func BeginsField(line []byte) bool { return fieldName(line) != "" }
