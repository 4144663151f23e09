package parser

import "github.com/parley-broker/parley/internal/tsql/ast"

// consoleCommand takes DBCC: CHECKIDENT is understood, the others are refused by name.
func (p *parser) consoleCommand(start int) ast.Statement {
	if !p.ahead(1).Is("CHECKIDENT") {
		return p.foreign(start)
	}
	p.expect("DBCC", "CHECKIDENT")
	node := &ast.CheckIdentity{}
	p.inParens(func() {
		node.Table = p.namedOrString("a table")
		if !p.accept(",") {
			return
		}
		if node.NoReseed = p.accept("NORESEED"); node.NoReseed {
			return
		}
		p.expect("RESEED")
		if p.accept(",") {
			node.Value = p.constant()
		}
	})
	if p.accept("WITH") {
		p.expect("NO_INFOMSGS")
		node.IsQuiet = true
	}
	node.Place = p.since(start)
	return node
}
