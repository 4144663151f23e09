package process

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/parley-broker/parley/internal/flow/parts"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

type form uint8

const (
	formText form = iota
	formXML
	formJSON
)

// template is a text with holes.
type template struct {
	form   form
	pieces []piece
}

// piece is a text, or a hole. A hole of JSON may be within a string.
type piece struct {
	text     string
	hole     *expression
	isQuoted bool
}

// template reads a text with holes; in a message it has the form of XML or JSON.
func (c *compiler) template(path []string, written string, n *names, isBody bool) *template {
	t := &template{}
	if trimmed := strings.TrimSpace(written); isBody && trimmed != "" {
		switch trimmed[0] {
		case '<':
			t.form = formXML
		case '{', '[':
			t.form = formJSON
		}
	}
	isQuoted, isWhole := false, true
	for rest := written; rest != ""; {
		before, behind, hasHole := cutHole(rest, t.form, &isQuoted)
		t.pieces = append(t.pieces, piece{text: before})
		if !hasHole {
			break
		}
		inner, after, isClosed := cutExpression(behind)
		if !isClosed {
			c.problem(path, "End it by }}.", "a hole of the template does not end")
			return t
		}
		hole := c.expression(path, strings.TrimSpace(inner), n, cel.DynType)
		isWhole = isWhole && hole != nil
		t.pieces = append(t.pieces, piece{hole: hole, isQuoted: isQuoted})
		rest = after
	}
	if isWhole {
		c.checkForm(path, t)
	}
	return t
}

// cutHole finds the next hole, and whether it is within a string of JSON.
func cutHole(text string, of form, isQuoted *bool) (before, behind string, has bool) {
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "{{"):
			return text[:i], text[i+2:], true
		case of != formJSON:
		case text[i] == '\\':
			i++
		case text[i] == '"':
			*isQuoted = !*isQuoted
		}
	}
	return text, "", false
}

// cutExpression finds the end of a hole, which is behind all maps and texts within it.
func cutExpression(text string) (inner, behind string, isClosed bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0 && b == '\\':
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case depth == 0 && strings.HasPrefix(text[i:], "}}"):
			return text[:i], text[i+2:], true
		case b == '{':
			depth++
		case b == '}':
			depth--
		}
	}
	return text, "", false
}

// checkForm refuses a template that is broken whatever stands in its holes.
func (c *compiler) checkForm(path []string, t *template) {
	var sample strings.Builder
	for _, p := range t.pieces {
		switch {
		case p.text != "":
			sample.WriteString(p.text)
		case p.hole == nil:
		case t.form == formJSON && !p.isQuoted:
			sample.WriteString("0")
		}
	}
	switch {
	case t.form == formJSON && !json.Valid([]byte(sample.String())):
		c.problem(path, "Mend it; a hole that is a whole value stands without quotes.", "the template is no JSON")
	case t.form == formXML:
		scanner := xmlscan.New(strings.NewReader(sample.String()), xmlscan.Limits{})
		for {
			if _, err := scanner.Next(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				c.problem(path, "Mend it.", "the template is no XML: %v", err)
				return
			}
		}
	}
}

// uses gives the messages and variables of the holes.
func (t *template) uses() []string {
	var all []string
	for _, p := range t.pieces {
		if p.hole != nil {
			all = append(all, p.hole.uses...)
		}
	}
	return all
}

func (r *run) fill(n *node, t *template) (string, *Fault) {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.hole == nil {
			b.WriteString(p.text)
			continue
		}
		value, fault := r.evaluate(n, p.hole)
		if fault != nil {
			return "", fault
		}
		if err := put(&b, value, t.form, p.isQuoted); err != nil {
			return "", r.expressionFault(p.hole, err)
		}
	}
	return b.String(), nil
}

func put(b *strings.Builder, value ref.Val, of form, isQuoted bool) error {
	switch {
	case of == formJSON && isQuoted:
		quoted := parts.Quote(textOf(value))
		b.Write(quoted[1 : len(quoted)-1])
	case of == formJSON:
		b.Write(jsonOf(value))
	case of == formXML:
		return putXML(b, value)
	default:
		b.WriteString(textOf(value))
	}
	return nil
}

func putXML(b *strings.Builder, value ref.Val) error {
	if v, is := value.(*partValue); is {
		part, err := v.part()
		if err != nil {
			return err
		}
		if part.IsJSON() {
			b.WriteString(parts.Escape(part.Text()))
			return nil
		}
		b.Write(part.Fragment())
		return nil
	}
	if list, is := value.(traits.Lister); is {
		for it := list.Iterator(); it.HasNext() == types.True; {
			if err := putXML(b, it.Next()); err != nil {
				return err
			}
		}
		return nil
	}
	b.WriteString(parts.Escape(textOf(value)))
	return nil
}
