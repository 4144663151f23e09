package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// statements takes statements, with semicolons between, until none follows or ends says so.
func (p *parser) statements(ends func(*parser) bool) (all []ast.Statement) {
	for {
		for p.accept(";") {
			continue
		}
		if p.atEnd() || ends(p) {
			return all
		}
		all = append(all, p.statement())
	}
}

// statement takes one statement with the semicolons behind it, but for those that belong to what follows.
func (p *parser) statement() ast.Statement {
	defer p.deeper()()
	p.links = 0
	start := p.at
	t := p.current()
	if p.isLabel() {
		return p.label(start)
	}
	if t.Is("WITH") {
		return p.withStatement(start)
	}
	if t.Is("(") {
		return p.selectStatement(nil, start)
	}
	if t.Kind == token.Word {
		if read := p.reader(t.Upper); read != nil {
			return read(start)
		}
	}
	if start == 0 && p.isName() {
		return p.execute(start)
	}
	if t.Kind == token.Word && !t.Reserved && p.isName() && p.procedureWithoutWord(start) {
		return p.execute(start)
	}
	p.fail("a statement")
	return nil
}

// procedureWithoutWord says that a procedure may be called without EXECUTE here: as the first statement of its batch.
func (p *parser) procedureWithoutWord(start int) bool {
	for at := range start {
		if !p.tokens[at].Is(";") {
			return false
		}
	}
	return true
}

// withStatement takes a common table expression with its statement. The one before it has to end with a semicolon.
func (p *parser) withStatement(start int) ast.Statement {
	if start > 0 && !p.opensList(start-1) {
		p.fail(";")
	}
	with := p.with()
	switch {
	case p.isOne("SELECT", "("):
		return p.selectStatement(with, start)
	case p.is("INSERT"):
		return p.insert(with, start)
	case p.is("UPDATE"):
		return p.update(with, start)
	case p.is("DELETE"):
		return p.delete(with, start)
	case p.is("MERGE"):
		return p.terminatedMerge(with, start)
	default:
		p.fail("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE")
		return nil
	}
}

// opensList says that a statement may begin with WITH behind this token.
func (p *parser) opensList(at int) bool {
	t := &p.tokens[at]
	switch t.Upper {
	case ";", "BEGIN", "ELSE", "AS", "TRY", "CATCH", "RETURN", ":", ")":
		return t.Is(t.Upper)
	default:
		return false
	}
}

// terminatedMerge takes MERGE, which has to end with a semicolon.
func (p *parser) terminatedMerge(with *ast.With, start int) ast.Statement {
	node := p.merge(with, start)
	if !p.is(";") {
		p.refuse(p.at, 10713, 15, "A MERGE statement must be terminated by a semi-colon (;).")
	}
	return node
}

// reader gives the rule of a statement by its first word, or nil.
func (p *parser) reader(first string) func(start int) ast.Statement {
	if read := p.controlReader(first); read != nil {
		return read
	}
	if read := p.dataReader(first); read != nil {
		return read
	}
	return p.definitionReader(first)
}

// dataReader has the statements on data, conversations, variables and cursors.
func (p *parser) dataReader(first string) func(start int) ast.Statement {
	switch first {
	case "SELECT":
		return func(start int) ast.Statement { return p.selectStatement(nil, start) }
	case "INSERT":
		if p.ahead(1).Is("BULK") {
			return p.foreign
		}
		return func(start int) ast.Statement { return p.insert(nil, start) }
	case "UPDATE":
		return p.updateOrStatistics
	case "DELETE":
		return func(start int) ast.Statement { return p.delete(nil, start) }
	case "MERGE":
		return func(start int) ast.Statement { return p.terminatedMerge(nil, start) }
	case "TRUNCATE":
		return p.truncate
	case "DECLARE":
		return p.declare
	case "SET":
		return p.set
	case "OPEN":
		return p.open
	case "CLOSE":
		return p.close
	case "FETCH":
		return p.fetch
	case "DEALLOCATE":
		return p.deallocate
	case "EXEC", "EXECUTE":
		return p.executeOrAs
	}
	switch {
	case first == "SEND" && p.ahead(1).Is("ON"):
		return p.send
	case first == "RECEIVE":
		return p.receive
	case first == "GET" && p.ahead(1).Is("CONVERSATION"):
		return p.getGroup
	case first == "MOVE" && p.ahead(1).Is("CONVERSATION"):
		return p.moveConversation
	case first == "END" && p.ahead(1).Is("CONVERSATION"):
		return p.endConversation
	default:
		return nil
	}
}

// controlReader has the statements of control flow, errors and transactions.
func (p *parser) controlReader(first string) func(start int) ast.Statement {
	switch first {
	case "BEGIN":
		return p.begin
	case "IF":
		return p.ifStatement
	case "WHILE":
		return p.while
	case "BREAK", "CONTINUE":
		return p.leave
	case "GOTO":
		return p.goTo
	case "RETURN":
		return p.returnStatement
	case "THROW":
		return p.throw
	case "RAISERROR":
		return p.raiseError
	case "PRINT":
		return p.print
	case "WAITFOR":
		return p.waitFor
	case "COMMIT":
		return p.commit
	case "ROLLBACK":
		return p.rollback
	case "SAVE":
		return p.save
	case "USE":
		return p.use
	case "REVERT":
		return p.revert
	case "RECONFIGURE":
		return p.reconfigure
	case "KILL":
		return p.kill
	default:
		return nil
	}
}

// definitionReader has the statements that define objects and rights.
func (p *parser) definitionReader(first string) func(start int) ast.Statement {
	switch first {
	case "CREATE":
		return p.create
	case "ALTER":
		return p.alter
	case "DROP":
		return p.drop
	case "GRANT", "DENY", "REVOKE":
		return p.permission
	case "ADD":
		if p.ahead(1).Is("SENSITIVITY") {
			return p.foreign
		}
		return p.signature
	case "BACKUP", "RESTORE":
		return p.backup
	case "DBCC":
		return p.consoleCommand
	case "BULK", "CHECKPOINT", "SHUTDOWN", "READTEXT", "WRITETEXT", "UPDATETEXT", "SETUSER", "LINENO":
		return p.foreign
	case "ENABLE", "DISABLE":
		if p.ahead(1).Is("TRIGGER") {
			return p.switchTrigger
		}
	}
	return nil
}
