// Package match finds the send ports that get a message, as parley_flow._p_match does in the database.
//
// A host matches what it takes in by itself, so that the database need not, and passes the epoch of its subscriptions along: when that is
// not the one of now, the database matches again. A test holds the two to each other.
package match

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A Predicate is one condition of an AND group, with canonical values.
type Predicate struct {
	Property string
	Type     string // text, integer, number, boolean or timestamp
	Operator string // exists, =, <>, <, <=, >, >=, &, in or prefix
	Value    string
	Values   []string // of in
}

// UnmarshalJSON reads a predicate of parley_flow._p_configuration, whose value is a text, of in an array of texts, and of exists missing.
func (p *Predicate) UnmarshalJSON(data []byte) error {
	var raw struct {
		Property, Type, Operator string
		Value                    json.RawMessage
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("read a predicate: %w", err)
	}
	*p = Predicate{Property: raw.Property, Type: raw.Type, Operator: raw.Operator}
	if len(raw.Value) == 0 {
		return nil
	}
	var into any = &p.Value
	if raw.Operator == "in" {
		into = &p.Values
	}
	if err := json.Unmarshal(raw.Value, into); err != nil {
		return fmt.Errorf("read the value of a predicate on %s: %w", raw.Property, err)
	}
	return nil
}

// MarshalJSON writes a predicate as UnmarshalJSON reads it.
func (p Predicate) MarshalJSON() ([]byte, error) {
	written := map[string]any{"property": p.Property, "operator": p.Operator}
	if p.Type != "" {
		written["type"] = p.Type
	}
	switch p.Operator {
	case "exists":
	case "in":
		written["value"] = p.Values
	default:
		written["value"] = p.Value
	}
	text, err := json.Marshal(written)
	if err != nil {
		return nil, fmt.Errorf("write a predicate on %s: %w", p.Property, err)
	}
	return text, nil
}

// A Group is an AND group of the filter of a send port: it is satisfied when all of its predicates are.
type Group struct {
	SendPort   int64 `json:"send_port"`
	Predicates []Predicate
}

// A Matcher has the subscriptions of one epoch. It does not change, and any number of goroutines may use it.
type Matcher struct {
	epoch  int64
	types  map[string]string   // of the properties that filters name
	equal  map[fact][]*Group   // by a value that one of its predicates demands
	exists map[string][]*Group // by a property that it demands
}

// A fact is that a property has a value, in canonical form.
type fact struct{ property, value string }

// everywhere is the property that each message has, and no host sets.
const everywhere = "MessageID"

// New makes a matcher of all groups, as parley_flow._p_configuration gives them with their epoch.
func New(epoch int64, groups []Group) *Matcher {
	m := &Matcher{epoch: epoch, types: map[string]string{}, equal: map[fact][]*Group{}, exists: map[string][]*Group{}}
	rarity := map[fact]int{}
	for _, g := range groups {
		for _, p := range g.Predicates {
			m.types[p.Property] = p.Type
			if p.Operator == "=" {
				rarity[fact{p.Property, p.Value}]++
			}
		}
	}
	for i := range groups {
		m.add(&groups[i], rarity)
	}
	return m
}

// add lets a group be found by its rarest equality, without one by the values of a list, without that by a property that is there.
func (m *Matcher) add(g *Group, rarity map[fact]int) {
	var anchor *Predicate
	for i, p := range g.Predicates {
		switch {
		case anchor == nil, rank(p) < rank(*anchor),
			p.Operator == "=" && anchor.Operator == "=" && rarity[fact{p.Property, p.Value}] < rarity[fact{anchor.Property, anchor.Value}]:
			anchor = &g.Predicates[i]
		}
	}
	switch {
	case anchor == nil:
	case anchor.Operator == "=":
		key := fact{anchor.Property, anchor.Value}
		m.equal[key] = append(m.equal[key], g)
	case anchor.Operator == "in":
		for _, value := range slices.Compact(slices.Sorted(slices.Values(anchor.Values))) {
			key := fact{anchor.Property, value}
			m.equal[key] = append(m.equal[key], g)
		}
	default:
		m.exists[anchor.Property] = append(m.exists[anchor.Property], g)
	}
}

func rank(p Predicate) int {
	switch p.Operator {
	case "=":
		return 0
	case "in":
		return 1
	}
	return 2
}

// Epoch gives the number of the subscriptions that the matcher has.
func (m *Matcher) Epoch() int64 { return m.epoch }

// Match gives the send ports that get a message with these promoted properties, in ascending order and each once. Values are the texts that
// the host sends to the database; a property without a value is left out.
func (m *Matcher) Match(promoted map[string]string) []int64 {
	facts := make(map[string]string, len(m.types))
	for property, of := range m.types {
		if value, ok := promoted[property]; ok && property != everywhere {
			facts[property] = Canonical(value, of)
		}
	}
	var ports []int64
	found := func(groups []*Group) {
		for _, g := range groups {
			if g.isSatisfied(facts) {
				ports = append(ports, g.SendPort)
			}
		}
	}
	for property, value := range facts {
		found(m.equal[fact{property, value}])
		found(m.exists[property])
	}
	found(m.exists[everywhere])
	slices.Sort(ports)
	return slices.Compact(ports)
}

func (g *Group) isSatisfied(facts map[string]string) bool {
	for i := range g.Predicates {
		p := &g.Predicates[i]
		if p.Property == everywhere {
			continue
		}
		value, ok := facts[p.Property]
		if !ok || !p.isSatisfied(value) {
			return false
		}
	}
	return true
}
