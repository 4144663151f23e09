package postgresql

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// bodyBytesMax bounds a body that becomes a value.
const bodyBytesMax = 64 << 20

// source says where a value comes from: one of its fields does.
type source struct {
	property string
	field    []string // the keys of a JSON Pointer
	isField  bool
	body     string // text or bytes
	constant []byte // nil for null
}

// UnmarshalJSON reads {property: name}, {field: /pointer}, {body: text}, {body: bytes} or {value: scalar}.
func (s *source) UnmarshalJSON(data []byte) error {
	var read map[string]json.RawMessage
	if err := json.Unmarshal(data, &read); err != nil || len(read) != 1 {
		return errors.New("write {property: ...}, {field: /...}, {body: text}, {body: bytes} or {value: ...}")
	}
	for kind, value := range read {
		var text string
		err := json.Unmarshal(value, &text)
		if kind != "value" && (err != nil || text == "" && kind != "field") {
			return fmt.Errorf("%s is no text", kind)
		}
		switch kind {
		case "property":
			s.property = text
		case "field":
			return s.readPointer(text)
		case "body":
			if text != "text" && text != "bytes" {
				return errors.New("a body is text or bytes")
			}
			s.body = text
		case "value":
			return s.readConstant(value)
		default:
			return fmt.Errorf("there is no %s; write property, field, body or value", kind)
		}
	}
	return nil
}

func (s *source) readPointer(text string) error {
	s.isField = true
	if text == "" {
		return nil
	}
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return errors.New("a field is a JSON Pointer, which begins with /")
	}
	for key := range strings.SplitSeq(rest, "/") {
		s.field = append(s.field, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	return nil
}

func (s *source) readConstant(value json.RawMessage) error {
	parsed, err := parseJSON(value)
	if err != nil {
		return err
	}
	s.constant, err = textOf(parsed)
	return err
}

// isMessageID says whether the value is the number of the message.
func (s source) isMessageID() bool { return s.property == "MessageID" }

// needs says whether the value comes from the body.
func (s source) needsBody() bool { return s.body != "" || s.isField }

// content is the body of a message, read for the sources that need it.
type content struct {
	bytes  []byte
	parsed any
}

// value gives the value for a message, as PostgreSQL reads it; nil for null.
func (s source) value(m *adapter.Message, c *content) ([]byte, error) {
	switch {
	case s.property != "":
		return propertyOf(m, s.property), nil
	case s.isField:
		return textOf(find(c.parsed, s.field))
	case s.body == "bytes":
		return append([]byte(`\x`), hex.AppendEncode(nil, c.bytes)...), nil
	case s.body == "text":
		if !utf8.Valid(c.bytes) || bytes.IndexByte(c.bytes, 0) >= 0 {
			return nil, errors.New("the body is no text in UTF-8, or has a zero byte in it")
		}
		return append([]byte{}, c.bytes...), nil
	}
	return s.constant, nil
}

// propertyOf gives a property of a message, those of the engine included; nil where it has none of that name.
func propertyOf(m *adapter.Message, name string) []byte {
	switch name {
	case "MessageID":
		return strconv.AppendInt(nil, m.ID, 10)
	case "InterchangeID":
		return strconv.AppendInt(nil, m.Interchange, 10)
	case "MessageType":
		if m.Type != "" {
			return []byte(m.Type)
		}
		return nil
	case "OrderKey":
		if m.OrderKey != "" {
			return []byte(m.OrderKey)
		}
		return nil
	}
	if value, ok := m.Promoted[name]; ok {
		return append([]byte{}, value...)
	}
	if value, ok := m.Written[name]; ok {
		return append([]byte{}, value...)
	}
	return nil
}

// parseJSON reads one value of JSON; numbers keep their digits.
func parseJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the body as JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the body as JSON: something stands behind the value")
	}
	return value, nil
}

// find follows a JSON Pointer; nil where it leads nowhere.
func find(value any, keys []string) any {
	for _, key := range keys {
		switch at := value.(type) {
		case map[string]any:
			value = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) || strconv.Itoa(i) != key {
				return nil
			}
			value = at[i]
		default:
			return nil
		}
	}
	return value
}

// textOf writes a value of JSON as PostgreSQL reads it: scalars as their text, objects and arrays as JSON; nil for null.
func textOf(value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			return nil, errors.New("a text has a zero byte in it")
		}
		return append([]byte{}, v...), nil
	case json.Number:
		return []byte(v.String()), nil
	case bool:
		return strconv.AppendBool(nil, v), nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
