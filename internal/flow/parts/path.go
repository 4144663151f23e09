package parts

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/antchfx/xpath"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// ErrCost says that a path needs more steps than there are left.
var ErrCost = errors.New("the path goes through too many parts")

// pathBytes bounds a path.
const pathBytes = 2048

// A Path is an expression of XPath 1.0. Several goroutines may use it.
type Path struct {
	Written string
	query   *xpath.Expr
	// of one that ends in a name or an attribute, which can be made where it is missing
	parent      *xpath.Expr
	last        string
	isAttribute bool
}

// Compile reads a path.
func Compile(written string, namespaces map[string]string) (*Path, error) {
	if len(written) > pathBytes {
		return nil, &fault.Fault{Message: fmt.Sprintf("a path has more than %d bytes", pathBytes), Remedy: "write a shorter one"}
	}
	query, err := compile(written, namespaces)
	if err != nil {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("path %s cannot be read: %v", written, err), Err: err,
			Remedy: "write XPath 1.0, such as /Order/Line[2]/@sku; prefixes are those of namespaces",
		}
	}
	p := &Path{Written: written, query: query}
	before, last, isStep := cutLast(written)
	if isStep && isName(strings.TrimPrefix(last, "@")) {
		if before == "" {
			before = "/"
		}
		if parent, err := compile(before, namespaces); err == nil {
			p.parent, p.last, p.isAttribute = parent, strings.TrimPrefix(last, "@"), strings.HasPrefix(last, "@")
		}
	}
	return p, nil
}

func cutLast(written string) (before, last string, isStep bool) {
	i := strings.LastIndexByte(written, '/')
	if i < 0 {
		return ".", written, true
	}
	return written[:i], written[i+1:], !strings.HasSuffix(written[:i], "/")
}

var literal = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// unjoined finds two operands beside each other: the library would take the first for the whole.
func unjoined(written string) string {
	words := strings.Fields(literal.ReplaceAllString(written, "''"))
	isOperator := func(word string) bool { return word == "and" || word == "or" || word == "div" || word == "mod" }
	for i := 1; i < len(words); i++ {
		before, word := words[i-1], words[i]
		isJoined := isOperator(before) || isOperator(word) || strings.ContainsAny(before[len(before)-1:], "([,=<>+-*|!/:") ||
			strings.ContainsAny(word[:1], ")],=<>+-*|!/([:")
		if !isJoined {
			return before + " " + word
		}
	}
	return ""
}

func isName(text string) bool {
	for i, r := range text {
		isLetter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r > 127
		if !isLetter && (i == 0 || !strings.ContainsRune("0123456789-.:", r)) {
			return false
		}
	}
	return text != ""
}

// compile reads an expression; the library panics where some of them are wrong.
func compile(written string, namespaces map[string]string) (query *xpath.Expr, err error) {
	defer func() {
		if found := recover(); found != nil {
			query, err = nil, fmt.Errorf("%v", found)
		}
	}()
	if written == "" {
		return nil, errors.New("it is empty")
	}
	if pair := unjoined(written); pair != "" {
		return nil, fmt.Errorf("nothing joins %q", pair)
	}
	if namespaces == nil {
		namespaces = map[string]string{}
	}
	return xpath.CompileWithNS(written, namespaces)
}

// Find gives the parts at a path, from the part on, in their order. An expression that gives no parts has a value instead: a text, a number
// or a truth. Steps says how many moves from part to part are left.
func (p Part) Find(path *Path, steps *int) (found []Part, value any, err error) {
	return p.find(path.query, steps)
}

func (p Part) find(query *xpath.Expr, steps *int) (found []Part, value any, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case costPanic:
			err = ErrCost
		default:
			err = fmt.Errorf("the path cannot be followed: %v", problem)
		}
	}()
	result := query.Evaluate(&navigator{p.document, p.at, steps})
	nodes, are := result.(*xpath.NodeIterator)
	if !are {
		return nil, result, nil
	}
	isFound := map[int32]bool{}
	for nodes.MoveNext() {
		if n, is := nodes.Current().(*navigator); is && !isFound[n.at] {
			isFound[n.at] = true
			found = append(found, Part{p.document, n.at})
		}
	}
	return found, nil, nil
}

type costPanic struct{}

// navigator moves through a document as the library asks, and counts.
type navigator struct {
	*Document
	at    int32
	steps *int
}

func (n *navigator) move(to int32) bool {
	*n.steps--
	if *n.steps < 0 {
		panic(costPanic{})
	}
	if to == none {
		return false
	}
	n.at = to
	return true
}

func (n *navigator) node() *node { return &n.nodes[n.at] }

// NodeType implements [xpath.NodeNavigator], as all that follow.
func (n *navigator) NodeType() xpath.NodeType {
	return [...]xpath.NodeType{xpath.RootNode, xpath.ElementNode, xpath.AttributeNode, xpath.TextNode}[n.node().kind]
}

func (n *navigator) LocalName() string { return n.node().local }

// Prefix is none, so that a name without a prefix is found in any namespace; but for attributes: without a prefix those are in none.
func (n *navigator) Prefix() string {
	if n.isAttribute() {
		return n.node().space
	}
	return ""
}

// NamespaceURL is compared with names that have a prefix.
func (n *navigator) NamespaceURL() string { return n.node().space }

func (n *navigator) Value() string {
	value := n.text(n.at)
	if *n.steps -= len(value) / 64; *n.steps < 0 {
		panic(costPanic{})
	}
	return value
}

func (n *navigator) Copy() xpath.NodeNavigator {
	another := *n
	return &another
}

func (n *navigator) MoveToRoot()          { n.at = 0 }
func (n *navigator) MoveToParent() bool   { return n.move(n.node().parent) }
func (n *navigator) MoveToChild() bool    { return n.move(n.node().first) }
func (n *navigator) isAttribute() bool    { return n.node().kind == isAttribute }
func (n *navigator) MoveToNext() bool     { return !n.isAttribute() && n.move(n.node().next) }
func (n *navigator) MoveToPrevious() bool { return !n.isAttribute() && n.move(n.node().previous) }

func (n *navigator) MoveToFirst() bool {
	if n.isAttribute() || n.node().previous == none {
		return false
	}
	return n.move(n.nodes[n.node().parent].first)
}

func (n *navigator) MoveToNextAttribute() bool {
	if n.isAttribute() {
		return n.move(n.node().next)
	}
	return n.move(n.node().attribute)
}

func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	o, is := other.(*navigator)
	if !is || o.Document != n.Document {
		return false
	}
	n.at = o.at
	return true
}
