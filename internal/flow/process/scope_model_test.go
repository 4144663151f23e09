package process_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/process"
)

// op is a shape of the model: a send, a wait, a throw, a compensation, or a scope.
type op struct {
	kind    string // send, wait, throw, again, all, scope
	tag     string
	body    []op
	catches []opCatch
	undo    []op
	atomic  bool
}

type opCatch struct {
	code string
	do   []op
}

type generator struct {
	r    *rapid.T
	tags int
}

func (g *generator) ops(depth int, inHandler, inAtomic bool) []op {
	var all []op
	for range rapid.IntRange(1, 4).Draw(g.r, "shapes") {
		kinds := []string{"send", "send", "throw"}
		if inHandler && len(all) == 0 {
			kinds = []string{"send"} // a handler does something before it fails
		}
		if !inAtomic {
			kinds = append(kinds, "wait")
		}
		if depth > 0 && !inAtomic {
			kinds = append(kinds, "scope", "scope", "scope", "scope", "scope", "scope")
		}
		if inHandler && !inAtomic {
			kinds = append(kinds, "all", "all")
		}
		o := op{kind: rapid.SampledFrom(kinds).Draw(g.r, "kind")}
		switch o.kind {
		case "send":
			g.tags++
			o.tag = fmt.Sprint("s", g.tags)
		case "throw":
			o.tag = rapid.SampledFrom([]string{"a", "b"}).Draw(g.r, "code")
		case "scope":
			o = g.scope(depth, inHandler)
		}
		all = append(all, o)
		if o.kind == "throw" {
			break // nothing is reached behind it
		}
	}
	return all
}

func (g *generator) scope(depth int, inHandler bool) op {
	o := op{kind: "scope", atomic: rapid.IntRange(0, 4).Draw(g.r, "atomic") == 0}
	o.body = g.ops(depth-1, inHandler, o.atomic)
	if !o.atomic {
		for _, code := range []string{"a", ""} {
			if rapid.IntRange(0, 2).Draw(g.r, "catches") == 0 {
				o.catches = append(o.catches, opCatch{code, g.ops(depth-1, true, false)})
			}
		}
	}
	if rapid.IntRange(0, 3).Draw(g.r, "compensates") > 0 {
		o.undo = g.ops(0, true, false)
	}
	return o
}

// shapes writes the model as a definition.
func shapes(ops []op) []any {
	all := []any{}
	for _, o := range ops {
		switch o.kind {
		case "send":
			all = append(all, map[string]any{"construct": map[string]any{"message": "line", "template": "<R>" + o.tag + "</R>"}},
				map[string]any{"send": "line"})
		case "wait":
			all = append(all, map[string]any{"delay": "1 minute"})
		case "throw":
			all = append(all, map[string]any{"throw": o.tag})
		case "all":
			all = append(all, map[string]any{"compensate": "all"})
		case "scope":
			s := map[string]any{"do": shapes(o.body)}
			if o.atomic {
				s["transaction"] = "atomic"
			}
			var catches []any
			for _, c := range o.catches {
				given := map[string]any{"do": shapes(c.do)}
				if c.code != "" {
					given["code"] = c.code
				}
				catches = append(catches, given)
			}
			if catches != nil {
				s["catch"] = catches
			}
			if o.undo != nil {
				s["compensate"] = shapes(o.undo)
			}
			all = append(all, map[string]any{"scope": s})
		}
	}
	return all
}

// model runs the shapes by the rules of the page, one after the other.
type model struct {
	sent        []string
	isSuspended bool
	serial      int
	left        []*ended // that scopes which are broken off have not taken back
}

type ended struct {
	serial int
	undo   []op
	inner  []*ended
}

// takeLeft gives what is left to take back with some scopes more, in the order in which all have ended.
func (m *model) takeLeft(more ...*ended) []*ended {
	all := append(m.left, more...)
	m.left = nil
	slices.SortFunc(all, func(a, b *ended) int { return a.serial - b.serial })
	return all
}

// run gives the code of a fault that leaves the shapes. done are the scopes that have ended within the scope around, source those that a
// handler can take back, caught the codes that scopes around take.
func (m *model) run(ops []op, done, source *[]*ended, caught []string) string {
	isCaught := func(code string) bool { return slices.Contains(caught, code) || slices.Contains(caught, "") }
	for _, o := range ops {
		fault := ""
		switch o.kind {
		case "send":
			m.sent = append(m.sent, o.tag)
		case "throw":
			fault = o.tag
		case "all":
			fault = m.takeBack(source, caught)
		case "scope":
			fault = m.scope(o, done, source, caught)
		}
		if m.isSuspended {
			return ""
		}
		if fault != "" {
			if !isCaught(fault) {
				m.isSuspended = true
				return ""
			}
			return fault
		}
	}
	return ""
}

func (m *model) takeBack(source *[]*ended, caught []string) string {
	all := *source
	*source = nil
	for n, e := range slices.Backward(all) {
		inner := e.inner
		var fault string
		if e.undo != nil {
			fault = m.run(e.undo, &[]*ended{}, &inner, caught)
		} else {
			fault = m.takeBack(&inner, caught)
		}
		if fault != "" || m.isSuspended {
			m.left = append(m.left, all[:n]...)
			return fault
		}
	}
	return ""
}

func (m *model) scope(o op, done, source *[]*ended, caught []string) string {
	inner := []*ended{}
	before := len(m.sent)
	within := caught
	for _, c := range o.catches {
		within = append(slices.Clone(within), c.code)
	}
	if o.atomic {
		within = []string{""}
	}
	fault := m.run(o.body, &inner, source, within)
	if m.isSuspended {
		return ""
	}
	if fault == "" {
		if o.undo != nil || len(inner) > 0 {
			m.serial++
			*done = append(*done, &ended{m.serial, o.undo, inner})
		}
		return ""
	}
	if o.atomic {
		m.sent = m.sent[:before]
		return fault
	}
	for i := handlerOf(o, fault); i >= 0; {
		left := m.takeLeft()
		again := m.takeBack(&left, within)
		if m.isSuspended {
			return ""
		}
		if again != "" { // a fault of a compensation takes the place of the one before
			fault, i = again, handlerOf(o, again)
			continue
		}
		failed := m.run(o.catches[i].do, &inner, &inner, caught)
		if failed == "" || m.isSuspended {
			return ""
		}
		fault = failed
		break
	}
	inner = m.takeLeft(inner...)
	if again := m.takeBack(&inner, caught); again != "" || m.isSuspended {
		return again
	}
	return fault
}

func handlerOf(o op, fault string) int {
	return slices.IndexFunc(o.catches, func(c opCatch) bool { return c.code == "" || c.code == fault })
}

// Scopes nest, catch and compensate as the page says: at most once, after they have ended, the last one first.
func TestScopesCatchAndCompensateByTheirRules(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		g := &generator{r: r}
		ops := []op{{kind: "scope", body: g.ops(3, false, false), catches: []opCatch{{"a", g.ops(1, true, false)}}}}
		definition, err := json.Marshal(map[string]any{
			"application": "A", "host": "H", "messages": map[string]string{"line": "any"}, "body": shapes(ops),
		})
		if err != nil {
			r.Fatal(err)
		}
		p, problems := process.Compile("P", definition, known)
		for _, problem := range problems {
			if problem.Message == "the shape is never reached" || problem.Message == "the catch is never reached: one before it takes the same faults" {
				r.Skip()
			}
			r.Fatalf("%s: %s", definition, problem)
		}
		want := &model{}
		want.run(ops, &[]*ended{}, &[]*ended{}, nil)
		m := newMemory(r, p)
		i := m.start("")
		for len(i.step.Timers) > 0 && i.step.Status == process.Waiting {
			m.fire(i, i.step.Timers[0])
		}
		var got []string
		for _, group := range reported(m) {
			got = append(got, group...)
		}
		status := process.Finished
		if want.isSuspended {
			status = process.Suspended
		}
		counts[string(status)]++
		if !slices.Equal(got, want.sent) || i.step.Status != status {
			r.Fatalf("%s\nsends %v, is %s %+v\nand by the model sends %v, is %s", definition, got, i.step.Status, i.step.Fault, want.sent,
				status)
		}
	})
	if counts[string(process.Finished)] < 10 || counts[string(process.Suspended)] < 10 {
		t.Errorf("the histories end as %v", counts)
	}
}
