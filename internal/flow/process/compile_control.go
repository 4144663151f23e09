package process

import (
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
)

func (c *compiler) decide(s *shape, given any, n *names) {
	a := &decide{}
	s.act = a
	list, is := given.([]any)
	if !is || len(list) == 0 {
		c.problem(s.path, "Write a list of {when, do}, the last one may be {otherwise: [...]}.", "decide is %s", describe(given))
		return
	}
	for i, one := range list {
		o := c.object(below(s.path, itoa(i)), one, "")
		label := o.text("name")
		if o.has("otherwise") {
			if i != len(list)-1 {
				c.problem(o.path, "Move it to the end.", "what comes behind otherwise is never reached")
			}
			if label == "" {
				label = "otherwise"
			}
			a.conditions, a.hasOtherwise = append(a.conditions, nil), true
			c.block(o, "otherwise", n, s, label)
			o.end()
			continue
		}
		var condition *expression
		if o.need("when", "a condition") {
			condition = c.expression(o.at("when"), o.get("when"), n, cel.BoolType)
			s.readBy(condition)
			if label == "" && condition != nil {
				label = condition.written
			}
		}
		a.conditions = append(a.conditions, condition)
		c.block(o, "do", n, s, label)
		o.end()
	}
}

func (c *compiler) while(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &while{}
	s.act = a
	if o.need("when", "the condition by which it goes on") {
		a.condition = c.expression(o.at("when"), o.get("when"), n, cel.BoolType)
		s.readBy(a.condition)
		if a.condition != nil {
			s.detail = a.condition.written
		}
	}
	c.block(o, "do", n, s, "")
	o.end()
}

// parallelMost bounds how many elements a loop has in work at a time.
const parallelMost = 1000

func (c *compiler) forEach(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &forEach{}
	s.act = a
	if o.need("in", "an expression that gives a list") {
		a.list = c.expression(o.at("in"), o.get("in"), n, valueTypes["list"])
		s.readBy(a.list)
	}
	a.parallel = o.number("parallel", 1, parallelMost, 1)
	body := c.shape("sequence", o.at("do"), s)
	inner := newNames(n, body)
	body.names = inner
	c.declare(o, inner, false)
	if o.need("item", "a name for the element") {
		a.item = o.text("item")
		if c.isFree(o.at("item"), inner, a.item) && a.list != nil {
			c.with(inner, a.item, elementType(a.list.result))
		}
	}
	if a.list != nil {
		s.detail = a.item + " in " + a.list.written
	}
	c.fillSequence(body, o.list("do"), inner)
	o.end()
}

func (c *compiler) parallel(s *shape, given any, n *names) {
	s.act = &parallel{}
	branches, is := given.(map[string]any)
	if !is || len(branches) < 2 {
		c.problem(s.path, "Write two or more branches, {name: [shapes]}.", "parallel is %s", describe(given))
		return
	}
	o := c.object(s.path, given, "")
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		c.block(o, name, n, s, name)
	}
}

func (c *compiler) listen(s *shape, given any, n *names) {
	a := &listen{}
	s.act = a
	list, is := given.([]any)
	if !is || len(list) < 2 {
		c.problem(s.path, "Write two or more branches, {receive, do} or {delay, do}.", "listen is %s", describe(given))
		return
	}
	for i, one := range list {
		path := below(s.path, itoa(i))
		o := c.object(path, one, "")
		// Each branch is a sequence whose first shape is that for which it waits.
		branch := c.shape("sequence", path, s)
		branch.act, branch.label = &sequence{}, o.text("name")
		switch {
		case o.has("receive"):
			first := c.shape("receive", o.at("receive"), branch)
			first.digest = digestOf("receive", o.given["receive"])
			c.receive(first, o.get("receive"), n)
		case o.has("delay"):
			first := c.shape("delay", o.at("delay"), branch)
			first.digest = digestOf("delay", o.given["delay"])
			c.delay(first, o.get("delay"), n)
		default:
			o.get("receive")
			o.get("delay")
			c.problem(path, "Write receive or delay.", "a branch of listen waits for nothing")
		}
		for j, element := range o.list("do") {
			c.element(below(path, "do", itoa(j)), element, n, branch)
		}
		o.end()
	}
}

func (c *compiler) delay(s *shape, given any, n *names) {
	o := c.object(s.path, given, "for")
	a := &delay{}
	s.act = a
	if o.has("for") == o.has("until") {
		c.problem(s.path, `Write an interval such as "5 minutes", or {until: expression}.`, "delay has not one of for and until")
	}
	a.length = c.length(o, "for", n, s)
	if o.has("until") {
		a.until = c.expression(o.at("until"), o.get("until"), n, cel.TimestampType)
		s.readBy(a.until)
	}
	o.get("until")
	if text, is := given.(string); is {
		s.detail = text
	}
	o.end()
}

// length reads an interval, or an expression that gives one.
func (c *compiler) length(o *object, key string, n *names, s *shape) *length {
	if !o.has(key) {
		o.get(key)
		return nil
	}
	if written, is := o.get(key).(string); is {
		if interval, is := readInterval(written); is {
			return &length{interval: interval}
		}
		if beginsInterval.MatchString(written) {
			c.problem(o.at(key), "Write numbers with milliseconds, seconds, minutes, hours, days or weeks, such as 1 hour 30 minutes.",
				"%q is no interval", shortened(written))
			return nil
		}
	}
	l := &length{expression: c.expression(o.at(key), o.given[key], n, cel.DurationType)}
	s.readBy(l.expression)
	return l
}

func (c *compiler) scope(s *shape, given any, n *names) {
	o := c.object(s.path, given, "")
	a := &scope{}
	s.act = a
	inner := newNames(n, s)
	s.names = inner
	c.declare(o, inner, false)
	switch transaction := o.text("transaction"); transaction {
	case "", "long_running":
	case "atomic":
		a.isAtomic = true
	default:
		c.problem(o.at("transaction"), "Write atomic or long_running.", "there is no transaction %q", transaction)
	}
	c.isolation(o, a.isAtomic)
	a.timeout = c.length(o, "timeout", n, s)
	a.body = c.block(o, "do", inner, s, "")
	for i, one := range o.list("catch") {
		c.catch(a, s, c.object(below(o.path, "catch", itoa(i)), one, ""), inner)
	}
	if o.has("compensate") {
		a.compensation = c.block(o, "compensate", inner, s, "compensate")
	}
	o.get("compensate")
	if a.isAtomic {
		s.detail = "atomic"
		c.checkAtomic(o, a)
	}
	if a.timeout != nil {
		c.later = append(c.later, func(c *compiler) { // what is around is not read yet
			if !a.handles(codeTimeout) && !isHandledAround(s, codeTimeout) {
				c.problem(o.at("timeout"), "Give catch a block with code: timeout, or one without a code.",
					"nothing catches the time-out of the scope")
			}
		})
	}
	o.end()
}

// isolation refuses what a step cannot have. Its transaction consumes messages and publishes others, which an old snapshot would not let
// it do.
func (c *compiler) isolation(o *object, isAtomic bool) {
	switch isolation := o.text("isolation"); {
	case isolation == "", isolation == "read committed" && isAtomic:
	case !isAtomic:
		c.problem(o.at("isolation"), "Leave it out, or write transaction: atomic.", "only an atomic scope has an isolation")
	case isolation == "repeatable read", isolation == "serializable":
		c.problem(o.at("isolation"), "Leave it out, and lock the rows that must not change by select ... for update or for share, or a whole "+
			"table by lock table.", "a step runs in read committed, and not in %s", isolation)
	default:
		c.problem(o.at("isolation"), "Write read committed, or leave it out.", "there is no isolation %q", isolation)
	}
}

func (c *compiler) catch(a *scope, s *shape, o *object, n *names) {
	handler := catchBlock{code: o.text("code"), as: o.text("as")}
	label := "catch " + handler.code
	if handler.code == "" {
		label = "catch"
	}
	handler.block = c.shape("sequence", o.at("do"), s)
	handler.block.label = label
	inner := n
	if handler.as != "" {
		inner = newNames(n, handler.block)
		handler.block.names = inner
		inner.env = n.env
		if c.isFree(o.at("as"), inner, handler.as) {
			c.with(inner, handler.as, cel.MapType(cel.StringType, cel.StringType))
		}
	}
	if slices.ContainsFunc(a.catches, func(other catchBlock) bool { return other.code == "" || other.code == handler.code }) {
		c.problem(o.path, "Leave it out, or move it up.", "the catch is never reached: one before it takes the same faults")
	}
	a.catches = append(a.catches, handler)
	c.fillSequence(handler.block, o.list("do"), inner)
	o.end()
}

// isHandledAround reports whether a scope around a shape, within the same orchestration, catches a code.
func isHandledAround(s *shape, code string) bool {
	for inner, around := s, s.parent; around != nil; inner, around = around, around.parent {
		if sc, is := around.act.(*scope); is && sc.body == inner && sc.handles(code) {
			return true
		}
	}
	return false
}

// checkAtomic refuses what an atomic scope cannot do: it is one piece.
func (c *compiler) checkAtomic(o *object, a *scope) {
	if len(a.catches) > 0 {
		c.problem(o.at("catch"), "Put a scope around it that catches.", "an atomic scope catches")
	}
	if a.timeout != nil {
		c.problem(o.at("timeout"), "Leave it out.", "an atomic scope has a time-out, and never waits")
	}
	var walk func(*shape)
	walk = func(inner *shape) {
		why := ""
		switch act := inner.act.(type) {
		case *receive:
			if !act.isActivating {
				why = "waits"
			}
		case *delay, *listen, *activity, *aggregate:
			why = "waits"
		case *scope:
			if act.isAtomic && act != a {
				why = "is an atomic scope itself"
			}
		case *suspend, *terminate:
			why = "ends the step"
		}
		if why != "" {
			c.problem(inner.path, "Move it out of the atomic scope.", "a shape of an atomic scope %s", why)
		}
		for _, child := range inner.children {
			walk(child)
		}
	}
	walk(a.body)
}

func (c *compiler) compensate(s *shape, given any, _ *names) {
	a := &compensate{}
	s.act = a
	name, is := given.(string)
	if !is || name == "" {
		c.problem(s.path, "Write the name of a scope, or all.", "compensate is %s", describe(given))
		return
	}
	s.detail = name
	a.isAll = name == "all"
	inside := handlerAround(s)
	if inside == nil {
		c.problem(s.path, "Move it into a catch or compensate of a scope.", "compensate stands where nothing has failed")
		return
	}
	if a.isAll {
		return
	}
	var walk func(*shape)
	walk = func(inner *shape) {
		if _, is := inner.act.(*scope); is && inner.label == name {
			a.scopes = append(a.scopes, inner.id)
		}
		for _, child := range inner.children {
			walk(child)
		}
	}
	if sc, is := inside.act.(*scope); is && sc.body != nil {
		walk(sc.body)
	}
	if len(a.scopes) == 0 {
		c.problem(s.path, "Give a scope within the one that failed this name, or write all.", "no inner scope is called %q", name)
	}
}

// handlerAround is the scope in whose catch or compensation a shape stands.
func handlerAround(s *shape) *shape {
	for inner, around := s, s.parent; around != nil; inner, around = around, around.parent {
		if sc, is := around.act.(*scope); is && sc.body != nil && sc.body != inner {
			return around
		}
	}
	return nil
}

func (c *compiler) throw(s *shape, given any, n *names) {
	a := &throw{}
	s.act = a
	if given == "again" {
		a.isAgain = true
		if handlerAround(s) == nil {
			c.problem(s.path, "Move it into a catch.", "there is no fault to throw again")
		}
		s.endsAlways = true
		return
	}
	o := c.object(s.path, given, "code")
	if o.need("code", "by which it is caught") {
		a.code = o.text("code")
	}
	if message := o.text("message"); message != "" {
		a.message = c.template(o.at("message"), message, n, false)
		s.read(n, a.message.uses()...)
	}
	s.detail, s.endsAlways = a.code, true
	o.end()
}

func (c *compiler) reason(s *shape, given any, n *names) *template {
	o := c.object(s.path, given, "message")
	t := &template{}
	if message := o.text("message"); message != "" {
		t = c.template(s.path, message, n, false)
		s.read(n, t.uses()...)
		s.detail = message
	}
	o.end()
	return t
}

func (c *compiler) terminate(s *shape, given any, n *names) {
	s.act = &terminate{c.reason(s, given, n)}
	s.endsAlways = true
}

func (c *compiler) suspend(s *shape, given any, n *names) { s.act = &suspend{c.reason(s, given, n)} }
