package translator

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// placePseudo is the pseudo column that gives the place of a row; no batch can write it.
const placePseudo = "\x00PLACE"

// commonTarget gives the common table that UPDATE or DELETE names, nil where it names another target.
func (b *builder) commonTarget(node *ast.Target) *commonTable {
	if node.Variable != "" || len(node.Name.Parts) != 1 {
		return nil
	}
	for n := b.names; n != nil; n = n.outer {
		for _, c := range slices.Backward(n.common) {
			if strings.EqualFold(c.name, node.Name.Object()) {
				return c
			}
		}
	}
	return nil
}

// through has the statement change the rows of the one table behind a common table: those that the common table gives, which are found
// again by the primary key, or by their place.
func (g *targeting) through(c *commonTable) *fault.Error {
	body, is := c.query.Body.(*ast.Specification)
	if !is || len(body.From) != 1 || body.Quantifier == "DISTINCT" || body.GroupBy != nil {
		return expression.Unsupported(g.node.verb + " of a common table with groups, DISTINCT or several sources")
	}
	behind, is := body.From[0].(*ast.TableName)
	if !is {
		return expression.Unsupported(g.node.verb + " of a common table over more than one table")
	}
	b := g.builder
	table, into, err := b.target(&ast.Target{Name: behind.Name}, nil)
	if err != nil {
		return err
	}
	g.table, g.into = table, into
	reading, rows := quote(b.alias("t")), quote(b.alias("c"))
	g.source = sourceOf(table, "", reading)
	g.source.isHidden = true
	specification, query := *body, *c.query
	specification.Items = slices.Clone(body.Items)
	var keys []string
	add := func(value ast.Expression, column string) {
		specification.Items = append(specification.Items, &ast.ResultColumn{Place: body.Place, Value: value, Alias: "key", HasAlias: true})
		keys = append(keys, reading+"."+column)
	}
	for _, key := range table.key {
		add(&ast.ColumnReference{ExpressionAt: ast.ExpressionAt{Place: body.Place}, Name: ast.Name{Parts: []string{key}}}, quote(key))
	}
	if len(table.key) == 0 {
		add(&ast.PseudoColumn{ExpressionAt: ast.ExpressionAt{Place: body.Place}, Name: placePseudo}, "ctid")
	}
	query.Body = &specification
	sql, columns, err := b.derived(&query)
	if err != nil {
		return err
	}
	if locks := lockHints(behind.Hints); locks != "" && !strings.HasSuffix(sql, locks) && !hasWindow(body) {
		sql += locks
	}
	given := &source{alias: c.name, reading: rows}
	var names, matched []string
	for i, column := range columns {
		name := "c" + itoa(i+1)
		names = append(names, name)
		if at := i - len(columns) + len(keys); at >= 0 {
			matched = append(matched, keys[at]+" = "+rows+"."+name)
			continue
		}
		if c.columns[i].name != column.name {
			return expression.Unsupported(g.node.verb + " of a common table that renames its columns")
		}
		given.columns = append(given.columns, sourceColumn{name: column.name, typ: column.typ, sql: rows + "." + name})
	}
	b.names.sources = append(b.names.sources, given, g.source)
	g.from = "(" + sql + ") as " + rows + " (" + strings.Join(names, ", ") + ") join " + into + " as " + reading +
		" on " + strings.Join(matched, " and ")
	g.isThrough = true
	return nil
}

func hasWindow(body *ast.Specification) bool {
	found := false
	ast.Walk(body, func(node ast.Node) bool {
		call, is := node.(*ast.Call)
		found = found || is && call.Over != nil
		return !found
	})
	return found
}
