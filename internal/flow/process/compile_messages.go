package process

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/parley-broker/parley/internal/flow/match"
)

// reading fills the table of shapes; the shapes within shapes need it themselves.
func init() { //nolint:gochecknoinits // the table and what reads it refer to each other
	readers = map[string]func(*compiler, *shape, any, *names){
		"receive": (*compiler).receive, "send": (*compiler).send, "construct": (*compiler).construct, "transform": (*compiler).transform,
		"set": (*compiler).set, "decide": (*compiler).decide, "while": (*compiler).while, "for_each": (*compiler).forEach,
		"parallel": (*compiler).parallel, "listen": (*compiler).listen, "delay": (*compiler).delay, "scope": (*compiler).scope,
		"compensate": (*compiler).compensate, "throw": (*compiler).throw, "terminate": (*compiler).terminate, "suspend": (*compiler).suspend,
		"call": (*compiler).call, "start": (*compiler).start, "aggregate": (*compiler).aggregate, "activity": (*compiler).activity,
		"query": (*compiler).query,
	}
}

// message finds a message by its name.
func (c *compiler) message(path []string, name string, n *names) (reference, string) {
	typ, owner, isThere := n.message(name)
	if !isThere && name != "" {
		c.problem(path, "Declare it under messages.", "there is no message %q", name)
	}
	return reference{owner, name}, typ
}

// read says that a shape uses messages.
func (s *shape) read(n *names, uses ...string) {
	for _, name := range uses {
		if _, owner, is := n.message(name); is {
			s.reads = append(s.reads, reference{owner, name})
		}
	}
}

func (s *shape) readBy(expressions ...*expression) {
	for _, e := range expressions {
		if e != nil {
			s.read(e.names, e.uses...)
		}
	}
}

func (c *compiler) sets(o *object, key string, n *names) []setReference {
	var found []setReference
	for i, name := range o.texts(key) {
		properties, owner, isThere := n.correlation(name)
		if !isThere {
			c.problem(below(o.path, key, itoa(i)), "Declare it under correlations.", "there is no correlation set %q", name)
			continue
		}
		found = append(found, setReference{reference{owner, name}, properties})
	}
	return found
}

func references(sets []setReference) []reference {
	var all []reference
	for _, s := range sets {
		all = append(all, s.reference)
	}
	return all
}

func (c *compiler) receive(s *shape, given any, n *names) {
	c.receiveFrom(s, c.object(s.path, given, "message"), n)
}

func (c *compiler) receiveFrom(s *shape, o *object, n *names) *receive {
	r := &receive{}
	s.act = r
	if o.need("message", "the message that it fills") {
		r.message, r.typ = c.message(o.at("message"), o.text("message"), n)
	}
	r.isActivating = o.boolean("activate")
	r.initialise, r.follow = c.sets(o, "initialise", n), c.sets(o, "follow", n)
	if from := o.text("from"); from != "" {
		if !c.known.ReceivePorts[from] {
			c.problem(o.at("from"), "Define it, or name another one.", "there is no receive port %q", from)
		}
		r.must = append(r.must, match.Predicate{Property: "ReceivePortName", Type: "text", Operator: "=", Value: from})
	}
	if r.typ != "" {
		r.must = append(r.must, match.Predicate{Property: "MessageType", Type: "text", Operator: "=", Value: r.typ})
	}
	r.filter = c.filter(o.at("filter"), o.list("filter"))
	o.end()
	switch {
	case r.isActivating && len(r.follow) > 0:
		c.problem(o.at("follow"), "Leave it out: nothing is initialised before an instance begins.",
			"a receive that activates follows a correlation set")
	case r.isActivating && len(r.must) == 0 && len(r.filter) == 0:
		c.problem(o.path, "Give the message a type, or give a filter or from.", "the receive would take every message of the box")
	case !r.isActivating && len(r.follow) == 0:
		c.problem(o.path, "Give follow, or activate: true where it is the first shape.",
			"nothing says which instance gets the messages of this receive")
	case !r.isActivating && len(r.filter) > 1:
		c.problem(o.at("filter"), "Write a listen with a receive for each.", "a receive that follows a set has more than one AND group")
	}
	s.fills = append(s.fills, r.message)
	s.inits, s.follows = references(r.initialise), references(r.follow)
	s.detail = r.message.name
	return r
}

var operators = []string{"exists", "=", "<>", "<", "<=", ">", ">=", "&", "in", "prefix"}

func (c *compiler) filter(path []string, groups []any) [][]match.Predicate {
	var filter [][]match.Predicate
	for i, given := range groups {
		at := below(path, itoa(i))
		list, is := given.([]any)
		if !is || len(list) == 0 {
			c.problem(at, "Write a list of predicates.", "an AND group is %s", describe(given))
			continue
		}
		var group []match.Predicate
		for j, one := range list {
			group = append(group, c.predicate(below(at, itoa(j)), one))
		}
		filter = append(filter, group)
	}
	return filter
}

func (c *compiler) predicate(path []string, given any) match.Predicate {
	o := c.object(path, given, "")
	p := match.Predicate{Property: o.text("property"), Operator: o.text("operator")}
	value := o.get("value")
	o.end()
	if !slices.Contains(operators, p.Operator) {
		c.problem(path, "Write one of "+strings.Join(operators, ", ")+".", "there is no operator %q", p.Operator)
	}
	if p.Property != "MessageID" || p.Operator != "exists" {
		c.wantProperty(below(path, "property"), p.Property)
	}
	p.Type = c.known.Properties[p.Property]
	list, isList := value.([]any)
	switch {
	case p.Operator == "exists":
		if value != nil {
			c.problem(below(path, "value"), "Leave it out.", "operator exists has a value")
		}
	case p.Operator == "in" && isList && len(list) > 0:
		for _, element := range list {
			p.Values = append(p.Values, match.Canonical(scalarText(element), p.Type))
		}
	case p.Operator == "in" || isList || scalarText(value) == "" && value != "":
		c.problem(below(path, "value"), "Write a text, a number or a truth; of in a list of them.", "the value of %s is %s", p.Operator,
			describe(value))
	default:
		p.Value = match.Canonical(scalarText(value), p.Type)
	}
	return p
}

func scalarText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return ""
}

func (c *compiler) send(s *shape, given any, n *names) {
	o := c.object(s.path, given, "message")
	a := &send{}
	s.act = a
	if o.need("message", "the message that is sent") {
		a.message, _ = c.message(o.at("message"), o.text("message"), n)
		s.reads = append(s.reads, a.message)
	}
	if name := o.text("port"); name != "" {
		bound, isThere := n.ports[name]
		if !isThere {
			c.problem(o.at("port"), "Declare it under ports.", "there is no port %q", name)
		}
		a.port, a.sendPort = name, bound
	}
	if request := o.text("answers"); request != "" {
		to, _ := c.message(o.at("answers"), request, n)
		a.answers = &to
		s.reads = append(s.reads, to)
	}
	a.initialise, a.follow = c.sets(o, "initialise", n), c.sets(o, "follow", n)
	a.properties = c.properties(s, o, n)
	s.inits, s.follows = references(a.initialise), references(a.follow)
	s.detail = a.message.name
	if a.port != "" {
		s.detail += " to " + a.port
	}
	o.end()
}

// isSettable reports whether a property of the engine is one that orchestrations set: those say where a dynamic port sends.
func isSettable(name string) bool { return name == "Transport.Address" || name == "Transport.Adapter" }

// properties reads what is promoted by expressions.
func (c *compiler) properties(s *shape, o *object, n *names) map[string]*expression {
	found := map[string]*expression{}
	for _, name := range o.members("properties") {
		path := below(o.path, "properties", name)
		if _, isKnown := c.known.Properties[name]; !isSettable(name) && (!isKnown || !strings.Contains(name, "#")) {
			c.problem(path, "Declare it in the property schema of its namespace.", "property %q is not declared, or it is one of the engine",
				name)
		}
		found[name] = c.expression(path, o.member("properties", name), n, nil)
		s.readBy(found[name])
	}
	return found
}

func (c *compiler) construct(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &construct{}
	s.act = a
	if o.need("message", "the message that gets content") {
		a.message, a.typ = c.message(o.at("message"), o.text("message"), n)
	}
	sources := 0
	if o.has("from") {
		sources++
		from, _ := c.message(o.at("from"), o.text("from"), n)
		a.from = &from
		s.reads = append(s.reads, from)
	}
	if o.has("template") {
		sources++
		a.template = c.template(o.at("template"), o.text("template"), n, true)
		s.read(n, a.template.uses()...)
	}
	if o.has("value") {
		sources++
		a.value = c.structure(o.at("value"), o.get("value"), n, s)
	}
	if sources != 1 {
		c.problem(o.path, "Give one of from, template and value.", "a message gets its content of %d places", sources)
	}
	o.get("from")
	o.get("template")
	o.get("value")
	for _, written := range o.members("set") {
		path := below(o.path, "set", written)
		a.set = append(a.set, c.assignment(path, written, o.member("set", written), n, s))
	}
	a.properties = c.properties(s, o, n)
	s.fills = append(s.fills, a.message)
	s.detail = a.message.name
	o.end()
}

// assignment reads a path of a message and what is put there.
func (c *compiler) assignment(path []string, written string, given any, n *names, s *shape) partAssignment {
	a := partAssignment{path: c.path(path, written, n)}
	if given != nil {
		a.value = c.expression(path, given, n, cel.DynType)
		s.readBy(a.value)
	}
	return a
}

func (c *compiler) transform(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &transform{}
	s.act = a
	if o.need("map", "the map that runs") {
		a.name = o.text("map")
		if !c.known.Maps[a.name] {
			c.problem(o.at("map"), "Define it, or name another one.", "there is no map %q", a.name)
		}
	}
	inputs := []any{o.get("from")}
	if list, is := inputs[0].([]any); is {
		inputs = list
	}
	for i, one := range inputs {
		name, is := one.(string)
		if !is {
			c.problem(below(o.path, "from", itoa(i)), "Name a message.", "an input is %s", describe(one))
			continue
		}
		from, _ := c.message(o.at("from"), name, n)
		a.from = append(a.from, from)
		s.reads = append(s.reads, from)
	}
	if o.need("to", "the message that it fills") {
		a.to, a.typ = c.message(o.at("to"), o.text("to"), n)
	}
	a.properties = c.properties(s, o, n)
	s.fills = append(s.fills, a.to)
	s.detail = a.name
	o.end()
}

func (c *compiler) set(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &set{}
	s.act = a
	if len(o.given) == 0 {
		c.problem(s.path, "Write a variable and an expression.", "there is nothing to set")
	}
	var whole []string
	for _, name := range slices.Sorted(maps.Keys(o.given)) {
		path, value := o.at(name), o.get(name)
		whole = append(whole, name)
		before, _, isPart := strings.Cut(name, "/")
		if isPart {
			to, typ := c.message(path, before, n)
			s.reads = append(s.reads, to)
			part := c.assignment(path, name[len(before):], value, n, s)
			a.parts = append(a.parts, messagePart{to, typ, part})
			continue
		}
		v, owner, isThere := n.variable(name)
		if !isThere {
			c.problem(path, "Declare it under variables; a part of a message is MESSAGE/PATH.", "there is no variable %q", name)
			continue
		}
		e := c.expression(path, value, n, valueTypes[v.typ])
		s.readBy(e)
		a.variables = append(a.variables, assignment{variableReference{reference{owner, name}, v.typ}, e})
	}
	s.detail = strings.Join(whole, ", ")
}
