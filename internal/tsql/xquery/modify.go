package xquery

import (
	"strings"

	"github.com/antchfx/xpath"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// A Modification is a statement of XML DML that was read: insert, delete or replace value of.
type Modification struct {
	verb    string // insert, delete or replace
	place   string // of insert: first, last, after or before
	target  *Query
	content []content // of insert
	value   *Query    // of replace
	spaces  []declaration
}

const modify = "modify"

// CompileModification reads the argument of modify().
func CompileModification(written string, namespaces map[string]string) (*Modification, *fault.Error) {
	q := &Query{method: modify, namespaces: map[string]string{}, defaultSpace: namespaces[""]}
	for prefix, space := range namespaces {
		if prefix != "" {
			q.namespaces[prefix] = space
		}
	}
	body, err := q.prolog(written)
	if err != nil {
		return nil, err
	}
	inside := map[string]string{"": q.defaultSpace}
	m := &Modification{}
	for prefix, space := range q.namespaces {
		inside[prefix] = space
		m.spaces = append(m.spaces, declaration{prefix, space})
	}
	if q.defaultSpace != "" {
		m.spaces = append(m.spaces, declaration{"", q.defaultSpace})
	}
	r := &modificationReader{query: q, spaces: inside, rest: body}
	switch {
	case r.accept("insert"):
		m.verb = "insert"
		err = r.insertion(m)
	case r.accept("delete"):
		m.verb = "delete"
		m.target, err = Compile(modify, r.rest, inside)
	case r.accept("replace", "value", "of"):
		m.verb = "replace"
		err = r.replacement(m)
	default:
		err = q.syntax(body)
	}
	return m, err
}

// XMLOf gives the nodes of a variable or a column of type xml; false for another type.
type XMLOf func(name string) (nodes string, is bool, err *fault.Error)

// Names gives the names of sql:variable and sql:column in the statement.
func (m *Modification) Names() (names []string) {
	for _, q := range []*Query{m.target, m.value} {
		if q != nil {
			names = append(names, q.Names()...)
		}
	}
	for _, c := range m.content {
		if c.variable != "" {
			names = append(names, c.variable)
		}
		for _, p := range c.parts {
			if p.query != nil {
				names = append(names, p.query.Names()...)
			}
		}
	}
	return names
}

// Apply gives the text of the value with the change.
func (m *Modification) Apply(text string, values Variables, xmlOf XMLOf) (string, *fault.Error) {
	root, err := Parse(text)
	if err != nil {
		return "", err
	}
	targets, _, err := m.target.Evaluate(root, values)
	if err != nil {
		return "", err
	}
	switch {
	case m.verb == "delete":
		for _, n := range targets {
			n.remove()
		}
	case len(targets) == 0: // nothing is changed
	case m.verb == "replace":
		err = m.replace(root, targets[0], values)
	default:
		err = m.insert(root, targets[0], values, xmlOf)
	}
	if err != nil {
		return "", err
	}
	return root.XML(), nil
}

func (m *Modification) replace(root, target *Node, values Variables) *fault.Error {
	if target.kind != xpath.TextNode && target.kind != xpath.AttributeNode {
		return fault.New(2356, "element("+qualified(target.prefix, target.local)+",xdt:untyped) ?")
	}
	text, _, err := m.value.Value(root, values)
	if err != nil {
		return err
	}
	if text == "" && target.kind == xpath.TextNode {
		target.remove()
	}
	target.value = text
	return nil
}

func (m *Modification) insert(root, target *Node, values Variables, xmlOf XMLOf) *fault.Error {
	attributes, nodes, err := m.made(root, values, xmlOf)
	if err != nil {
		return err
	}
	isInto := m.place == "first" || m.place == "last"
	isHolder := target.kind == xpath.ElementNode || target.kind == xpath.RootNode
	if isInto && !isHolder || !isInto && (target.parent == nil || len(attributes) > 0) {
		return fault.New(2226, "insert", "text()")
	}
	if len(attributes) > 0 && target.kind != xpath.ElementNode {
		return fault.New(2226, "insert", "document")
	}
	for _, a := range attributes {
		for _, known := range target.attrs {
			if known.local == a.local && known.space == a.space {
				return fault.New(9437)
			}
		}
		a.parent, a.at = target, len(target.attrs)
		target.attrs = append(target.attrs, a)
	}
	switch m.place {
	case "first":
		target.put(0, nodes)
	case "last":
		target.put(len(target.children), nodes)
	case "before":
		target.parent.put(target.at, nodes)
	default:
		target.parent.put(target.at+1, nodes)
	}
	return nil
}

// made makes the nodes that are inserted.
func (m *Modification) made(root *Node, values Variables, xmlOf XMLOf) (attributes, nodes []*Node, err *fault.Error) {
	for _, c := range m.content {
		if c.variable != "" {
			text, is, err := xmlOf(c.variable)
			if err != nil {
				return nil, nil, err
			}
			if is {
				fragment, err := Parse(text)
				if err != nil {
					return nil, nil, err
				}
				nodes = append(nodes, fragment.children...)
				continue
			}
			literal, err := Compile(modify, `sql:variable("`+c.variable+`")`, nil)
			if err != nil {
				return nil, nil, err
			}
			c.parts, c.kind = []part{{query: literal}}, contentText
		}
		text, err := c.text(root, values)
		if err != nil {
			return nil, nil, err
		}
		switch c.kind {
		case contentAttribute:
			attributes = append(attributes, m.attribute(c.name, text))
		case contentText:
			if text != "" {
				nodes = append(nodes, &Node{kind: xpath.TextNode, value: text})
			}
		default:
			fragment, err := parseUnder(&Node{kind: xpath.RootNode, declared: m.spaces}, text)
			if err != nil {
				return nil, nil, err
			}
			nodes = append(nodes, fragment.children...)
		}
	}
	return attributes, nodes, nil
}

// attribute makes an attribute; its prefix is one of the namespaces in sight.
func (m *Modification) attribute(name, text string) *Node {
	prefix, local, isPrefixed := strings.Cut(name, ":")
	if !isPrefixed {
		return &Node{kind: xpath.AttributeNode, local: name, value: text}
	}
	a := &Node{kind: xpath.AttributeNode, local: local, prefix: prefix, value: text}
	for _, d := range m.spaces {
		if d.prefix == prefix {
			a.space = d.space
		}
	}
	return a
}

// put inserts children at a place.
func (n *Node) put(at int, nodes []*Node) {
	all := append([]*Node{}, n.children[:at]...)
	all = append(append(all, nodes...), n.children[at:]...)
	n.children = all
	n.number()
}

// remove takes a node away from its parent.
func (n *Node) remove() {
	if n.parent == nil {
		return
	}
	brothers := &n.parent.children
	if n.kind == xpath.AttributeNode {
		brothers = &n.parent.attrs
	}
	*brothers = append(append([]*Node{}, (*brothers)[:n.at]...), (*brothers)[n.at+1:]...)
	n.parent.number()
}

// number gives children and attributes their places.
func (n *Node) number() {
	for _, brothers := range [][]*Node{n.children, n.attrs} {
		for i, child := range brothers {
			child.parent, child.at = n, i
		}
	}
}
