package xquery

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

type contentKind uint8

const (
	contentElement contentKind = iota
	contentAttribute
	contentText
)

// A content is something that insert makes: an element as it is written, an attribute, a text, or what a variable has.
type content struct {
	kind     contentKind
	name     string // of an attribute
	variable string // with its @
	parts    []part
}

// A part is a piece of text, or an expression in braces whose value stands there.
type part struct {
	literal string
	query   *Query
}

// text puts the parts together. Values in an element are escaped.
func (c *content) text(root *Node, values Variables) (string, *fault.Error) {
	var b strings.Builder
	for _, p := range c.parts {
		if p.query == nil {
			b.WriteString(p.literal)
			continue
		}
		text, _, err := p.query.Value(root, values)
		if err != nil {
			return "", err
		}
		if c.kind == contentElement {
			escape(&b, text, true)
		} else {
			b.WriteString(text)
		}
	}
	return b.String(), nil
}

// A modificationReader reads a statement of XML DML.
type modificationReader struct {
	query  *Query
	spaces map[string]string
	rest   string
}

func (r *modificationReader) skip() { r.rest = strings.TrimLeft(r.rest, " \t\r\n") }

// accept takes words, each apart from what follows.
func (r *modificationReader) accept(words ...string) bool {
	saved := r.rest
	for _, word := range words {
		r.skip()
		rest, is := strings.CutPrefix(r.rest, word)
		if !is || rest != "" && nameEnd(rest[:1]) > 0 {
			r.rest = saved
			return false
		}
		r.rest = rest
	}
	return true
}

func (r *modificationReader) insertion(m *Modification) (err *fault.Error) {
	if m.content, err = r.contents(); err != nil {
		return err
	}
	switch {
	case r.accept("as", "first", "into"):
		m.place = "first"
	case r.accept("as", "last", "into"), r.accept("into"):
		m.place = "last"
	case r.accept("after"):
		m.place = "after"
	case r.accept("before"):
		m.place = "before"
	default:
		return r.query.syntax(r.rest)
	}
	if m.target, err = Compile(modify, r.rest, r.spaces); err != nil {
		return err
	}
	if !isSingleton(m.target.tokens) {
		return fault.New(2226, "insert", "node() *")
	}
	return nil
}

// contents reads what is inserted: one thing, or several in parentheses.
func (r *modificationReader) contents() ([]content, *fault.Error) {
	r.skip()
	if !strings.HasPrefix(r.rest, "(") {
		c, err := r.content()
		return []content{c}, err
	}
	r.rest = r.rest[1:]
	var all []content
	for {
		c, err := r.content()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		r.skip()
		switch {
		case strings.HasPrefix(r.rest, ","):
			r.rest = r.rest[1:]
		case strings.HasPrefix(r.rest, ")"):
			r.rest = r.rest[1:]
			return all, nil
		default:
			return nil, r.query.syntax(r.rest)
		}
	}
}

func (r *modificationReader) content() (content, *fault.Error) {
	r.skip()
	switch {
	case strings.HasPrefix(r.rest, "<"):
		return r.element()
	case r.accept("attribute"):
		r.skip()
		c := content{kind: contentAttribute, name: r.rest[:nameEnd(r.rest)]}
		r.rest = r.rest[len(c.name):]
		return r.braced(c)
	case r.accept("text"):
		return r.braced(content{kind: contentText})
	}
	for _, function := range []string{"sql:variable(", "sql:column("} {
		rest, is := strings.CutPrefix(r.rest, function)
		if !is {
			continue
		}
		inside, after, found := strings.Cut(rest, ")")
		if !found {
			return content{}, r.query.syntax(r.rest)
		}
		r.rest = after
		return content{variable: strings.Trim(inside, " \"'")}, nil
	}
	return content{}, r.query.syntax(r.rest)
}

// braced reads the value of an attribute or a text.
func (r *modificationReader) braced(c content) (content, *fault.Error) {
	r.skip()
	rest, is := strings.CutPrefix(r.rest, "{")
	if !is {
		return c, r.query.syntax(r.rest)
	}
	value, after, err := r.inBraces(rest)
	c.parts, r.rest = []part{{query: value}}, after
	return c, err
}

// inBraces reads the expression up to the brace that closes it.
func (r *modificationReader) inBraces(text string) (*Query, string, *fault.Error) {
	quoted := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == '}':
			q, err := Compile(modify, text[:i], r.spaces)
			return q, text[i+1:], err
		}
	}
	return nil, "", r.query.syntax(text)
}

// element reads an element up to its end, with expressions in braces.
func (r *modificationReader) element() (content, *fault.Error) {
	c := content{}
	var literal strings.Builder
	depth, isTag := 0, false
	for text := r.rest; text != ""; {
		switch {
		case !isTag && strings.HasPrefix(text, "<!--"):
			at := strings.Index(text, "-->")
			if at < 0 {
				return c, r.query.syntax(text)
			}
			literal.WriteString(text[:at+3])
			if text = text[at+3:]; depth == 0 { // a comment alone
				c.parts, r.rest = append(c.parts, part{literal: literal.String()}), text
				return c, nil
			}
		case !isTag && text[0] == '<':
			if isTag = true; strings.HasPrefix(text, "</") {
				depth -= 2
			}
			depth++
			literal.WriteByte('<')
			text = text[1:]
		case isTag && text[0] == '>':
			if isTag = false; strings.HasSuffix(literal.String(), "/") {
				depth--
			}
			literal.WriteByte('>')
			if text = text[1:]; depth == 0 {
				c.parts, r.rest = append(c.parts, part{literal: literal.String()}), text
				return c, nil
			}
		case strings.HasPrefix(text, "{{"), strings.HasPrefix(text, "}}"):
			literal.WriteByte(text[0])
			text = text[2:]
		case text[0] == '{':
			q, after, err := r.inBraces(text[1:])
			if err != nil {
				return c, err
			}
			c.parts = append(c.parts, part{literal: literal.String()}, part{query: q})
			literal.Reset()
			text = after
		default:
			literal.WriteByte(text[0])
			text = text[1:]
		}
	}
	return c, r.query.syntax(r.rest)
}

// replacement reads the target and the value of replace; the word with stands outside of quotes and brackets.
func (r *modificationReader) replacement(m *Modification) (err *fault.Error) {
	at := r.wordAt("with")
	if at < 0 {
		return r.query.syntax(r.rest)
	}
	if m.target, err = Compile(modify, r.rest[:at], r.spaces); err != nil {
		return err
	}
	if !isSingleton(m.target.tokens) {
		return fault.New(2337, "node() *")
	}
	m.value, err = Compile(modify, r.rest[at+len("with"):], r.spaces)
	return err
}

func (r *modificationReader) wordAt(word string) int {
	quoted, depth := byte(0), 0
	for i := range len(r.rest) {
		switch c := r.rest[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case depth == 0 && strings.HasPrefix(r.rest[i:], word) && i > 0 && nameEnd(r.rest[i-1:i]) == 0:
			if rest := r.rest[i+len(word):]; rest == "" || nameEnd(rest[:1]) == 0 {
				return i
			}
		}
	}
	return -1
}
