package flatfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// field reads fieldInfo.
func (c *compiler) field(d *definition, info xsd.Annotation, simple *xsd.SimpleType) error {
	d.simple = simple
	switch written := info["justification"]; written {
	case "", "left":
	case "right":
		d.isRight = true
	default:
		return c.broken(d.place, fmt.Sprintf("justification is %q", written), "write left or right")
	}
	d.length = -1
	for name, value := range map[string]*int{"pos_length": &d.length, "pos_offset": &d.offset, "min_length_with_pad": &d.minPadded} {
		written, ok := info[name]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(written))
		if err != nil || n < 0 {
			return c.broken(d.place, fmt.Sprintf("%s is %q", name, written), "write a number from 0")
		}
		*value = n
	}
	var err error
	if d.pad, err = c.pad(d.place, info); err != nil {
		return err
	}
	d.keepsOnePad = d.isRight && len(d.pad) == 1 && d.pad[0] == '0' && simple != nil && simple.IsNumber()
	if d.wrap, err = c.character(d.place, info, "wrap_char", c.info, "default_wrap_char"); err != nil {
		return err
	}
	c.schema.wraps = c.schema.wraps || len(d.wrap) > 0
	if written := info["datetime_format"]; written != "" && simple != nil {
		if d.dates, err = newDateFormat(written, simple.Base); err != nil {
			return c.broken(d.place, fmt.Sprintf("datetime_format %q: %v", written, err),
				"write it with yyyy, MM, dd, HH, mm, ss, fff and separators")
		}
	}
	return nil
}

// pad reads the pad character of a field: its own, that of the schema, or a blank.
func (c *compiler) pad(place fault.Place, info xsd.Annotation) ([]byte, error) {
	if _, ok := info["pad_char"]; ok && info["pad_char_type"] != "default" && info["pad_char_type"] != "none" {
		return c.oneCharacter(place, "pad_char", info["pad_char"], info["pad_char_type"])
	}
	if written, ok := c.info["default_pad_char"]; ok && written != "" {
		return c.oneCharacter(place, "default_pad_char", written, c.info["pad_char_type"])
	}
	return []byte{' '}, nil
}

// character reads a character that an annotation gives itself or takes from the schema's default.
func (c *compiler) character(
	place fault.Place, info xsd.Annotation, name string, defaults xsd.Annotation, defaultName string,
) ([]byte, error) {
	written, kind := info[name], info[name+"_type"]
	if kind == "default" {
		written, kind, name = defaults[defaultName], defaults[name+"_type"], defaultName
	}
	if written == "" || kind == "none" {
		return nil, nil
	}
	return c.oneCharacter(place, name, written, kind)
}

func (c *compiler) oneCharacter(place fault.Place, name, written, kind string) ([]byte, error) {
	text, err := c.written(place, name, written, kind)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCount(text) != 1 {
		return nil, c.broken(place, fmt.Sprintf("%s is %q", name, written), "write one character")
	}
	return text, nil
}

// delimiter reads a delimiter that an annotation gives itself or takes from the schema's default.
func (c *compiler) delimiter(
	place fault.Place, info xsd.Annotation, name string, defaults xsd.Annotation, defaultName string,
) (*delimiter, error) {
	written, kind := info[name], info[name+"_type"]
	if kind == "default" {
		written, kind, name = defaults[defaultName], defaults[name+"_type"], defaultName
	}
	if written == "" || kind == "none" {
		return nil, nil
	}
	text, err := c.written(place, name, written, kind)
	if err != nil {
		return nil, err
	}
	d := &delimiter{text: text}
	d.anyNewline = c.anyNewline && (string(text) == "\r\n" || string(text) == "\n" || string(text) == "\r")
	return d, nil
}

// written gives the characters that a char or hex value stands for.
func (c *compiler) written(place fault.Place, name, value, kind string) ([]byte, error) {
	if kind != "hex" {
		return []byte(value), nil
	}
	var text []byte
	// 0x0D 0x0A, 0xD 0xA and 0x0D0x0A are all written.
	for number := range strings.FieldsSeq(strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(value), "0x", " "), ",", " ")) {
		n, err := strconv.ParseUint(number, 16, 32)
		if err != nil || n > utf8.MaxRune || len(number) > 6 {
			return nil, c.broken(place, fmt.Sprintf("%s is %q, which is not hexadecimal", name, value), "write numbers such as 0x0D 0x0A")
		}
		text = utf8.AppendRune(text, rune(n))
	}
	if len(text) == 0 {
		return nil, c.broken(place, fmt.Sprintf("%s is %q, which is not hexadecimal", name, value), "write numbers such as 0x0D 0x0A")
	}
	return text, nil
}
