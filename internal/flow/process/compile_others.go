package process

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
)

// structure reads a value whose texts are expressions.
func (c *compiler) structure(path []string, given any, n *names, s *shape) *structure {
	switch value := given.(type) {
	case map[string]any:
		t := &structure{members: map[string]*structure{}}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			t.members[name] = c.structure(below(path, name), value[name], n, s)
		}
		return t
	case []any:
		t := &structure{isList: true}
		for i, element := range value {
			t.elements = append(t.elements, c.structure(below(path, itoa(i)), element, n, s))
		}
		return t
	case nil:
		return &structure{}
	}
	e := c.expression(path, given, n, cel.DynType)
	s.readBy(e)
	return &structure{expression: e}
}

func (c *compiler) variableAt(path []string, name string, n *names) variableReference {
	v, owner, isThere := n.variable(name)
	if !isThere && name != "" {
		c.problem(path, "Declare it under variables.", "there is no variable %q", name)
	}
	return variableReference{reference{owner, name}, v.typ}
}

func (c *compiler) activity(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &activity{}
	s.act = a
	if o.need("name", "what the worker does") {
		a.name = o.text("name")
	}
	if o.need("queue", "the queue of its workers") {
		a.queue = o.text("queue")
	}
	a.input = c.structure(o.at("input"), o.get("input"), n, s)
	if result := o.text("result"); result != "" {
		v := c.variableAt(o.at("result"), result, n)
		a.result = &v
	}
	a.timeout = c.length(o, "timeout", n, s)
	a.attempts = o.number("attempts", 1, 1000, 0)
	s.detail = a.name
	o.end()
}

// endsTransaction finds statements that end the transaction of a step, or move within it.
var endsTransaction = regexp.MustCompile(
	`(?is)^(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(?:abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b`)

func (c *compiler) query(s *shape, given any, n *names) {
	o := c.object(s.path, given, "sql")
	a := &query{}
	s.act = a
	if o.need("sql", "a statement") {
		a.sql = o.text("sql")
	}
	if endsTransaction.MatchString(a.sql) {
		c.problem(o.at("sql"), "Leave it out: the step commits by itself, and an atomic scope that fails is rolled back.",
			"the statement is one about the transaction of the step")
	}
	for i, one := range o.list("arguments") {
		e := c.expression(below(o.path, "arguments", itoa(i)), one, n, cel.DynType)
		s.readBy(e)
		a.arguments = append(a.arguments, e)
	}
	if rows := o.text("rows"); rows != "" {
		v := c.variableAt(o.at("rows"), rows, n)
		if v.typ != "list" && v.typ != "any" && v.typ != "" {
			c.problem(o.at("rows"), "Declare it as a list.", "variable %s is a %s, and rows are a list", rows, v.typ)
		}
		a.rows = &v
	}
	if !isWithinAtomic(s) {
		c.problem(s.path, "Put it into a scope with transaction: atomic.", "a statement stands outside of an atomic scope")
	}
	s.detail = strings.Join(strings.Fields(a.sql), " ")
	o.end()
}

func isWithinAtomic(s *shape) bool {
	for ; s != nil; s = s.parent {
		if sc, is := s.act.(*scope); is && sc.isAtomic {
			return true
		}
	}
	return false
}

// target reads the orchestration that a shape names, and the parameters that it gives.
func (c *compiler) target(s *shape, o *object, n *names) (name string, settings map[string]any, parameters map[string]*expression) {
	if !o.need("orchestration", "which one") {
		o.get("parameters")
		return "", nil, nil
	}
	name = o.text("orchestration")
	s.detail = name
	written, isThere := c.known.Orchestrations[name]
	if !isThere && name != c.name {
		c.problem(o.at("orchestration"), "Define it, or name another one.", "there is no orchestration %q", name)
	}
	if given, err := readJSON(written); err == nil {
		settings, _ = given.(map[string]any)
	}
	declared, _ := settings["parameters"].(map[string]any)
	parameters = map[string]*expression{}
	for _, parameter := range o.members("parameters") {
		path := below(o.path, "parameters", parameter)
		var wanted *cel.Type
		switch typ := declared[parameter].(type) {
		case string:
			wanted = valueTypes[typ]
		case map[string]any:
			text, _ := typ["type"].(string)
			wanted = valueTypes[text]
		default:
			if settings != nil {
				c.problem(path, "Its parameters are "+strings.Join(slices.Sorted(maps.Keys(declared)), ", ")+".", "%s has no parameter %q",
					name, parameter)
			}
		}
		parameters[parameter] = c.expression(path, o.member("parameters", parameter), n, wanted)
		s.readBy(parameters[parameter])
	}
	return name, settings, parameters
}

func (c *compiler) start(s *shape, given any, n *names) {
	o := c.object(s.path, given, "orchestration")
	a := &start{}
	s.act = a
	var settings map[string]any
	a.name, settings, a.parameters = c.target(s, o, n)
	c.refuseActivating(o, a.name, settings)
	o.end()
}

// refuseActivating refuses an orchestration that messages begin, where a shape is to begin it.
func (c *compiler) refuseActivating(o *object, name string, settings map[string]any) {
	written, err := json.Marshal(settings["body"])
	if err == nil && hasActivating(settings["body"]) && len(written) > 0 {
		c.problem(o.at("orchestration"), "Send it a message, or take activate out of its receive.", "%s is begun by a message", name)
	}
}

func hasActivating(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if v["activate"] == true {
			return true
		}
		for _, member := range v {
			if hasActivating(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasActivating)
	}
	return false
}

func (c *compiler) call(s *shape, given any, n *names) {
	o := c.object(s.path, given, "orchestration")
	a := &call{}
	s.act = a
	var settings map[string]any
	a.name, settings, a.parameters = c.target(s, o, n)
	results := o.members("results")
	switch {
	case settings == nil:
	case slices.Contains(c.calling, a.name):
		c.problem(o.at("orchestration"), "Use start, or a loop.", "%s calls itself: %s", a.name, strings.Join(append(c.calling, a.name),
			", "))
	default:
		c.refuseActivating(o, a.name, settings)
		a.body = c.called(s, a.name, settings, o)
	}
	if a.body != nil {
		for _, mine := range results {
			path := below(o.path, "results", mine)
			theirs, _ := o.member("results", mine).(string)
			to := c.variableAt(path, mine, n)
			v, isThere := a.body.names.variables[theirs]
			switch {
			case !isThere:
				c.problem(path, "Name a variable of it.", "%s has no variable %q", a.name, theirs)
			case !fits(valueTypes[v.typ], valueTypes[to.typ]) && to.typ != "":
				c.problem(path, "Declare them alike.", "%s is a %s, and %s of %s a %s", mine, to.typ, theirs, a.name, v.typ)
			}
			a.results = append(a.results, result{to, theirs})
		}
	}
	o.end()
}

// called reads the orchestration that a shape calls, as a part of it.
func (c *compiler) called(s *shape, name string, settings map[string]any, o *object) *shape {
	inner := *c
	inner.calling = append(slices.Clone(c.calling), name)
	inner.prefix, inner.inside = []string{kindOrchestration, name}, s.place+"/"+name+"/"
	inner.problems, inner.later = nil, nil
	body := inner.orchestration(settings, s)
	if len(inner.problems) > 0 {
		c.problem(o.at("orchestration"), "Mend that one first.", "%s, which is called, is wrong: %s", name, inner.problems[0])
	}
	c.program.called[name] = true
	return body
}

func (c *compiler) aggregate(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &aggregate{}
	s.act = a
	if o.need("receive", "which messages are collected") {
		from := c.shape("receive", o.at("receive"), s)
		a.receive = c.receiveFrom(from, c.object(from.path, o.get("receive"), "message"), n)
		s.detail = from.detail
		if a.receive.isActivating && len(a.receive.initialise) == 0 {
			c.problem(from.path, "Give it initialise: the set by which messages belong together.",
				"nothing says which messages are collected together")
		}
	}
	if o.need("into", "a variable of type list") {
		a.into = c.variableAt(o.at("into"), o.text("into"), n)
		if a.into.typ != "list" && a.into.typ != "" {
			c.problem(o.at("into"), "Declare it as a list.", "variable %s is a %s", a.into.name, a.into.typ)
		}
	}
	until := c.object(o.at("until"), o.get("until"), "")
	a.count = until.number("count", 1, collectedMost, 0)
	a.after = c.length(until, "after", n, s)
	if until.has("when") {
		a.condition = c.expression(until.at("when"), until.get("when"), n, cel.BoolType)
	}
	until.get("when")
	if a.count == 0 && a.after == nil && a.condition == nil {
		c.problem(o.path, "Give until a count, after, or when.", "aggregate never ends")
	}
	until.end()
	o.end()
}
