package web

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

const templateRemedy = "Write a text with {MessageID} or {namespace#Name}, and {{ for a brace."

// template is a text with properties of a message in it.
type template []piece

type piece struct{ literal, property string }

func parseTemplate(text string) (template, error) {
	var t template
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if literal != "" {
			t = append(t, piece{literal: literal})
		}
		if !found {
			break
		}
		if after, isBrace := strings.CutPrefix(rest, "{"); isBrace {
			t, text = append(t, piece{literal: "{"}), after
			continue
		}
		property, after, closed := strings.Cut(rest, "}")
		if !closed || property == "" {
			return nil, errors.New("a brace is not closed, or names no property")
		}
		t, text = append(t, piece{property: property}), after
	}
	for _, p := range t {
		if hasControl(p.literal) {
			return nil, errors.New("it has a line break or another control character")
		}
	}
	return t, nil
}

// of gives the text for a message. A value with a line break or another control character is refused for good: it would add headers.
func (t template) of(m *adapter.Message) (string, error) {
	var b strings.Builder
	for _, p := range t {
		value := p.literal
		if p.property != "" {
			value = property(m, p.property)
		}
		if hasControl(value) {
			return "", &adapter.Failure{
				Code: "send.refused", Permanent: true,
				Err: fmt.Errorf("the property %s has a line break or another control character, and cannot go into a header", p.property),
			}
		}
		b.WriteString(value)
	}
	return strings.TrimSpace(b.String()), nil
}

// property gives a property of a message, those of the engine included.
func property(m *adapter.Message, name string) string {
	switch name {
	case "MessageID":
		return strconv.FormatInt(m.ID, 10)
	case "InterchangeID":
		return strconv.FormatInt(m.Interchange, 10)
	case "MessageType":
		return m.Type
	}
	return m.Property(name)
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
