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
	return b.commonNamed(node.Name)
}

// commonNamed gives the common table of a name, nil where there is none.
func (b *builder) commonNamed(name ast.Name) *commonTable {
	if len(name.Parts) != 1 {
		return nil
	}
	for n := b.names; n != nil; n = n.outer {
		for _, c := range slices.Backward(n.common) {
			if strings.EqualFold(c.name, name.Object()) {
				return c
			}
		}
	}
	return nil
}

// queryInFrom finds the common table or the query in FROM that UPDATE or DELETE names, by its alias before its name. It gives the source
// with the query as a common table under the alias, nil where the target is none of them. Error 40517 for columns with new names.
func (b *builder) queryInFrom(node *ast.Target, from []ast.TableSource) (found ast.TableSource, c *commonTable, err *fault.Error) {
	if node.Variable != "" || len(node.Name.Parts) != 1 {
		return nil, nil, nil
	}
	target := node.Name.Object()
	isByAlias := false
	for _, source := range from {
		ast.Walk(source, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.TableName:
				isAlias := strings.EqualFold(n.Alias.Name, target)
				common := b.commonNamed(n.Name)
				if isByAlias || common == nil || !isAlias && !strings.EqualFold(n.Name.Object(), target) {
					break
				}
				named := *common
				if n.Alias.Name != "" {
					named.name = n.Alias.Name
				}
				found, c, isByAlias = n, &named, isAlias
			case *ast.DerivedTable:
				if !strings.EqualFold(n.Alias.Name, target) {
					break
				}
				if len(n.Alias.Columns) > 0 {
					err = expression.Unsupported("a change of a query that renames its columns")
				}
				found, c, isByAlias = n, &commonTable{name: n.Alias.Name, query: n.Query}, true
			case *ast.Query:
				return false
			}
			return true
		})
	}
	return found, c, err
}

// inFrom translates FROM where the target is a query in it: the table behind the query stands beside its rows.
func (g *targeting) inFrom(from []ast.TableSource, target ast.TableSource, c *commonTable) *fault.Error {
	g.stands, g.standsFor = target, func() (string, *fault.Error) {
		sql, err := g.through(c)
		return "(" + sql + ")", err
	}
	sql, err := g.builder.from(from)
	g.stands, g.standsFor, g.from = nil, nil, sql
	return err
}

// through has the statement change the rows of the one table behind a common table: those that the common table gives, which are found
// again by the primary key, or by their place. It gives the rows joined to the table, as FROM has them.
func (g *targeting) through(c *commonTable) (string, *fault.Error) {
	body, is := c.query.Body.(*ast.Specification)
	if !is || len(body.From) != 1 || body.Quantifier == "DISTINCT" || body.GroupBy != nil {
		return "", expression.Unsupported(g.node.verb + " of a common table with groups, DISTINCT or several sources")
	}
	behind, is := body.From[0].(*ast.TableName)
	if !is {
		return "", expression.Unsupported(g.node.verb + " of a common table over more than one table")
	}
	b := g.builder
	table, into, err := b.target(&ast.Target{Name: behind.Name}, nil)
	if err != nil {
		return "", err
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
		keys = append(keys, column)
	}
	for _, key := range table.key {
		add(&ast.ColumnReference{ExpressionAt: ast.ExpressionAt{Place: body.Place}, Name: ast.Name{Parts: []string{key}}}, reading+"."+quote(key))
	}
	if len(table.key) == 0 {
		add(&ast.PseudoColumn{ExpressionAt: ast.ExpressionAt{Place: body.Place}, Name: placePseudo}, table.place(reading))
	}
	query.Body = &specification
	sql, columns, err := b.derived(&query)
	if err != nil {
		return "", err
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
		if c.columns != nil && c.columns[i].name != column.name {
			return "", expression.Unsupported(g.node.verb + " of a common table that renames its columns")
		}
		given.columns = append(given.columns, sourceColumn{name: column.name, typ: column.typ, sql: rows + "." + name})
	}
	b.names.sources = append(b.names.sources, given, g.source)
	g.isThrough = true
	return "(" + sql + ") as " + rows + " (" + strings.Join(names, ", ") + ") join " + into + " as " + reading +
		" on " + strings.Join(matched, " and "), nil
}

// place writes what tells the rows of a table without a key apart: their place, or all values of a view, which has no places.
func (r *relation) place(reading string) string {
	if r.kind == 'v' {
		return reading + "::text"
	}
	return reading + ".ctid"
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
