package xquery

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/antchfx/xpath"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// A Query is an XQuery that was read: its path in XPath 1.0, in pieces between which values of variables stand.
type Query struct {
	method       string
	namespaces   map[string]string
	defaultSpace string
	tokens       []token
	compiled     *xpath.Expr // where no variable stands in it
}

// Variables gives the value of sql:variable or sql:column as a literal of XPath: a number, or a text in quotes.
type Variables func(name string) (literal string, err *fault.Error)

// maxQuery is how long a query may be, so that none uses up the stack of its compiler.
const maxQuery = 1 << 16

// Compile reads a query of a method. Namespaces are those of WITH XMLNAMESPACES by their prefix; that of "" is the default.
func Compile(method, written string, namespaces map[string]string) (*Query, *fault.Error) {
	q := &Query{method: method, namespaces: map[string]string{}}
	for prefix, space := range namespaces {
		if prefix == "" {
			q.defaultSpace = space
		} else {
			q.namespaces[prefix] = space
		}
	}
	if len(written) > maxQuery {
		return nil, fault.New(40517, method+"() with more than 65536 characters")
	}
	body, err := q.prolog(written)
	if err != nil {
		return nil, err
	}
	if q.tokens, err = q.split(body); err != nil {
		return nil, err
	}
	for _, t := range q.tokens {
		prefix, _, isPrefixed := strings.Cut(t.text, ":")
		if t.kind == name && isPrefixed && q.namespaces[prefix] == "" {
			return nil, fault.New(2229, method, prefix)
		}
	}
	if method == "value" && !isSingleton(q.tokens) {
		return nil, fault.New(2389, method, method)
	}
	if len(q.Names()) > 0 {
		return q, nil
	}
	if q.compiled, err = q.compile(nil); err != nil {
		return nil, err
	}
	return q, nil
}

// Names gives the names of sql:variable and sql:column in the query.
func (q *Query) Names() (names []string) {
	for _, t := range q.tokens {
		if t.kind == variable {
			names = append(names, t.text)
		}
	}
	return names
}

// prolog reads declarations of namespaces.
func (q *Query) prolog(written string) (string, *fault.Error) {
	body := strings.TrimSpace(written)
	for isDeclaration(body) {
		declaration, rest, found := strings.Cut(body, ";")
		if !found {
			return "", q.syntax(body)
		}
		words := strings.TrimSpace(strings.TrimPrefix(declaration, "declare"))
		name, uri, hasURI := strings.Cut(words, "\"")
		if !hasURI {
			name, uri, hasURI = strings.Cut(words, "'")
		}
		uri = strings.TrimRight(uri, "\"' ")
		name = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(name), "="))
		parts := strings.Fields(name)
		switch {
		case hasURI && strings.Join(parts, " ") == "default element namespace":
			q.defaultSpace = uri
		case hasURI && len(parts) == 2 && parts[0] == "namespace":
			q.namespaces[parts[1]] = uri
		default:
			return "", q.syntax(declaration)
		}
		body = strings.TrimSpace(rest)
	}
	return body, nil
}

// isDeclaration reports whether a query begins with a declaration: blanks of any kind stand behind the word.
func isDeclaration(body string) bool {
	rest, is := strings.CutPrefix(body, "declare")
	return is && strings.TrimLeft(rest, " \t\r\n") != rest
}

func (q *Query) syntax(near string) *fault.Error { return fault.New(2209, q.method, near) }

// compile puts the path together, with the values of variables.
func (q *Query) compile(values Variables) (compiled *xpath.Expr, refused *fault.Error) {
	var b strings.Builder
	for _, t := range q.tokens {
		if t.kind == variable {
			literal, err := values(t.text)
			if err != nil {
				return nil, err
			}
			b.WriteString(literal)
			continue
		}
		b.WriteString(t.written())
	}
	defer func() {
		if found := recover(); found != nil {
			compiled, refused = nil, q.syntax(b.String())
		}
	}()
	compiled, err := xpath.CompileWithNS(b.String(), q.namespaces)
	if err != nil {
		return nil, q.syntax(b.String())
	}
	return compiled, nil
}

// Evaluate gives the nodes at the path from a node on, or the one value that the query has instead.
func (q *Query) Evaluate(from *Node, values Variables) (nodes []*Node, single any, refused *fault.Error) {
	compiled := q.compiled
	if compiled == nil {
		found, err := q.compile(values)
		if err != nil {
			return nil, nil, err
		}
		compiled = found
	}
	defer func() {
		if found := recover(); found != nil {
			nodes, single, refused = nil, nil, q.syntax(fmt.Sprint(found))
		}
	}()
	steps := maxSteps
	result := compiled.Evaluate(&navigator{at: from, defaultSpace: q.defaultSpace, steps: &steps})
	iterator, are := result.(*xpath.NodeIterator)
	if !are {
		return nil, result, nil
	}
	seen := map[*Node]bool{}
	for iterator.MoveNext() {
		if n, is := iterator.Current().(*navigator); is && !seen[n.at] {
			seen[n.at] = true
			nodes = append(nodes, n.at)
		}
	}
	return nodes, nil, nil
}

// Value gives the text of the one node or value; found is false where there is none.
func (q *Query) Value(from *Node, values Variables) (text string, found bool, err *fault.Error) {
	nodes, single, err := q.Evaluate(from, values)
	if err != nil {
		return "", false, err
	}
	switch single := single.(type) {
	case string:
		return single, true, nil
	case float64:
		return strconv.FormatFloat(single, 'f', -1, 64), true, nil
	case bool:
		return strconv.FormatBool(single), true, nil
	}
	if len(nodes) == 0 {
		return "", false, nil
	}
	return nodes[0].text(), true, nil
}

// Exists reports whether the query finds anything; a query with a value of its own does.
func (q *Query) Exists(from *Node, values Variables) (bool, *fault.Error) {
	nodes, single, err := q.Evaluate(from, values)
	return single != nil || len(nodes) > 0, err
}

// XML gives what the query finds as xml: nodes one after another, or the text of a value.
func (q *Query) XML(from *Node, values Variables) (string, *fault.Error) {
	nodes, single, err := q.Evaluate(from, values)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, n := range nodes {
		if n.kind == xpath.AttributeNode {
			return "", fault.New(2396, q.method)
		}
		b.WriteString(n.XML())
	}
	if single != nil {
		escape(&b, fmt.Sprint(single), false)
	}
	return b.String(), nil
}

// Nodes gives what the query finds, each node as xml. Error 2396 for an attribute, which has no xml of its own.
func (q *Query) Nodes(from *Node, values Variables) ([]string, *fault.Error) {
	nodes, _, err := q.Evaluate(from, values)
	if err != nil {
		return nil, err
	}
	found := make([]string, len(nodes))
	for i, n := range nodes {
		if n.kind == xpath.AttributeNode {
			return nil, fault.New(2396, q.method)
		}
		found[i] = n.XML()
	}
	return found, nil
}

// Path gives the path in XPath 1.0 with the namespaces of its prefixes; false where it has variables or a default namespace.
func (q *Query) Path() (path string, namespaces map[string]string, ok bool) {
	var b strings.Builder
	for _, t := range q.tokens {
		b.WriteString(t.written())
	}
	return b.String(), q.namespaces, len(q.Names()) == 0 && q.defaultSpace == ""
}

// Element gives the first element of a document, from which the methods of a row of nodes begin.
func (n *Node) Element() *Node {
	for _, child := range n.children {
		if child.kind == xpath.ElementNode {
			return child
		}
	}
	return n
}
