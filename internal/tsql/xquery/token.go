package xquery

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

type tokenKind uint8

const (
	symbol tokenKind = iota
	name
	number
	text
	variable // sql:variable("@x"), sql:column("t.x")
)

// A token is a part of a query as it is handed to XPath.
type token struct {
	kind tokenKind
	text string
}

// written gives a token in XPath, apart from its neighbours.
func (t token) written() string {
	if t.kind == name || t.kind == number {
		return " " + t.text
	}
	return t.text
}

// isOperand reports whether an operator may follow.
func (t token) isOperand() bool {
	return t.kind != symbol || t.text == ")" || t.text == "]" || t.text == "." || t.text == ".." || t.text == "*"
}

// operators has XPath's form of XQuery's words.
var operators = map[string]string{
	"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "and", "or": "or", "div": "div", "idiv": "div", "mod": "mod",
	"union": "|",
}

// numbers are the types of numbers: XPath has one.
var numbers = map[string]bool{
	"decimal": true, "double": true, "float": true, "integer": true, "long": true, "int": true, "short": true, "byte": true,
	"nonNegativeInteger": true, "positiveInteger": true, "unsignedLong": true, "unsignedInt": true, "unsignedShort": true,
	"unsignedByte": true,
}

// notPaths are words that begin what is no path.
var notPaths = map[string]bool{"for": true, "let": true, "if": true, "some": true, "every": true, "element": true, "attribute": true}

// split cuts a query into tokens and turns them into those of XPath.
func (q *Query) split(body string) ([]token, *fault.Error) {
	var tokens []token
	for body = strings.TrimSpace(body); body != ""; body = strings.TrimLeft(body, " \t\r\n") {
		t, rest, err := q.next(body)
		if err != nil {
			return nil, err
		}
		isAfterOperand := len(tokens) > 0 && tokens[len(tokens)-1].isOperand()
		body = strings.TrimLeft(rest, " \t\r\n")
		if t.kind != name {
			if t.kind == symbol && (t.text == "<" || t.text == "{") && !isAfterOperand {
				return nil, fault.New(40517, "XQuery constructors")
			}
			tokens = append(tokens, t)
			continue
		}
		if operator, is := operators[t.text]; is && isAfterOperand {
			tokens = append(tokens, token{symbol, " " + operator + " "})
			continue
		}
		if notPaths[t.text] && (strings.HasPrefix(body, "$") || strings.HasPrefix(body, "(") || strings.HasPrefix(body, "{")) {
			return nil, fault.New(40517, "XQuery "+t.text)
		}
		called, rest, err := q.called(t, body)
		if err != nil {
			return nil, err
		}
		body = rest
		tokens = append(tokens, called...)
	}
	if len(tokens) == 0 {
		return nil, q.syntax("")
	}
	return tokens, nil
}

// called turns the names of functions into those of XPath.
func (q *Query) called(t token, rest string) ([]token, string, *fault.Error) {
	if !strings.HasPrefix(rest, "(") {
		return []token{t}, rest, nil
	}
	local := strings.TrimPrefix(t.text, "fn:")
	switch {
	case local == "data": // value() takes the text of a node by itself
		return nil, rest, nil
	case t.text == "sql:variable" || t.text == "sql:column":
		inside, after, found := strings.Cut(rest[1:], ")")
		if !found {
			return nil, "", q.syntax(rest)
		}
		return []token{{variable, strings.Trim(inside, " \"'")}}, after, nil
	case local == "empty":
		return []token{{name, "not"}}, rest, nil
	case local == "exists":
		return []token{{name, "boolean"}}, rest, nil
	case strings.HasPrefix(t.text, "xs:"):
		switch {
		case t.text == "xs:string":
			return []token{{name, "string"}}, rest, nil
		case numbers[strings.TrimPrefix(t.text, "xs:")]:
			return []token{{name, "number"}}, rest, nil
		}
		return nil, "", fault.New(40517, "XQuery "+t.text)
	}
	return []token{{name, local}}, rest, nil
}

// next reads one token.
func (q *Query) next(body string) (t token, rest string, err *fault.Error) {
	r, size := utf8.DecodeRuneInString(body)
	switch {
	case r == '"' || r == '\'':
		inside, after, found := strings.Cut(body[1:], string(r))
		if !found {
			return t, "", q.syntax(body)
		}
		return token{text, string(r) + inside + string(r)}, after, nil
	case r >= '0' && r <= '9':
		end := len(body) - len(strings.TrimLeft(body, "0123456789.eE"))
		return token{number, body[:end]}, body[end:], nil
	case r == '_' || unicode.IsLetter(r):
		end := nameEnd(body)
		return token{name, body[:end]}, body[end:], nil
	case strings.HasPrefix(body, "*:"):
		end := nameEnd(body[2:])
		return token{name, "*[local-name()='" + body[2:2+end] + "']"}, body[2+end:], nil
	case strings.HasPrefix(body, "(:"):
		_, after, found := strings.Cut(body, ":)")
		if !found {
			return t, "", q.syntax(body)
		}
		return token{symbol, " "}, after, nil
	}
	for _, s := range []string{"//", "..", "::", "!=", "<=", ">="} {
		if strings.HasPrefix(body, s) {
			return token{symbol, s}, body[len(s):], nil
		}
	}
	if !strings.ContainsRune("/.()[]@,=<>|+-*{$", r) {
		return t, "", q.syntax(body)
	}
	if r == '$' {
		return t, "", fault.New(40517, "XQuery variables")
	}
	return token{symbol, body[:size]}, body[size:], nil
}

// beginsName reports whether the local part of a name follows a prefix.
func beginsName(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return r == '*' || r == '_' || unicode.IsLetter(r)
}

// nameEnd gives the length of a name, perhaps with a prefix.
func nameEnd(body string) int {
	for at, r := range body {
		switch {
		case r == '_' || r == '-' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r):
		case r == ':' && beginsName(body[at+1:]):
		case r == '*' && at > 0 && body[at-1] == ':':
		default:
			return at
		}
	}
	return len(body)
}
