package process

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Sizes of a state in bytes.
const (
	stateWarned = 10 << 20
	stateMost   = 64 << 20
)

// state is the snapshot of an instance: a tree of the shapes that run, with what they know.
type state struct {
	Version string `json:"version"` // of the program
	Serial  int    `json:"serial"`  // the last number that was given to a frame, a timer or a wait
	Root    *node  `json:"root"`
}

// node is a shape that runs.
type node struct {
	Shape   int               `json:"s"`
	Step    int               `json:"n,omitempty"` // how far it is; each shape counts its own
	Kids    []*node           `json:"k,omitempty"` // in parallel a branch that has ended is null
	Frames  []*frame          `json:"f,omitempty"` // the innermost last
	ID      string            `json:"i,omitempty"` // of a timer or an activity
	At      *time.Time        `json:"at,omitempty"`
	List    []json.RawMessage `json:"l,omitempty"`
	Done    []*committed      `json:"d,omitempty"` // scopes within it that have ended well, and can be taken back
	Left    []*committed      `json:"b,omitempty"` // the same of scopes that ran within it when it was broken off
	Fault   *Fault            `json:"e,omitempty"` // that it handles, or passes on when it has compensated
	Subject *committed        `json:"c,omitempty"` // that it takes back

	shape  *shape
	parent *node
}

// frame has the values of names that a part of the definition declares.
type frame struct {
	ID       int                          `json:"id"`
	Owner    int                          `json:"o"`
	Messages map[string]*Message          `json:"m,omitempty"`
	Values   map[string]json.RawMessage   `json:"v,omitempty"`
	Sets     map[string]map[string]string `json:"c,omitempty"` // values of correlation sets, as canonical texts
}

func (f *frame) message(name string) *Message {
	if f == nil {
		return nil
	}
	return f.Messages[name]
}

func (f *frame) value(name string) json.RawMessage {
	if f == nil || f.Values[name] == nil {
		return json.RawMessage("null")
	}
	return f.Values[name]
}

// committed is a scope that has ended well, with its values of then.
type committed struct {
	Shape  int          `json:"s"`
	Serial int          `json:"id"` // ascends in the order in which scopes end
	Frames []*frame     `json:"f,omitempty"`
	Inner  []*committed `json:"d,omitempty"`
}

// frameOf finds the values that a part of the definition declares, from a node outwards.
func (n *node) frameOf(owner *shape) *frame {
	for ; n != nil; n = n.parent {
		for _, f := range slices.Backward(n.Frames) {
			if f.Owner == owner.id {
				return f
			}
		}
	}
	return nil
}

// begin makes the node of a shape, with the first values of what it declares.
func (r *run) begin(s *shape, parent *node) *node {
	n := &node{Shape: s.id, shape: s, parent: parent}
	if s.names != nil {
		f := &frame{
			ID: r.number(), Owner: s.id, Messages: map[string]*Message{}, Values: map[string]json.RawMessage{},
			Sets: map[string]map[string]string{},
		}
		for name, v := range s.names.variables {
			f.Values[name] = v.value
		}
		n.Frames = []*frame{f}
	}
	return n
}

func (r *run) number() int {
	r.state.Serial++
	return r.state.Serial
}

// errForeignState is a fault that no scope catches: nothing of the state can be believed.
var errForeignState error = &Fault{
	Code: codeVersion, Message: "the state is not one of this version of the orchestration",
	Remedy: "terminate the instance, or serve its host with the version of Parley that wrote the state",
}

// readState reads a snapshot, and refuses one that is not of this program.
func (p *Program) readState(written json.RawMessage) (*state, error) {
	s := &state{}
	if err := json.Unmarshal(written, s); err != nil {
		return nil, fmt.Errorf("%w: %w", errForeignState, err)
	}
	if s.Version != p.version || s.Root == nil || s.Root.Shape != p.root.id || s.Serial < 0 {
		return nil, errForeignState
	}
	return s, p.adopt(s.Root, nil, 0)
}

// nestingMost bounds how deep shapes run in each other.
const nestingMost = 1000

// adopt connects a node with its shape and its parent.
func (p *Program) adopt(n, parent *node, depth int) error {
	if n.Shape < 0 || n.Shape >= len(p.shapes) || depth > nestingMost {
		return errForeignState
	}
	n.shape, n.parent = p.shapes[n.Shape], parent
	if n.Step < 0 || !n.shape.isState(n) {
		return errForeignState
	}
	for _, f := range n.Frames {
		if err := p.adoptFrame(f); err != nil {
			return err
		}
	}
	for _, c := range slices.Concat(n.Done, n.Left, []*committed{n.Subject}) {
		if c != nil {
			if err := p.adoptCommitted(c, depth+1); err != nil {
				return err
			}
		}
	}
	if n.shape.names != nil && n.Subject == nil && n.frameOf(n.shape) == nil {
		return errForeignState
	}
	for _, kid := range n.Kids {
		if kid == nil {
			continue
		}
		if err := p.adopt(kid, n, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) adoptFrame(f *frame) error {
	if f == nil || f.Owner < 0 || f.Owner >= len(p.shapes) || p.shapes[f.Owner].names == nil {
		return errForeignState
	}
	for _, m := range f.Messages {
		if m == nil {
			return errForeignState
		}
	}
	if f.Messages == nil {
		f.Messages = map[string]*Message{}
	}
	if f.Values == nil {
		f.Values = map[string]json.RawMessage{}
	}
	if f.Sets == nil {
		f.Sets = map[string]map[string]string{}
	}
	return nil
}

func (p *Program) adoptCommitted(c *committed, depth int) error {
	if c == nil || c.Shape < 0 || c.Shape >= len(p.shapes) || depth > nestingMost {
		return errForeignState
	}
	if _, is := p.shapes[c.Shape].act.(*scope); !is {
		return errForeignState
	}
	for _, f := range c.Frames {
		if err := p.adoptFrame(f); err != nil {
			return err
		}
	}
	for _, inner := range c.Inner {
		if err := p.adoptCommitted(inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// copied gives a frame of its own with the same values. Messages and values are never changed in place.
func (f *frame) copied() *frame {
	another := *f
	another.Messages, another.Values, another.Sets = maps.Clone(f.Messages), maps.Clone(f.Values), maps.Clone(f.Sets)
	return &another
}
