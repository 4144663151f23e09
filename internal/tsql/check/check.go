package check

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/parser"
)

// Use is a construct at a place of a batch.
type Use struct {
	Construct
	Line   int // of the batch, from 1
	Column int // in characters, from 1
}

// Checker keeps in mind which procedures, tables and types the batches of a run define.
type Checker struct {
	defined map[string]bool
}

// New makes a checker for the batches of one run.
func New() *Checker { return &Checker{defined: map[string]bool{}} }

// visitor collects the uses of one batch.
type visitor struct {
	*Checker
	uses  []Use
	depth int // of texts in texts
	base  *ast.Place
	// tables are calls that stand in FROM, where the user's functions need no schema.
	tables map[*ast.Call]bool
}

// deepest is how many texts with statements may stand in one another.
const deepest = 8

// Define keeps what a batch defines. A run calls it with all batches first, because one may use what a later one
// defines.
func (c *Checker) Define(batch *ast.Batch) {
	ast.Walk(batch, func(node ast.Node) bool {
		if name, is := definedName(node); is {
			c.defined[strings.ToUpper(name)] = true
		}
		return true
	})
}

// Batch lists the constructs of a batch, in the order of the text.
func (c *Checker) Batch(batch *ast.Batch) []Use {
	v := &visitor{Checker: c, tables: map[*ast.Call]bool{}}
	v.batch(batch)
	slices.SortStableFunc(v.uses, func(a, b Use) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return v.uses
}

func (v *visitor) batch(batch *ast.Batch) {
	v.Define(batch)
	ast.Walk(batch, func(node ast.Node) bool {
		v.visit(node)
		return true
	})
}

// definedName gives the name of a procedure or type that a statement defines.
func definedName(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.Procedure:
		return n.Name.Object(), true
	case *ast.CreateType:
		return n.Name.Object(), true
	case *ast.CreateTable:
		return n.Name.Object(), true
	case *ast.View:
		return n.Name.Object(), true
	case *ast.Synonym:
		return n.Name.Object(), true
	default:
		return "", false
	}
}

// use adds a construct at a node.
func (v *visitor) use(node ast.Node, name string) {
	at := node.At()
	if v.base != nil {
		at = *v.base
	}
	v.uses = append(v.uses, Use{Construct: Find(name), Line: at.Line, Column: at.Column})
}

// when adds a construct, if the condition holds.
func (v *visitor) when(condition bool, node ast.Node, name string) {
	if condition {
		v.use(node, name)
	}
}

// text checks the statements in a string that is run as a batch.
func (v *visitor) text(e ast.Expression) {
	literal, is := e.(*ast.Literal)
	if !is || v.depth >= deepest {
		return
	}
	place := literal.At()
	base := v.base
	if base == nil {
		base = &place
	}
	batch, err := parser.Parse(literal.Text, parser.Options{})
	if err != nil {
		v.uses = append(v.uses, Use{
			Construct: Construct{Name: "text of EXECUTE", State: Refused, Reason: err.Error()}, Line: base.Line, Column: base.Column,
		})
		return
	}
	inner := &visitor{Checker: v.Checker, depth: v.depth + 1, base: base, tables: v.tables}
	inner.batch(batch)
	v.uses = append(v.uses, inner.uses...)
}

// visit adds what one node is.
func (v *visitor) visit(node ast.Node) {
	for _, family := range []func(*visitor, ast.Node) bool{
		(*visitor).control, (*visitor).session, (*visitor).conversation, (*visitor).brokerObject, (*visitor).query, (*visitor).source,
		(*visitor).change, (*visitor).expression, (*visitor).condition, (*visitor).call, (*visitor).table, (*visitor).tablePart,
		(*visitor).module, (*visitor).database, (*visitor).security,
	} {
		if family(v, node) {
			return
		}
	}
}
