package xquery

import "github.com/antchfx/xpath"

// A navigator moves through a tree as the library of paths asks, and counts its moves.
type navigator struct {
	at           *Node
	defaultSpace string // of names without a prefix
	steps        *int
}

// costPanic ends an evaluation that takes too many steps.
type costPanic struct{}

// maxSteps bounds an evaluation: some ten seconds.
const maxSteps = 50_000_000

func (n *navigator) move(to *Node) bool {
	*n.steps--
	if *n.steps < 0 {
		panic(costPanic{})
	}
	if to == nil {
		return false
	}
	n.at = to
	return true
}

// NodeType implements [xpath.NodeNavigator], as all that follow.
func (n *navigator) NodeType() xpath.NodeType { return n.at.kind }

func (n *navigator) LocalName() string { return n.at.local }

// Prefix is empty for a node that a name without a prefix finds: an element of the default namespace, an attribute of none.
func (n *navigator) Prefix() string {
	expected := n.defaultSpace
	if n.at.kind == xpath.AttributeNode {
		expected = ""
	}
	if n.at.space == expected {
		return ""
	}
	return "other"
}

func (n *navigator) NamespaceURL() string { return n.at.space }

func (n *navigator) Value() string { return n.at.text() }

func (n *navigator) Copy() xpath.NodeNavigator {
	another := *n
	return &another
}

func (n *navigator) MoveToRoot() {
	for n.at.parent != nil {
		n.at = n.at.parent
	}
}

func (n *navigator) MoveToParent() bool { return n.move(n.at.parent) }

func (n *navigator) MoveToChild() bool {
	if len(n.at.children) == 0 {
		return false
	}
	return n.move(n.at.children[0])
}

// brother gives the node so many places after this one among its brothers, or nil.
func (n *navigator) brother(places int) *Node {
	if n.at.parent == nil {
		return nil
	}
	brothers := n.at.parent.children
	if n.at.kind == xpath.AttributeNode {
		brothers = n.at.parent.attrs
	}
	if at := n.at.at + places; at >= 0 && at < len(brothers) {
		return brothers[at]
	}
	return nil
}

func (n *navigator) MoveToNext() bool {
	return n.at.kind != xpath.AttributeNode && n.move(n.brother(1))
}

func (n *navigator) MoveToPrevious() bool {
	return n.at.kind != xpath.AttributeNode && n.move(n.brother(-1))
}

func (n *navigator) MoveToFirst() bool {
	return n.at.kind != xpath.AttributeNode && n.at.at > 0 && n.move(n.brother(-n.at.at))
}

func (n *navigator) MoveToNextAttribute() bool {
	if n.at.kind == xpath.AttributeNode {
		return n.move(n.brother(1))
	}
	if len(n.at.attrs) == 0 {
		return false
	}
	return n.move(n.at.attrs[0])
}

func (n *navigator) MoveTo(other xpath.NodeNavigator) bool {
	to, is := other.(*navigator)
	if !is {
		return false
	}
	n.at = to.at
	return true
}
