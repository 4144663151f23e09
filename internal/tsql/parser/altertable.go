package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

func (p *parser) alterTable(start int) ast.Statement {
	p.expect("TABLE")
	node := &ast.AlterTable{Name: p.name("a table")}
	if p.is("WITH", "CHECK") || p.is("WITH", "NOCHECK") {
		p.at++
		node.Check = p.take().Upper
	}
	switch {
	case p.accept("ADD"):
		node.Action = "ADD"
		node.Added = p.addedElements()
	case p.accept("ALTER", "COLUMN"):
		node.Action = "ALTER COLUMN"
		p.alterColumn(node)
	case p.accept("DROP"):
		node.Action = "DROP"
		p.list(func() { node.Drops = append(node.Drops, p.tableDrop()) })
	default:
		p.alterTableSetting(node)
	}
	node.Place = p.since(start)
	return node
}

// addedElements takes columns and constraints without parentheses.
func (p *parser) addedElements() *ast.TableDefinition {
	start := p.at
	node := &ast.TableDefinition{}
	p.list(func() { p.tableElement(node) })
	node.Place = p.since(start)
	return node
}

func (p *parser) alterColumn(node *ast.AlterTable) {
	if !p.ahead(1).Is("DROP") && !p.ahead(1).Is("ADD") {
		node.Column = p.columnDefinition()
	} else {
		start := p.at
		node.Column = &ast.ColumnDefinition{Name: p.identifier("a column")}
		node.Column.Place = p.since(start)
		node.Change = p.expectOne("ADD", "DROP")
		clause := p.columnClause()
		if clause == nil {
			p.fail("ROWGUIDCOL", "PERSISTED", "NOT FOR REPLICATION", "SPARSE", "HIDDEN", "MASKED")
		}
		node.Column.Clauses = append(node.Column.Clauses, clause)
	}
	if p.is("WITH", "(") {
		p.at++
		node.Options = p.optionsInParens()
	}
}

func (p *parser) tableDrop() *ast.TableDrop {
	start := p.at
	node := &ast.TableDrop{Kind: p.acceptOne("COLUMN", "CONSTRAINT")}
	if node.Kind == "" && p.accept("PERIOD", "FOR", "SYSTEM_TIME") {
		node.Kind = "PERIOD"
		node.Place = p.since(start)
		return node
	}
	node.IfExists = p.accept("IF", "EXISTS")
	node.Names = append(node.Names, p.identifier("a name"))
	for p.is(",") && p.namesObject(p.ahead(1)) && !p.ahead(1).Is("PERIOD") {
		p.at++
		node.Names = append(node.Names, p.identifier("a name"))
	}
	if p.is("WITH", "(") {
		p.at++
		node.Options = p.optionsInParens()
	}
	node.Place = p.since(start)
	return node
}

// alterTableSetting takes CHECK, NOCHECK, triggers, SWITCH, REBUILD, SET and change tracking.
func (p *parser) alterTableSetting(node *ast.AlterTable) {
	action := p.expectPhrase("CHECK CONSTRAINT", "NOCHECK CONSTRAINT", "ENABLE TRIGGER", "DISABLE TRIGGER", "ENABLE CHANGE_TRACKING",
		"DISABLE CHANGE_TRACKING", "SWITCH", "REBUILD", "SET")
	node.Action = action
	switch action {
	case "CHECK CONSTRAINT", "NOCHECK CONSTRAINT", "ENABLE TRIGGER", "DISABLE TRIGGER":
		if p.accept("ALL") {
			node.All = true
		} else {
			node.Names = p.identifiers("a name")
		}
	case "SET":
		node.Options = p.optionsInParens()
	case "SWITCH":
		if p.accept("PARTITION") {
			node.Source = p.expression()
		}
		p.expect("TO")
		node.Target = p.name("a table")
		if p.accept("PARTITION") {
			node.Into = p.expression()
		}
		p.withOptions(node)
	case "REBUILD":
		if p.accept("PARTITION") {
			p.expect("=")
			if p.is("ALL") {
				node.Source = p.keyword()
			} else {
				node.Source = p.expression()
			}
		}
		p.withOptions(node)
	default:
		p.withOptions(node)
	}
}

func (p *parser) withOptions(node *ast.AlterTable) {
	if p.is("WITH", "(") {
		p.at++
		node.HasWith = true
		node.Options = p.optionsInParens()
	}
}

func (p *parser) alterIndex(start int) ast.Statement {
	p.expect("INDEX")
	node := &ast.AlterIndex{}
	if p.accept("ALL") {
		node.All = true
	} else {
		node.Name = p.identifier("an index")
	}
	p.expect("ON")
	node.Table = p.name("a table")
	node.Action = p.expectOne("REBUILD", "REORGANIZE", "DISABLE", "SET", "RESUME", "PAUSE", "ABORT")
	if p.accept("PARTITION") {
		p.expect("=")
		if p.is("ALL") {
			node.Partition = p.keyword()
		} else {
			node.Partition = p.expression()
		}
	}
	switch {
	case node.Action == "SET":
		node.Options = p.optionsInParens()
	case p.is("WITH", "("):
		p.at++
		node.Options = p.optionsInParens()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) createStatistics(start int) ast.Statement {
	p.expect("STATISTICS")
	node := &ast.CreateStatistics{Name: p.identifier("statistics")}
	p.expect("ON")
	node.Table = p.name("a table")
	node.Columns = p.columnList()
	if p.accept("WHERE") {
		node.Where = p.condition()
	}
	if p.accept("WITH") {
		node.Options = p.statisticsOptions()
	}
	node.Place = p.since(start)
	return node
}

// statisticsOptions takes FULLSCAN, SAMPLE n PERCENT and their relatives.
func (p *parser) statisticsOptions() (all []*ast.Option) {
	p.list(func() {
		start := p.at
		if !p.accept("SAMPLE") {
			all = append(all, p.option())
			return
		}
		option := &ast.Option{Name: "SAMPLE", Value: p.constant(), Unit: p.expectOne("PERCENT", "ROWS")}
		option.Place = p.since(start)
		all = append(all, option)
	})
	return all
}

// updateOrStatistics takes UPDATE, or UPDATE STATISTICS.
func (p *parser) updateOrStatistics(start int) ast.Statement {
	if !p.ahead(1).Is("STATISTICS") {
		return p.update(nil, start)
	}
	p.expect("UPDATE", "STATISTICS")
	node := &ast.UpdateStatistics{Table: p.name("a table")}
	switch {
	case p.is("("):
		node.Parens = true
		node.Names = p.columnList()
	case p.isName() && !p.opensStatement(p.at) && !p.isLabel():
		node.Names = append(node.Names, p.identifier("statistics"))
	}
	if p.accept("WITH") {
		node.Options = p.statisticsOptions()
	}
	node.Place = p.since(start)
	return node
}
