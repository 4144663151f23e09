package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
)

func (p *parser) beginTransaction(start int) ast.Statement {
	p.expect("BEGIN")
	node := &ast.BeginTransaction{Distributed: p.accept("DISTRIBUTED")}
	p.expectOne("TRANSACTION", "TRAN")
	node.Name = p.transactionName()
	if p.accept("WITH", "MARK") {
		node.HasMark = true
		if p.isString() {
			node.Mark = p.literal()
		}
	}
	node.Place = p.since(start)
	return node
}

// transactionName takes the name of a transaction, if there is one. By the documentation any name is taken, THROW too.
func (p *parser) transactionName() (name ast.TransactionName) {
	switch {
	case p.isVariable():
		name.Variable = p.variable()
	case p.isName() && !p.opensOther():
		name.Name = p.take().Text
	}
	return name
}

// opensOther says that a word begins a statement of the broker or a label, and is no name of a transaction.
func (p *parser) opensOther() bool {
	return p.isLabel() || p.opensStatement(p.at) && !p.is("THROW")
}

func (p *parser) commit(start int) ast.Statement {
	p.expect("COMMIT")
	node := &ast.Commit{Work: p.accept("WORK")}
	if !node.Work && p.acceptOne("TRANSACTION", "TRAN") != "" {
		node.Name = p.transactionName()
	}
	if p.is("WITH", "(") {
		p.at++
		node.Options = p.optionsInParens()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) rollback(start int) ast.Statement {
	p.expect("ROLLBACK")
	node := &ast.Rollback{Work: p.accept("WORK")}
	if !node.Work && p.acceptOne("TRANSACTION", "TRAN") != "" {
		node.Name = p.transactionName()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) save(start int) ast.Statement {
	p.expect("SAVE")
	p.expectOne("TRANSACTION", "TRAN")
	node := &ast.SaveTransaction{Name: p.transactionName()}
	if node.Name == (ast.TransactionName{}) {
		p.fail("a savepoint")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) use(start int) ast.Statement {
	p.expect("USE")
	node := &ast.Use{Database: p.identifier("a database")}
	node.Place = p.since(start)
	return node
}

func (p *parser) revert(start int) ast.Statement {
	p.expect("REVERT")
	node := &ast.Revert{}
	if p.accept("WITH", "COOKIE") {
		p.expect("=")
		node.Cookie = p.variable()
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) reconfigure(start int) ast.Statement {
	p.expect("RECONFIGURE")
	node := &ast.Reconfigure{Override: p.accept("WITH", "OVERRIDE")}
	node.Place = p.since(start)
	return node
}

func (p *parser) kill(start int) ast.Statement {
	p.expect("KILL")
	if p.isOne("STATS", "QUERY") {
		p.at = start
		return p.foreign(start)
	}
	node := &ast.Kill{Session: p.constant(), StatusOnly: p.accept("WITH", "STATUSONLY")}
	node.Place = p.since(start)
	return node
}

func (p *parser) truncate(start int) ast.Statement {
	p.expect("TRUNCATE", "TABLE")
	node := &ast.Truncate{Table: p.name("a table")}
	node.Place = p.since(start)
	return node
}

// executeOrAs takes EXECUTE, and EXECUTE AS.
func (p *parser) executeOrAs(start int) ast.Statement {
	if p.ahead(1).Is("AS") {
		return p.executeAs(start)
	}
	return p.execute(start)
}

func (p *parser) executeAs(start int) ast.Statement {
	p.expectOne("EXECUTE", "EXEC")
	p.expect("AS")
	node := &ast.ExecuteAs{Kind: p.expectOne("CALLER", "OWNER", "SELF", "LOGIN", "USER")}
	if p.accept("=") {
		node.Name = p.textValue()
	}
	if p.accept("WITH") {
		if p.accept("NO", "REVERT") {
			node.NoRevert = true
		} else {
			p.expect("COOKIE", "INTO")
			node.CookieFor = p.variable()
		}
	}
	node.Place = p.since(start)
	return node
}
