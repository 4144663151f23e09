package parser

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// sources takes the list of FROM.
func (p *parser) sources() (all []ast.TableSource) {
	p.list(func() { all = append(all, p.joined()) })
	return all
}

// joinHints stand before JOIN. Page: queries/hints-transact-sql-join.
var joinHints = []string{"LOOP", "HASH", "MERGE", "REMOTE", "REDUCE", "REPLICATE", "REDISTRIBUTE"}

// joined takes a source with the joins behind it. An ON belongs to the last join that has none: a JOIN b JOIN c ON x ON y.
func (p *parser) joined() ast.TableSource {
	defer p.deeper()()
	start := p.at
	left := p.source()
	for {
		join := p.joinWords()
		if join == nil {
			return left
		}
		p.link()
		join.Left = left
		if join.Kind == "CROSS" || strings.HasSuffix(join.Kind, "APPLY") {
			join.Right = p.source()
		} else {
			join.Right = p.joinedInside()
			p.expect("ON")
			join.On = p.condition()
		}
		join.Place = p.since(start)
		left = join
	}
}

// joinedInside takes the right side of a join: joins whose ON comes before that of the outer one belong to it.
func (p *parser) joinedInside() ast.TableSource {
	defer p.deeper()()
	start := p.at
	right := p.source()
	for !p.is("ON") {
		join := p.joinWords()
		if join == nil {
			break
		}
		p.link()
		join.Left = right
		if join.Kind == "CROSS" || strings.HasSuffix(join.Kind, "APPLY") {
			join.Right = p.source()
		} else {
			join.Right = p.joinedInside()
			p.expect("ON")
			join.On = p.condition()
		}
		join.Place = p.since(start)
		right = join
	}
	return right
}

// joinWords takes the words of a join, or returns nil.
func (p *parser) joinWords() *ast.Join {
	switch {
	case p.accept("CROSS", "JOIN"):
		return &ast.Join{Kind: "CROSS"}
	case p.accept("CROSS", "APPLY"):
		return &ast.Join{Kind: "CROSS APPLY"}
	case p.accept("OUTER", "APPLY"):
		return &ast.Join{Kind: "OUTER APPLY"}
	case p.accept("JOIN"):
		return &ast.Join{Kind: "INNER"}
	}
	join := &ast.Join{Kind: p.acceptOne("INNER", "LEFT", "RIGHT", "FULL")}
	if join.Kind == "" {
		return nil
	}
	if join.Kind != "INNER" {
		p.accept("OUTER")
	}
	join.Hint = p.acceptOne(joinHints...)
	p.expect("JOIN")
	return join
}

// source takes one source with PIVOT and UNPIVOT behind it.
func (p *parser) source() ast.TableSource {
	start := p.at
	source := p.plainSource(start)
	for {
		switch {
		case p.is("PIVOT"):
			source = p.pivot(start, source)
		case p.is("UNPIVOT"):
			source = p.unpivot(start, source)
		default:
			return source
		}
	}
}

func (p *parser) plainSource(start int) ast.TableSource {
	switch {
	case p.is("("):
		return p.parenthesizedSource(start)
	case p.isVariable():
		return p.variableSource(start)
	case p.isOne("OPENROWSET", "OPENQUERY", "OPENDATASOURCE"), p.is("CHANGETABLE", "("):
		return p.rowset(start)
	case p.isOne("OPENXML", "CONTAINSTABLE", "FREETEXTTABLE", "SEMANTICKEYPHRASETABLE", "SEMANTICSIMILARITYTABLE",
		"SEMANTICSIMILARITYDETAILSTABLE"):
		t := p.take()
		return p.functionSource(start, p.call(start, ast.Name{Parts: []string{t.Text}, Place: p.since(start)}))
	}
	name := p.name("a table")
	if p.is("::") {
		return p.functionSource(start, p.static(start, name))
	}
	if p.is("(") && !p.opensHints() {
		return p.functionSource(start, p.call(start, name))
	}
	return p.tableSource(start, name)
}

// opensHints says that the parentheses hold hints of a table, as old batches write them without WITH.
func (p *parser) opensHints() bool {
	t := p.ahead(1)
	if t.Is("INDEX") || t.Is("FORCESEEK") {
		return true
	}
	return t.Kind == token.Word && tableHints[t.Upper] && (p.ahead(2).Is(")") || p.ahead(2).Is(","))
}

func (p *parser) tableSource(start int, name ast.Name) ast.TableSource {
	node := &ast.TableName{Name: name}
	if p.is("FOR", "SYSTEM_TIME") {
		node.Temporal = p.temporal()
	}
	if p.is("TABLESAMPLE") {
		node.Sample = p.sample()
	}
	node.Alias = p.alias()
	if node.Sample == nil && p.is("TABLESAMPLE") {
		node.Sample = p.sample()
	}
	node.Hints, node.BareHints = p.tableHints()
	if len(node.Hints) > 0 && node.Alias.Name == "" {
		node.Alias = p.alias()
	}
	node.Place = p.since(start)
	return node
}

// alias takes the name of a source, if there is one, and names for its columns.
func (p *parser) alias() (alias ast.Alias) {
	if p.accept("AS") {
		alias.Name = p.identifier("an alias")
	} else if p.isAlias() && !p.isClause() {
		alias.Name = p.take().Text
	}
	if alias.Name != "" && p.is("(") && !p.opensHints() {
		alias.Columns = p.columnList()
	}
	return alias
}

// isClause says that a word which is no keyword goes on with the statement, and names no source.
func (p *parser) isClause() bool {
	return p.is("OUTPUT") || p.is("APPLY") || p.is("OFFSET") || p.is("MATCHED") || p.is("USING") || p.is("REMOTE", "JOIN") ||
		p.is("LOOP", "JOIN") || p.is("HASH", "JOIN")
}

func (p *parser) variableSource(start int) ast.TableSource {
	variable := p.variable()
	if p.is(".") {
		target := &ast.Variable{Name: variable}
		target.Place = p.since(start)
		return p.functionSource(start, p.member(start, target))
	}
	node := &ast.TableVariable{Name: variable, Alias: p.alias()}
	node.Hints, _ = p.tableHints()
	node.Place = p.since(start)
	return node
}

// parenthesizedSource takes a derived table, VALUES, DML with OUTPUT, or a joined source in parentheses.
func (p *parser) parenthesizedSource(start int) ast.TableSource {
	defer p.deeper()()
	switch {
	case p.opensQuery():
		p.expect("(")
		node := &ast.DerivedTable{Query: p.query()}
		p.expect(")")
		if p.is(".") { // (SELECT ...).nodes('...')
			target := &ast.Subquery{Query: node.Query}
			target.Place = p.since(start)
			return p.functionSource(start, p.member(start, target))
		}
		node.Alias = p.alias()
		node.Place = p.since(start)
		return node
	case p.is("(", "VALUES"):
		p.at++
		node := &ast.ValuesTable{Rows: p.values()}
		p.expect(")")
		node.Alias = p.alias()
		node.Place = p.since(start)
		return node
	case p.ahead(1).Is("INSERT") || p.ahead(1).Is("UPDATE") || p.ahead(1).Is("DELETE") || p.ahead(1).Is("MERGE"):
		p.at++
		node := &ast.ChangedTable{Statement: p.changed()}
		p.expect(")")
		node.Alias = p.alias()
		node.Place = p.since(start)
		return node
	case p.ahead(1).Kind == token.Variable && p.ahead(2).Is(")") && p.ahead(3).Is("."):
		return p.functionSource(start, p.operand())
	default:
		p.expect("(")
		node := &ast.SourceGroup{Inner: p.joined()}
		p.expect(")")
		node.Place = p.since(start)
		return node
	}
}

// functionSource takes what follows a function that yields rows.
func (p *parser) functionSource(start int, function ast.Expression) ast.TableSource {
	node := &ast.FunctionTable{Function: function}
	if call, is := function.(*ast.Call); is && p.is("WITH") && p.hasSchema(call) {
		p.at++
		p.schema(node)
	}
	node.Alias = p.alias()
	node.Hints, _ = p.tableHints()
	node.Place = p.since(start)
	return node
}

// hasSchema says that WITH behind a function describes its columns, and does not hold hints.
func (p *parser) hasSchema(call *ast.Call) bool {
	name := strings.ToUpper(call.Name.Object())
	return name == "OPENJSON" || name == "OPENXML" || name == "OPENROWSET"
}

// schema takes the columns of OPENJSON and OPENXML. Page: functions/openjson-transact-sql.
func (p *parser) schema(node *ast.FunctionTable) {
	p.expect("(")
	if p.isName() && (p.ahead(1).Is(")") || p.ahead(1).Is(".")) {
		node.SchemaTable = p.name("a table")
		p.expect(")")
		return
	}
	p.list(func() {
		start := p.at
		column := &ast.SchemaColumn{Name: p.identifier("a column"), Type: p.dataType()}
		if p.isString() {
			column.Path = p.literal()
		}
		column.AsJSON = p.accept("AS", "JSON")
		column.Place = p.since(start)
		node.Schema = append(node.Schema, column)
	})
	p.expect(")")
}

// rowset takes OPENROWSET, OPENQUERY, OPENDATASOURCE and CHANGETABLE with the tokens in their parentheses as they are.
func (p *parser) rowset(start int) ast.TableSource {
	node := &ast.RowsetTable{Function: p.take().Upper}
	if !p.is("(") {
		p.fail("(")
	}
	end := p.closing(p.at)
	p.at++
	for p.at < end {
		node.Words = append(node.Words, p.raw())
	}
	p.expect(")")
	if p.accept(".") {
		node.Name = p.name("a table")
	}
	if p.accept("WITH") {
		if !p.is("(") {
			p.fail("(")
		}
		for end := p.closing(p.at); p.at < end; {
			node.Schema = append(node.Schema, p.raw())
		}
		p.expect(")")
		node.Schema = append(node.Schema, ")")
	}
	node.Alias = p.alias()
	node.Place = p.since(start)
	return node
}

// raw takes a token as it is written.
func (p *parser) raw() string {
	t := p.take()
	return p.text[t.Offset:t.End]
}
