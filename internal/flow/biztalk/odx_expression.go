package biztalk

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An expression of XLANG/s as one of ours.
type expressed struct {
	written string
	typ     string   // text, integer, number, boolean, timestamp, duration, or any
	pieces  []string // of texts that are joined: literals begin with a quote
}

var errNotTranslated = errors.New("it has no counterpart")

// expressionReader reads an expression by the precedence of its operators.
type expressionReader struct {
	o     *orchestration
	words []lexeme
	depth int
}

// precedence is that of the operators of two sides.
var precedence = map[string]int{
	"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

func (o *orchestration) expression(words []lexeme) (expressed, error) {
	r := &expressionReader{o: o, words: words}
	e, err := r.binary(1)
	if err == nil && len(r.words) > 0 {
		err = fmt.Errorf("%w: %s", errNotTranslated, written(r.words))
	}
	return e, err
}

func (r *expressionReader) peek() string {
	if len(r.words) == 0 || r.words[0].kind == 't' {
		return ""
	}
	return r.words[0].text
}

func (r *expressionReader) take() lexeme {
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

func (r *expressionReader) binary(least int) (expressed, error) {
	r.depth++
	if r.depth > 200 {
		return expressed{}, errNotTranslated
	}
	defer func() { r.depth-- }()
	left, err := r.unary()
	for err == nil {
		operator := r.peek()
		of, is := precedence[operator]
		if !is || of < least {
			break
		}
		r.take()
		var right expressed
		if right, err = r.binary(of + 1); err == nil {
			left = joined(left, operator, right)
		}
	}
	return left, err
}

func joined(left expressed, operator string, right expressed) expressed {
	if operator == "+" && (left.typ == "text" || right.typ == "text") {
		pieces := append(append([]string{}, left.asPieces()...), right.asPieces()...)
		return expressed{left.asText() + " + " + right.asText(), "text", pieces}
	}
	if e, is := ofText(left, operator, right); is {
		return e
	}
	e := expressed{written: left.written + " " + operator + " " + right.written, typ: left.typ}
	switch precedence[operator] {
	case 1, 2, 3, 4:
		e.typ = "boolean"
	}
	numbers := left.typ + right.typ
	if precedence[operator] >= 5 && (numbers == "numberinteger" || numbers == "integernumber") {
		e = expressed{written: "double(" + left.written + ") " + operator + " double(" + right.written + ")", typ: "number"}
	}
	return e
}

// textAt is the text at a path of a message, with its second argument or without.
var textAt = regexp.MustCompile(`^(\w+)\.text\(("(?:[^"\\]|\\.)*"|'[^']*')(, '')?\)$`)

// ofText joins a text of a message or property with a value of another type, which it has in its schema.
func ofText(left expressed, operator string, right expressed) (expressed, bool) {
	text, value := left, right
	if text.typ != "text" {
		text, value = right, left
	}
	isNot := operator == "!="
	switch isEqual := isNot || operator == "=="; {
	case text.typ != "text":
		return expressed{}, false
	case isEqual && (value.written == "true" || value.written == "false"):
		e := "(" + text.written + " in ['true', '1'])"
		if isNot == (value.written == "true") {
			e = "!" + e
		}
		return expressed{written: e, typ: "boolean"}, true
	case isEqual && value.written == "null":
		e := textAt.ReplaceAllString(text.written, "$1.has($2)")
		if e == text.written {
			e = "(" + text.written + " != '')"
		}
		if !isNot {
			e = "!" + e
		}
		return expressed{written: e, typ: "boolean"}, true
	case operator == "+" || precedence[operator] < 3:
		return expressed{}, false
	case value.typ != "integer" && value.typ != "number" && (precedence[operator] < 5 || value.typ != "text"):
		return expressed{}, false
	}
	e := expressed{written: "double(" + left.written + ") " + operator + " double(" + right.written + ")", typ: "number"}
	if precedence[operator] < 5 {
		e.typ = "boolean"
	}
	return e, true
}

func (e expressed) asText() string {
	if e.typ == "text" {
		return e.written
	}
	return "string(" + e.written + ")"
}

func (e expressed) asPieces() []string {
	if len(e.pieces) > 0 {
		return e.pieces
	}
	return []string{e.written}
}

func (r *expressionReader) unary() (expressed, error) {
	if len(r.words) == 0 {
		return expressed{}, errNotTranslated
	}
	w := r.take()
	switch {
	case w.kind == 't':
		return expressed{literal(w.text), "text", []string{"'" + w.text}}, nil
	case w.kind == '0':
		if strings.Contains(w.text, ".") {
			return expressed{written: w.text, typ: "number"}, nil
		}
		return expressed{written: w.text, typ: "integer"}, nil
	case w.text == "!" || w.text == "-":
		e, err := r.unary()
		e.written, e.pieces = w.text+e.written, nil
		return e, err
	case w.text == "(":
		e, err := r.binary(1)
		if err == nil && r.peek() == ")" {
			r.take()
			e.written, e.pieces = "("+e.written+")", nil
			return r.suffix(e)
		}
		return e, errNotTranslated
	case w.kind == 'n':
		return r.named(w)
	}
	return expressed{}, errNotTranslated
}

func literal(text string) string {
	if strings.ContainsAny(text, "'\\\n\r\t") {
		return strconv.Quote(text)
	}
	return "'" + text + "'"
}

// suffix takes .ToString() behind a value.
func (r *expressionReader) suffix(e expressed) (expressed, error) {
	if r.peek() == "." {
		return e, errNotTranslated
	}
	return e, nil
}

// arguments reads what stands in parentheses.
func (r *expressionReader) arguments() ([]expressed, error) {
	r.take()
	var all []expressed
	for r.peek() != ")" {
		if len(r.words) == 0 {
			return nil, errNotTranslated
		}
		e, err := r.binary(1)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		if r.peek() == "," {
			r.take()
		}
	}
	r.take()
	return all, nil
}

// conversions are functions of .NET with those that do the same here.
var conversions = map[string][2]string{
	"System.Convert.ToInt32": {"int", "integer"}, "System.Convert.ToInt64": {"int", "integer"}, "System.Int32.Parse": {"int", "integer"},
	"System.Convert.ToString": {"string", "text"}, "System.Convert.ToDouble": {"double", "number"},
	"System.Convert.ToDecimal": {"double", "number"},
	"System.Double.Parse":      {"double", "number"}, "System.Convert.ToBoolean": {"bool", "boolean"},
	"System.Boolean.Parse": {"bool", "boolean"},
}

func (r *expressionReader) named(w lexeme) (expressed, error) {
	name := w.text
	constants := map[string]expressed{
		"true": {written: "true", typ: "boolean"}, "false": {written: "false", typ: "boolean"}, "null": {written: "null", typ: "any"},
		"System.DateTime.Now": {written: "now", typ: "timestamp"}, "System.DateTime.UtcNow": {written: "now", typ: "timestamp"},
		"System.String.Empty":        {written: "''", typ: "text", pieces: []string{"'"}},
		"System.Environment.NewLine": {written: `"\n"`, typ: "text"},
	}
	if e, is := constants[name]; is {
		return e, nil
	}
	first, rest, _ := strings.Cut(name, ".")
	isCall := r.peek() == "("
	switch {
	case name == "xpath" && isCall:
		return r.xpath()
	case name == "System.Guid.NewGuid" && isCall:
		if _, err := r.arguments(); err != nil {
			return expressed{}, err
		}
		return r.text(expressed{written: "new_id", typ: "text"})
	case isCall && conversions[name][0] != "":
		arguments, err := r.arguments()
		if err != nil || len(arguments) != 1 {
			return expressed{}, errors.Join(err, errNotTranslated)
		}
		return expressed{written: conversions[name][0] + "(" + arguments[0].written + ")", typ: conversions[name][1]}, nil
	case isCall && strings.HasSuffix(name, ".ToString"):
		if arguments, err := r.arguments(); err != nil || len(arguments) > 0 {
			return expressed{}, errors.Join(err, errNotTranslated)
		}
		e, err := (&expressionReader{o: r.o}).named(lexeme{'n', strings.TrimSuffix(name, ".ToString"), w.line})
		return expressed{written: e.asText(), typ: "text"}, err
	case r.o.messages[name] != nil && isCall:
		return r.property(name)
	case r.o.messages[first] != nil && !isCall && rest != "":
		return expressed{written: r.o.names[first] + ".text('" + fieldPath(rest) + "')", typ: "text"}, nil
	case r.o.variables[name] != "" && !isCall:
		return expressed{written: r.o.names[name], typ: r.o.variables[name]}, nil
	case r.o.exceptions[first] && rest == "Message":
		return expressed{written: first + ".message", typ: "text"}, nil
	}
	return expressed{}, fmt.Errorf("%w: %s", errNotTranslated, name)
}

// text takes ToString of a value that a call gave.
func (r *expressionReader) text(e expressed) (expressed, error) {
	if len(r.words) > 1 && r.words[0].text == "." && r.words[1].text == "ToString" {
		r.words = r.words[2:]
		if r.peek() == "(" {
			_, err := r.arguments()
			return e, err
		}
	}
	return e, nil
}

// fieldPath is the path of a distinguished field, which counts from the root.
func fieldPath(dotted string) string { return "/*/" + strings.ReplaceAll(dotted, ".", "/") }

var stringOf = regexp.MustCompile(`^string\((.*)\)$`)

func (r *expressionReader) xpath() (expressed, error) {
	message, path, err := r.xpathArguments()
	if err != nil {
		return expressed{}, err
	}
	if found := stringOf.FindStringSubmatch(path); found != nil {
		return expressed{written: message + ".text(" + literal(found[1]) + ", '')", typ: "text"}, nil
	}
	for _, function := range []string{"count(", "sum(", "number("} {
		if strings.HasPrefix(path, function) {
			return expressed{written: message + ".number(" + literal(path) + ")", typ: "number"}, nil
		}
	}
	return expressed{written: message + ".text(" + literal(path) + ")", typ: "text"}, nil
}

// xpathArguments reads (message, "path").
func (r *expressionReader) xpathArguments() (message, path string, err error) {
	w := r.words
	if len(w) < 5 || w[0].text != "(" || r.o.messages[w[1].text] == nil || w[2].text != "," || w[3].kind != 't' || w[4].text != ")" {
		return "", "", fmt.Errorf("%w: xpath with a path that is put together", errNotTranslated)
	}
	r.words = w[5:]
	return r.o.names[w[1].text], w[3].text, nil
}

// property reads message(Class.Property).
func (r *expressionReader) property(message string) (expressed, error) {
	w := r.words
	if len(w) < 3 || w[2].text != ")" {
		return expressed{}, errNotTranslated
	}
	r.words = w[3:]
	name, err := r.o.propertyName(w[1].text)
	return expressed{written: "string(" + r.o.names[message] + ".property(" + literal(name) + "))", typ: "text"}, err
}
