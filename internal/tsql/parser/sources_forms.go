package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// temporal takes FOR SYSTEM_TIME.
func (p *parser) temporal() *ast.Temporal {
	start := p.at
	p.expect("FOR", "SYSTEM_TIME")
	node := &ast.Temporal{Kind: p.expectPhrase("AS OF", "FROM", "BETWEEN", "CONTAINED IN", "ALL")}
	switch node.Kind {
	case "AS OF":
		node.From = p.constant()
	case "FROM":
		node.From = p.constant()
		p.expect("TO")
		node.To = p.constant()
	case "BETWEEN":
		node.From = p.constant()
		p.expect("AND")
		node.To = p.constant()
	case "CONTAINED IN":
		p.expect("(")
		node.From = p.constant()
		p.expect(",")
		node.To = p.constant()
		p.expect(")")
	}
	node.Place = p.since(start)
	return node
}

// sample takes TABLESAMPLE.
func (p *parser) sample() *ast.Sample {
	start := p.at
	p.expect("TABLESAMPLE")
	node := &ast.Sample{System: p.accept("SYSTEM")}
	p.inParens(func() {
		node.Size = p.expression()
		node.Unit = p.acceptOne("PERCENT", "ROWS")
	})
	if p.accept("REPEATABLE") {
		p.inParens(func() { node.Repeatable = p.expression() })
	}
	node.Place = p.since(start)
	return node
}

// tableHints are the hints of a table. Page: queries/hints-transact-sql-table.
var tableHints = map[string]bool{
	"NOEXPAND": true, "INDEX": true, "KEEPIDENTITY": true, "KEEPDEFAULTS": true, "FASTFIRSTROW": true, "FORCESEEK": true, "FORCESCAN": true,
	"HOLDLOCK": true, "IGNORE_CONSTRAINTS": true, "IGNORE_TRIGGERS": true, "NOLOCK": true, "NOWAIT": true, "PAGLOCK": true,
	"READCOMMITTED": true, "READCOMMITTEDLOCK": true, "READPAST": true, "READUNCOMMITTED": true, "REPEATABLEREAD": true, "ROWLOCK": true,
	"SERIALIZABLE": true, "SNAPSHOT": true, "SPATIAL_WINDOW_MAX_CELLS": true, "TABLOCK": true, "TABLOCKX": true, "UPDLOCK": true,
	"XLOCK": true,
}

// tableHints takes WITH (hints), or (hints) as old batches write them.
func (p *parser) tableHints() (hints []*ast.TableHint, bare bool) {
	switch {
	case p.is("WITH", "("):
		p.at++
	case p.is("(") && p.opensHints():
		bare = true
	default:
		return nil, false
	}
	p.expect("(")
	for {
		hints = append(hints, p.tableHint())
		if p.accept(")") {
			return hints, bare
		}
		p.accept(",")
	}
}

func (p *parser) tableHint() *ast.TableHint {
	start := p.at
	if p.current().Kind != token.Word || !tableHints[p.current().Upper] {
		p.fail("a hint of a table")
	}
	node := &ast.TableHint{Name: p.take().Upper}
	node.Equals = p.accept("=")
	switch {
	case node.Name == "INDEX" && p.is("("):
		node.Parens = true
		p.inParens(func() { p.list(func() { node.Values = append(node.Values, p.indexValue()) }) })
	case node.Equals:
		node.Values = append(node.Values, p.indexValue())
	case node.Name == "FORCESEEK" && p.is("("):
		node.Parens = true
		p.inParens(func() {
			node.Values = append(node.Values, p.indexValue())
			node.Columns = p.columnList()
		})
	}
	node.Place = p.since(start)
	return node
}

// indexValue takes the name or the number of an index.
func (p *parser) indexValue() string {
	if p.current().Kind == token.Integer {
		return p.take().Text
	}
	return p.identifier("an index")
}

func (p *parser) pivot(start int, input ast.TableSource) ast.TableSource {
	p.expect("PIVOT", "(")
	from := p.at
	aggregate, is := p.primary().(*ast.Call)
	if !is {
		p.failAt(from, "an aggregate")
	}
	node := &ast.Pivot{Input: input, Aggregate: aggregate}
	p.expect("FOR")
	node.Column = p.name("a column")
	p.expect("IN")
	p.inParens(func() { node.Values = p.identifiers("a column") })
	p.expect(")")
	node.Alias = p.alias()
	node.Place = p.since(start)
	return node
}

func (p *parser) unpivot(start int, input ast.TableSource) ast.TableSource {
	p.expect("UNPIVOT", "(")
	node := &ast.Unpivot{Input: input, Value: p.identifier("a column")}
	p.expect("FOR")
	node.Column = p.identifier("a column")
	p.expect("IN")
	p.inParens(func() { node.Columns = p.identifiers("a column") })
	p.expect(")")
	node.Alias = p.alias()
	node.Place = p.since(start)
	return node
}

// hintPhrases are the query hints with several words, or with a value. Page: queries/hints-transact-sql-query.
var hintPhrases = []string{
	"HASH GROUP", "ORDER GROUP", "CONCAT UNION", "HASH UNION", "MERGE UNION", "LOOP JOIN", "MERGE JOIN", "HASH JOIN",
	"DISABLE EXTERNALPUSHDOWN", "FORCE EXTERNALPUSHDOWN", "DISABLE SCALEOUTEXECUTION", "FORCE SCALEOUTEXECUTION",
	"EXPAND VIEWS", "FAST", "FORCE ORDER", "IGNORE_NONCLUSTERED_COLUMNSTORE_INDEX", "KEEP PLAN", "KEEPFIXED PLAN",
	"MAX_GRANT_PERCENT", "MIN_GRANT_PERCENT", "MAXDOP", "MAXRECURSION", "NO_PERFORMANCE_SPOOL",
	"OPTIMIZE FOR UNKNOWN", "OPTIMIZE FOR", "PARAMETERIZATION SIMPLE", "PARAMETERIZATION FORCED", "QUERYTRACEON", "RECOMPILE",
	"ROBUST PLAN", "USE HINT", "USE PLAN", "LABEL", "TABLE HINT", "FOR TIMESTAMP AS OF",
}

// queryHints takes OPTION (...).
func (p *parser) queryHints() (hints []*ast.QueryHint) {
	if !p.accept("OPTION") {
		return nil
	}
	p.inParens(func() {
		p.list(func() { hints = append(hints, p.queryHint()) })
	})
	return hints
}

func (p *parser) queryHint() *ast.QueryHint {
	start := p.at
	node := &ast.QueryHint{Words: p.expectPhrase(hintPhrases...)}
	switch node.Words {
	case "FAST", "MAXDOP", "MAXRECURSION", "QUERYTRACEON":
		node.Value = p.constant()
	case "MAX_GRANT_PERCENT", "MIN_GRANT_PERCENT", "LABEL":
		p.accept("=")
		node.Value = p.constant()
	case "USE PLAN", "FOR TIMESTAMP AS OF":
		node.Value = p.constant()
	case "OPTIMIZE FOR", "USE HINT":
		p.inParens(func() {
			p.list(func() { node.Items = append(node.Items, p.hintItem()) })
		})
	case "TABLE HINT":
		p.inParens(func() {
			node.Table = p.name("a table")
			for p.accept(",") {
				node.Hints = append(node.Hints, p.tableHint())
			}
		})
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) hintItem() *ast.HintItem {
	start := p.at
	item := &ast.HintItem{}
	if p.isVariable() {
		item.Variable = p.variable()
		if !p.accept("UNKNOWN") {
			p.expect("=")
			item.Value = p.constant()
		}
	} else {
		item.Value = p.literal()
	}
	item.Place = p.since(start)
	return item
}
