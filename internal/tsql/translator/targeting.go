package translator

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// A targeting is UPDATE or DELETE with its target and its other sources.
type targeting struct {
	*builder
	table  *relation
	into   string  // how SQL writes the target
	source *source // of the target, in FROM or alone
	from   string  // all sources, the target with them; empty where the target is alone
	node   alteration
	prefix string // its common tables
	chosen string // its condition and its TOP
	locks  string // the words of READPAST
	// isThrough says that the target is a common table over the table.
	isThrough bool
	// preview reads the rows before the statement; nil where the database does all.
	preview *preview
}

// An alteration is what UPDATE and DELETE have alike.
type alteration struct {
	verb   string
	with   *ast.With
	target *ast.Target
	from   []ast.TableSource
	top    *ast.Top
	where  ast.Condition
}

// sources gives what the statement reads: FROM, or the target alone.
func (a *alteration) sources() []ast.TableSource {
	switch {
	case a.from != nil:
		return a.from
	case a.target.Variable != "":
		return []ast.TableSource{&ast.TableVariable{Name: a.target.Variable}}
	}
	return []ast.TableSource{&ast.TableName{Name: a.target.Name}}
}

// altered resolves the target of UPDATE or DELETE and its sources, which stay in sight while the rest is translated.
func (t *Translator) altered(
	ctx context.Context, s expression.Scope, node alteration, rest func(*targeting, *change) (interpreter.Statement, *fault.Error),
) (interpreter.Statement, *fault.Error) {
	if node.target.Rowset != nil {
		return nil, expression.Unsupported(node.verb + " of this form")
	}
	b := t.builder(ctx, s)
	_, isCurrent := node.where.(*ast.CurrentOf)
	b.isCut = t.isCutting() && !isCurrent
	prefix, done, err := b.with(node.with)
	defer done()
	if err != nil {
		return nil, err
	}
	g, err := t.targeted(b, node.verb, node.target, node.from)
	if err != nil {
		return nil, err
	}
	b.beside = []sight{{sources: node.sources()}}
	defer func() { b.names = b.names.outer }()
	g.node, g.prefix, g.locks = node, prefix, skipping(node.target.Hints)
	return rest(g, &change{builder: b, verb: node.verb, table: g.table, written: node.target.Name.String(), identity: -1})
}

// choose translates the condition and TOP.
func (g *targeting) choose(c *change) *fault.Error {
	if g.node.where != nil {
		sql, err := g.where(g.node.where)
		if err != nil {
			return err
		}
		g.chosen = sql
	}
	if g.preview != nil {
		g.readBefore(c)
	}
	limits, err := g.limitOfChange(g.node.top, "select 1 from "+g.sources()+g.chosen)
	if limits != "" && len(g.names.sources) == 1 {
		g.chosen += g.keyOrder(true)
	}
	g.chosen += limits
	return err
}

// isPlain reports whether the rows are those of the target alone that the condition chooses.
func (g *targeting) isPlain() bool {
	return g.node.from == nil && !g.isThrough && g.node.top == nil && !g.isCut && g.locks == "" && g.preview == nil
}

// targeted resolves the target: an alias or a table of FROM, or a table alone.
func (t *Translator) targeted(b *builder, verb string, node *ast.Target, from []ast.TableSource) (*targeting, *fault.Error) {
	g := &targeting{builder: b, node: alteration{verb: verb}}
	common := b.commonTarget(node)
	b.names = &names{outer: b.names}
	if from == nil && common != nil {
		sql, err := g.through(common)
		g.from = sql
		return g, err
	}
	if from == nil {
		table, into, err := b.target(node, nil)
		if err != nil {
			return nil, err
		}
		g.table, g.into = table, into
		alias := node.Name.Object()
		if node.Variable != "" {
			alias = node.Variable
		}
		g.source = sourceOf(table, alias, quote(b.alias("t")))
		b.names.sources = append(b.names.sources, g.source)
		return g, nil
	}
	if source, query, err := b.queryInFrom(node, from); err != nil || query != nil {
		if err == nil {
			err = g.inFrom(from, source, query)
		}
		return g, err
	}
	sql, err := b.from(from)
	if err != nil {
		return nil, err
	}
	g.from = sql
	name := node.Name.Object()
	if node.Variable != "" {
		name = node.Variable
	}
	for _, s := range b.names.sources {
		isCalled := len(node.Name.Parts) < 2 || s.isCalled(ast.Name{Parts: append(slices.Clone(node.Name.Parts), "")})
		if s.table != nil && s.table.kind != 's' && strings.EqualFold(s.alias, name) && isCalled {
			g.source, g.table = s, s.table
			g.into = s.table.sql
			if node.Variable != "" || strings.HasPrefix(s.table.name, "@") {
				g.into = b.markOf(s)
			}
			return g, nil
		}
	}
	// The target may stand in FROM under an alias of its own, or not at all.
	table, into, err := b.target(node, from)
	if err != nil {
		return nil, err
	}
	for _, s := range b.names.sources {
		if s.table == table {
			g.source, g.table, g.into = s, table, into
			return g, nil
		}
	}
	g.table, g.into = table, into
	g.source = sourceOf(table, name, quote(b.alias("t")))
	b.names.sources = append(b.names.sources, g.source)
	g.from = into + " as " + g.source.reading + " cross join " + g.from
	return g, nil
}

// markOf gives the mark of a table variable that stands in FROM.
func (b *builder) markOf(s *source) string {
	_, mark, err := b.variable(s.table.name)
	if err != nil {
		return s.table.sql
	}
	return mark
}

// skipping gives the words of READPAST.
func skipping(hints []*ast.TableHint) string {
	for _, h := range hints {
		if h.Name == "READPAST" {
			return " skip locked"
		}
	}
	return ""
}

// foundRows is the name of the rows that are found and locked before they are changed.
const foundRows = "found"

// rowKey gives what tells the rows of the target apart, and the condition that finds them again: the primary key, because a row that
// another transaction changed meanwhile is found by it and not by its place. Without a key it is the place, of a view all values.
func (g *targeting) rowKey(reading string) (selected []string, matched string) {
	if len(g.table.key) == 0 {
		return []string{g.table.place(g.source.reading) + " as k1"}, g.table.place(reading) + " = " + foundRows + ".k1"
	}
	var parts []string
	for i, name := range g.table.key {
		key := "k" + itoa(i+1)
		selected = append(selected, g.source.reading+"."+quote(name)+" as "+key)
		parts = append(parts, reading+"."+quote(name)+" = "+foundRows+"."+key)
	}
	return selected, strings.Join(parts, " and ")
}

// write puts the statement together around the rows that are found. Where they are found by their place, a row that another transaction
// moved is missed: the statement then fails, and runs again on what that transaction left.
func (g *targeting) write(c *change, selected []string, before, behind string) {
	rows := "(select " + strings.Join(selected, ", ") + " from " + g.sources() + g.chosen +
		" for update of " + g.source.reading + g.locks + ")"
	if len(g.table.key) == 0 {
		c.found, rows = rows, foundRows
	} else {
		rows += " as " + foundRows
	}
	c.write(g.prefix, before+rows+behind)
}

// sources writes the target and the other sources.
func (g *targeting) sources() string {
	if g.from == "" {
		return g.into + " as " + g.source.reading
	}
	return g.from
}
