package translator

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// An output is OUTPUT: a result set, or rows for a table.
type output struct {
	isShown bool
	columns []session.Column
	results []*expression.Expression
}

// rowsSent go to another table in the same statement.
type rowsSent struct {
	into string // INSERT INTO of the table that takes them
	from []int  // of the returned, what it takes
	// condition says which of the changed rows go there; empty for all.
	condition string
}

// give shows a row to the client.
func (o *output) give(f *expression.Frame, sink session.Sink) *fault.Error {
	row := make([]value.Value, len(o.results))
	for i, e := range o.results {
		v, err := e.Evaluate(f)
		if err != nil {
			return err
		}
		row[i] = v
	}
	return lost(sink.Row(row))
}

// returning adds what the statement gives back, and says where.
func (c *change) returning(e sqlExpression) int {
	if at := slices.Index(c.returned, e); at >= 0 {
		return at
	}
	c.returned = append(c.returned, e)
	return len(c.returned) - 1
}

// refusesOutput gives error 334 for rows that go to the client while the table has triggers of the change.
func (c *change) refusesOutput(nodes []*ast.Output, events ...string) *fault.Error {
	for _, node := range nodes {
		if !node.HasInto && slices.ContainsFunc(events, c.table.hasTrigger) {
			return fault.New(334, c.written)
		}
	}
	return nil
}

// returns translates OUTPUT over inserted and deleted, and the sources beside them.
func (c *change) returns(nodes []*ast.Output, sources []*source) *fault.Error {
	if err := c.refusesOutput(nodes, c.verb); err != nil {
		return err
	}
	b := c.builder
	outer := b.names
	b.names = &names{outer: outer, sources: sources}
	defer func() { b.names = outer }()
	for _, node := range nodes {
		items := make([]ast.SelectItem, len(node.Items))
		for i, item := range node.Items {
			items[i] = item
		}
		spread, err := b.outputItems(items)
		if err != nil {
			return err
		}
		if node.HasInto {
			if err := c.returnsInto(node, spread); err != nil {
				return err
			}
			continue
		}
		if c.output == nil {
			c.output = &output{}
		}
		c.output.isShown = true
		scope := goScope{builder: b, leaves: &c.returned}
		for _, i := range spread {
			var e *expression.Expression
			if i.column != nil {
				e = scope.leaf(*i.column)
			} else if e, err = expression.Compile(i.node, scope); err != nil {
				return err
			}
			c.output.columns = append(c.output.columns, session.Column{Name: i.name, Type: shown(e.Type)})
			c.output.results = append(c.output.results, e)
		}
	}
	return nil
}

// outputItems spreads inserted.* and deleted.*.
func (b *builder) outputItems(nodes []ast.SelectItem) ([]item, *fault.Error) {
	for _, s := range b.names.sources {
		s.isHidden = false
	}
	defer func() {
		for _, s := range b.names.sources {
			s.isHidden = true
		}
	}()
	return b.items(nodes)
}

// returnsInto sends the rows of OUTPUT ... INTO to a table, in the same statement.
func (c *change) returnsInto(node *ast.Output, items []item) *fault.Error {
	b := c.builder
	sent := rowsSent{}
	target := ast.Target{Name: node.Into, Variable: node.Variable}
	table, into, err := b.target(&target, nil)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(table.triggers, func(g *trigger) bool { return g.isEnabled }) {
		return fault.New(331, node.Into.String())
	}
	var columns []*column
	for _, name := range node.Columns {
		found := table.find(name)
		if found == nil {
			return fault.New(207, name)
		}
		columns = append(columns, found)
	}
	if columns == nil {
		for _, found := range table.columns {
			if !found.isIdentity && !found.isComputed {
				columns = append(columns, found)
			}
		}
	}
	if len(columns) != len(items) {
		return fault.New(213)
	}
	names := make([]string, len(columns))
	for i, found := range columns {
		names[i] = found.name
		var e sqlExpression
		if items[i].column != nil {
			e = *items[i].column
		} else if e, err = b.expression(items[i].node); err != nil {
			return err
		}
		if e, err = b.convert(e, found.typ, implicit); err != nil {
			return err
		}
		sent.from = append(sent.from, c.returning(e))
	}
	sent.into = "insert into " + into + " (" + quoteAll(names) + ") "
	c.sent = append(c.sent, sent)
	return nil
}

// write puts the statement together: with others around it where rows of OUTPUT go to a table, or where rows may be missed.
func (c *change) write(prefix, sql string) {
	if c.builder.dropsNulls {
		c.watched = 1 + c.returning(sqlExpression{sql: nullsDropped, typ: value.Of(value.Bit)})
	}
	if c.found != "" && len(c.returned) == 0 {
		c.returning(sqlExpression{sql: "0", typ: value.Of(value.Int)})
	}
	if len(c.returned) > 0 {
		texts := make([]string, len(c.returned))
		for i, e := range c.returned {
			texts[i] = e.sql + " as r" + itoa(i+1)
		}
		if c.isInstead {
			sql = "select " + strings.Join(texts, ", ") + " from " + sql
		} else {
			sql += " returning " + strings.Join(texts, ", ")
		}
	}
	if len(c.sent) == 0 && c.found == "" {
		c.sql = prefix + sql
		return
	}
	with := "with "
	if prefix != "" {
		with = strings.TrimSuffix(prefix, " ") + ", "
	}
	if c.found != "" {
		with += foundRows + " as " + c.found + ", "
	}
	with += "changed as (" + sql + ")"
	for i, sent := range c.sent {
		var taken []string
		for _, at := range sent.from {
			taken = append(taken, "changed.r"+itoa(at+1))
		}
		with += ", sent_" + itoa(i+1) + " as (" + sent.into + "select " + strings.Join(taken, ", ") + " from changed)"
	}
	var given []string
	for i := range c.returned {
		given = append(given, "changed.r"+itoa(i+1))
	}
	// The rows that were changed are counted, and given to Go.
	rows := "select " + strings.Join(given, ", ") + " from changed"
	c.sql = with + " "
	if c.found != "" {
		c.sql += rows + missedRows + " union all "
	}
	c.sql += rows
}
