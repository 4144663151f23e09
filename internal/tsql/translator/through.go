package translator

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// keyPseudo begins the names of pseudo columns that give the key of a row; no batch can write them.
const keyPseudo = "\x00KEY"

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
	b := g.builder
	reading, rows := quote(b.alias("t")), quote(b.alias("c"))
	sql, columns, err := g.keyed(c)
	if err != nil {
		return "", err
	}
	g.source = sourceOf(g.table, "", reading)
	g.source.isHidden = true
	keys := g.table.keys(reading)
	given := &source{alias: c.name, reading: rows}
	var names, matched []string
	for i, column := range columns {
		name := "c" + itoa(i+1)
		names = append(names, name)
		if at := i - len(columns) + len(keys); at >= 0 {
			matched = append(matched, keys[at]+" = "+rows+"."+name)
			continue
		}
		if i < len(c.columns) && c.columns[i].name != column.name {
			return "", expression.Unsupported(g.node.verb + " of a common table that renames its columns")
		}
		given.columns = append(given.columns, sourceColumn{name: column.name, typ: column.typ, sql: rows + "." + name})
	}
	b.names.sources = append(b.names.sources, given, g.source)
	g.isThrough = true
	return "(" + sql + ") as " + rows + " (" + strings.Join(names, ", ") + ") join " + g.into + " as " + reading +
		" on " + strings.Join(matched, " and "), nil
}

// keyed translates the query of a common table with the key of each row behind its columns. It finds the table of the target: behind the
// query, or behind a query in it.
func (g *targeting) keyed(c *commonTable) (string, []sourceColumn, *fault.Error) {
	body, is := c.query.Body.(*ast.Specification)
	if !is || len(body.From) != 1 || body.Quantifier == "DISTINCT" || body.GroupBy != nil {
		return "", nil, expression.Unsupported(g.node.verb + " of a common table with groups, DISTINCT or several sources")
	}
	b := g.builder
	defer b.hideFrom(c)()
	hints := []*ast.TableHint{}
	var inner *commonTable
	switch behind := body.From[0].(type) {
	case *ast.TableName:
		hints = behind.Hints
		if common := b.commonNamed(behind.Name); common != nil {
			named := *common
			if inner = &named; behind.Alias.Name != "" {
				inner.name = behind.Alias.Name
			}
			break
		}
		table, into, err := b.target(&ast.Target{Name: behind.Name}, nil)
		if err != nil {
			return "", nil, err
		}
		g.table, g.into = table, into
	case *ast.DerivedTable:
		if len(behind.Alias.Columns) > 0 {
			return "", nil, expression.Unsupported("a change of a query that renames its columns")
		}
		inner = &commonTable{name: behind.Alias.Name, query: behind.Query}
	default:
		return "", nil, expression.Unsupported(g.node.verb + " of a common table over more than one table")
	}
	if inner != nil {
		sql, columns, err := g.keyed(inner)
		if err != nil {
			return "", nil, err
		}
		b.stands, b.standsFor = body.From[0], func() (string, *fault.Error) { return b.keyedRows(sql, columns, inner, len(g.table.keys(""))) }
	}
	specification, query := *body, *c.query
	specification.Items = slices.Clone(body.Items)
	for i := range g.table.keys("") {
		key := &ast.PseudoColumn{ExpressionAt: ast.ExpressionAt{Place: body.Place}, Name: keyPseudo + itoa(i)}
		specification.Items = append(specification.Items, &ast.ResultColumn{Place: body.Place, Value: key, Alias: "key", HasAlias: true})
	}
	query.Body = &specification
	outer := b.keyCells
	b.keyCells = nil
	sql, columns, err := b.derived(&query)
	b.keyCells = outer
	if locks := lockHints(hints); err == nil && locks != "" && !strings.HasSuffix(sql, locks) && !hasWindow(body) {
		sql += locks
	}
	return sql, columns, err
}

// keyedRows stands for a query in the FROM of another: its columns are in sight, its keys are those of the pseudo columns.
func (b *builder) keyedRows(sql string, columns []sourceColumn, c *commonTable, keys int) (string, *fault.Error) {
	b.stands, b.standsFor = nil, nil
	s := &source{alias: c.name, reading: quote(b.alias("q"))}
	var names []string
	for i, column := range columns {
		name := "c" + itoa(i+1)
		names = append(names, name)
		cell := sourceColumn{name: column.name, typ: column.typ, sql: s.reading + "." + name}
		if i >= len(columns)-keys {
			b.keyCells = append(b.keyCells, cell.sql)
			continue
		}
		if c.columns != nil {
			cell.name = c.columns[i].name
		}
		s.columns = append(s.columns, cell)
	}
	return "(" + sql + ") as " + s.reading + " (" + strings.Join(names, ", ") + ")", b.add(s)
}

// hideFrom puts a common table and those behind it out of sight, as its query does not see them, until the returned function is called.
func (b *builder) hideFrom(c *commonTable) (back func()) {
	for n := b.names; n != nil; n = n.outer {
		at := slices.IndexFunc(n.common, func(other *commonTable) bool { return other.sqlName == c.sqlName })
		if at >= 0 {
			all := n.common
			n.common = all[:at:at]
			return func() { n.common = all }
		}
	}
	return func() {}
}

// key gives a column of the key of the one table that the query reads.
func (b *builder) key(at int) sqlExpression {
	if b.keyCells != nil {
		return sqlExpression{sql: b.keyCells[at], typ: value.Of(value.BigInt)}
	}
	s := b.names.sources[0]
	return sqlExpression{sql: s.table.keys(s.reading)[at], typ: value.Of(value.BigInt)}
}

// keys writes what tells the rows of a table apart: the primary key, or their place.
func (r *relation) keys(reading string) []string {
	var keys []string
	for _, name := range r.key {
		keys = append(keys, reading+"."+quote(name))
	}
	if keys == nil {
		return []string{r.place(reading)}
	}
	return keys
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
