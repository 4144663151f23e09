package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

// changed takes INSERT, UPDATE, DELETE or MERGE as a source of rows.
func (p *parser) changed() ast.Statement {
	start := p.at
	switch {
	case p.is("INSERT"):
		return p.insert(nil, start)
	case p.is("UPDATE"):
		return p.update(nil, start)
	case p.is("DELETE"):
		return p.delete(nil, start)
	default:
		return p.merge(nil, start)
	}
}

// target takes the object that DML changes.
func (p *parser) target() ast.Target {
	start := p.at
	target := ast.Target{}
	switch {
	case p.isVariable():
		target.Variable = p.variable()
	case p.isOne("OPENROWSET", "OPENQUERY", "OPENDATASOURCE"):
		target.Rowset = p.rowset(start).(*ast.RowsetTable)
	default:
		target.Name = p.name("a table")
	}
	target.Hints, target.BareHints = p.tableHints()
	target.Place = p.since(start)
	return target
}

// optionalTop takes TOP, if it comes next.
func (p *parser) optionalTop() *ast.Top {
	if !p.is("TOP") {
		return nil
	}
	return p.top()
}

func (p *parser) insert(with *ast.With, start int) ast.Statement {
	p.expect("INSERT")
	node := &ast.Insert{With: with, Top: p.optionalTop()}
	node.HasInto = p.accept("INTO")
	node.Target = p.target()
	if p.is("(") && !p.opensQuery() {
		p.inParens(func() { p.list(func() { node.Columns = append(node.Columns, p.insertColumn()) }) })
	}
	node.Output = p.outputs()
	p.insertSource(node)
	node.Options = p.queryHints()
	node.Place = p.since(start)
	return node
}

// insertColumn takes the name of a column; $IDENTITY and those of graphs are names here.
func (p *parser) insertColumn() ast.Name {
	start := p.at
	if p.current().Upper != "" && p.current().Upper[0] == '$' {
		name := p.take().Upper
		return ast.Name{Parts: []string{name}, Place: p.since(start)}
	}
	return p.name("a column")
}

func (p *parser) insertSource(node *ast.Insert) {
	switch {
	case p.accept("DEFAULT", "VALUES"):
		node.IsDefault = true
	case p.is("VALUES"):
		node.Rows = p.values()
	case p.isOne("EXEC", "EXECUTE"):
		from := p.at
		node.Execute = p.execute(from).(*ast.Execute)
	case p.isOne("SELECT", "("):
		node.Query = p.query()
	case p.is("WITH"):
		p.fail("VALUES", "SELECT", "EXECUTE", "DEFAULT VALUES")
	default:
		p.fail("VALUES", "SELECT", "EXECUTE", "DEFAULT VALUES")
	}
}

// values takes VALUES with its rows.
func (p *parser) values() (rows [][]ast.Expression) {
	p.expect("VALUES")
	p.list(func() {
		var row []ast.Expression
		p.inParens(func() { p.list(func() { row = append(row, p.argument()) }) })
		rows = append(rows, row)
	})
	return rows
}

// outputs takes OUTPUT, which may come twice: with INTO and without.
func (p *parser) outputs() (all []*ast.Output) {
	for p.is("OUTPUT") {
		start := p.at
		p.at++
		node := &ast.Output{}
		p.list(func() { node.Items = append(node.Items, p.resultColumn()) })
		if p.accept("INTO") {
			node.HasInto = true
			if p.isVariable() {
				node.Variable = p.variable()
			} else {
				node.Into = p.name("a table")
			}
			if p.is("(") && !p.opensQuery() {
				node.Columns = p.columnList()
			}
		}
		node.Place = p.since(start)
		all = append(all, node)
	}
	return all
}

func (p *parser) update(with *ast.With, start int) ast.Statement {
	p.expect("UPDATE")
	node := &ast.Update{With: with, Top: p.optionalTop(), Target: p.target()}
	p.expect("SET")
	node.Set = p.setClauses()
	node.Output = p.outputs()
	if p.accept("FROM") {
		node.From = p.sources()
	}
	node.Where = p.where()
	node.Options = p.queryHints()
	node.Place = p.since(start)
	return node
}

// where takes WHERE of UPDATE and DELETE, with CURRENT OF.
func (p *parser) where() ast.Condition {
	if !p.accept("WHERE") {
		return nil
	}
	start := p.at
	if !p.accept("CURRENT", "OF") {
		return p.condition()
	}
	node := &ast.CurrentOf{Cursor: p.cursorName()}
	node.Place = p.since(start)
	return node
}

func (p *parser) setClauses() (all []*ast.SetClause) {
	p.list(func() { all = append(all, p.setClause()) })
	return all
}

func (p *parser) setClause() *ast.SetClause {
	start := p.at
	node := &ast.SetClause{}
	if p.isVariable() {
		node.Variable = p.variable()
		node.Operator = p.assignment()
		if node.Operator == "=" && p.assignsColumn() {
			node.Column = p.name("a column")
			node.Operator = p.assignment()
		}
	} else {
		name := p.name("a column")
		if p.is("(") {
			node.Method = p.modification(start, name)
			node.Place = p.since(start)
			return node
		}
		node.Column = name
		node.Operator = p.assignment()
	}
	node.Value = p.argument()
	node.Place = p.since(start)
	return node
}

// assignsColumn says that @variable = column = value goes on with the column.
func (p *parser) assignsColumn() bool {
	if !p.isName() {
		return false
	}
	ahead := 1
	for p.ahead(ahead).Is(".") && p.namesObject(p.ahead(ahead+1)) {
		ahead += 2
	}
	return p.isAssignment(ahead)
}

// modification takes the arguments of column.modify(...) or column.WRITE(...).
func (p *parser) modification(start int, name ast.Name) *ast.MethodCall {
	if len(name.Parts) < 2 {
		p.fail("=")
	}
	column := &ast.ColumnReference{Name: ast.Name{Parts: name.Parts[:len(name.Parts)-1], Place: name.Place}}
	column.Place = name.Place
	node := &ast.MethodCall{Target: column, Method: name.Object(), Arguments: p.arguments()}
	node.Place = p.since(start)
	return node
}

func (p *parser) delete(with *ast.With, start int) ast.Statement {
	p.expect("DELETE")
	node := &ast.Delete{With: with, Top: p.optionalTop()}
	node.HasFrom = p.accept("FROM")
	node.Target = p.target()
	node.Output = p.outputs()
	if p.accept("FROM") {
		node.From = p.sources()
	}
	node.Where = p.where()
	node.Options = p.queryHints()
	node.Place = p.since(start)
	return node
}

func (p *parser) merge(with *ast.With, start int) ast.Statement {
	p.expect("MERGE")
	node := &ast.Merge{With: with, Top: p.optionalTop()}
	p.accept("INTO")
	node.Target = p.target()
	if p.accept("AS") {
		node.Alias = p.identifier("an alias")
	} else if p.isName() && !p.is("USING") {
		node.Alias = p.take().Text
	}
	p.expect("USING")
	node.Using = p.joined()
	p.expect("ON")
	node.On = p.condition()
	for p.is("WHEN") {
		node.Whens = append(node.Whens, p.mergeWhen())
	}
	if len(node.Whens) == 0 {
		p.fail("WHEN")
	}
	node.Output = p.outputs()
	node.Options = p.queryHints()
	node.Place = p.since(start)
	return node
}

func (p *parser) mergeWhen() *ast.MergeWhen {
	start := p.at
	p.expect("WHEN")
	node := &ast.MergeWhen{}
	switch p.expectPhrase("MATCHED", "NOT MATCHED BY SOURCE", "NOT MATCHED BY TARGET", "NOT MATCHED") {
	case "MATCHED":
		node.Kind = "MATCHED"
	case "NOT MATCHED BY SOURCE":
		node.Kind = "NOT MATCHED BY SOURCE"
	default:
		node.Kind = "NOT MATCHED BY TARGET"
	}
	if p.accept("AND") {
		node.Condition = p.condition()
	}
	p.expect("THEN")
	node.Action = p.expectOne("UPDATE", "DELETE", "INSERT")
	switch node.Action {
	case "UPDATE":
		p.expect("SET")
		node.Set = p.setClauses()
	case "INSERT":
		if p.is("(") {
			p.inParens(func() { p.list(func() { node.Columns = append(node.Columns, p.insertColumn()) }) })
		}
		if p.accept("DEFAULT", "VALUES") {
			node.IsDefault = true
			break
		}
		p.expect("VALUES")
		p.inParens(func() { p.list(func() { node.Values = append(node.Values, p.argument()) }) })
	}
	node.Place = p.since(start)
	return node
}
