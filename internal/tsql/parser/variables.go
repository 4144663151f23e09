package parser

import (
	"slices"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// declare takes DECLARE: variables, a table variable, or a cursor.
func (p *parser) declare(start int) ast.Statement {
	p.expect("DECLARE")
	if !p.isVariable() {
		return p.declareCursor(start)
	}
	node := &ast.Declare{}
	p.list(func() { node.Variables = append(node.Variables, p.variableDeclaration()) })
	node.Place = p.since(start)
	return node
}

func (p *parser) variableDeclaration() *ast.VariableDeclaration {
	start := p.at
	node := &ast.VariableDeclaration{Name: p.variable()}
	p.accept("AS")
	switch {
	case p.accept("CURSOR"):
		node.Cursor = true
	case p.accept("TABLE"):
		node.Table = p.tableDefinition()
	default:
		node.Type = p.dataType()
		if p.accept("=") {
			node.Value = p.expression()
		}
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) declareCursor(start int) ast.Statement {
	node := &ast.DeclareCursor{Name: p.identifier("a variable")}
	for {
		word := p.acceptOne("INSENSITIVE", "SCROLL")
		if word == "" {
			break
		}
		node.Before = append(node.Before, word)
	}
	node.Cursor = p.cursorDefinition()
	node.Place = p.since(start)
	return node
}

// cursorOptions stand between CURSOR and FOR. Page: language-elements/declare-cursor-transact-sql.
var cursorOptions = []string{
	"LOCAL", "GLOBAL", "FORWARD_ONLY", "SCROLL", "STATIC", "KEYSET", "DYNAMIC", "FAST_FORWARD", "READ_ONLY", "SCROLL_LOCKS", "OPTIMISTIC",
	"TYPE_WARNING",
}

func (p *parser) cursorDefinition() *ast.CursorDefinition {
	start := p.at
	p.expect("CURSOR")
	node := &ast.CursorDefinition{}
	for {
		word := p.acceptOne(cursorOptions...)
		if word == "" {
			break
		}
		node.Options = append(node.Options, word)
	}
	if !p.accept("FOR") {
		p.fail(slices.Concat(cursorOptions, []string{"FOR"})...)
	}
	if p.is("WITH") {
		node.With = p.with()
	}
	node.Query = p.query()
	node.Hints = p.queryHints()
	switch {
	case p.accept("FOR", "READ", "ONLY"), p.accept("FOR", "READ_ONLY"):
		node.ReadOnly = true
	case p.accept("FOR", "UPDATE"):
		node.ForUpdate = true
		if p.accept("OF") {
			node.Columns = p.identifiers("a column")
		}
	}
	node.Place = p.since(start)
	return node
}

// cursorName takes the name of a cursor, or a variable.
func (p *parser) cursorName() ast.CursorName {
	start := p.at
	node := ast.CursorName{}
	if p.is("GLOBAL") && p.namesObject(p.ahead(1)) {
		node.Global = p.accept("GLOBAL")
	}
	if p.isVariable() {
		node.Variable = p.variable()
	} else {
		node.Name = p.identifier("a cursor")
	}
	node.Place = p.since(start)
	return node
}

func (p *parser) open(start int) ast.Statement {
	if p.opensKey() {
		return p.key(start)
	}
	p.expect("OPEN")
	node := &ast.OpenCursor{Cursor: p.cursorName()}
	node.Place = p.since(start)
	return node
}

// opensKey says that OPEN or CLOSE is about a key.
func (p *parser) opensKey() bool {
	return p.ahead(1).Is("MASTER") && p.ahead(2).Is("KEY") || p.ahead(1).Is("SYMMETRIC") && p.ahead(2).Is("KEY") ||
		p.ahead(1).Is("ALL") && p.ahead(2).Is("SYMMETRIC")
}

func (p *parser) close(start int) ast.Statement {
	if p.opensKey() {
		return p.key(start)
	}
	p.expect("CLOSE")
	node := &ast.CloseCursor{Cursor: p.cursorName()}
	node.Place = p.since(start)
	return node
}

func (p *parser) deallocate(start int) ast.Statement {
	p.expect("DEALLOCATE")
	p.accept("CURSOR")
	node := &ast.Deallocate{Cursor: p.cursorName()}
	node.Place = p.since(start)
	return node
}

func (p *parser) fetch(start int) ast.Statement {
	p.expect("FETCH")
	node := &ast.Fetch{}
	if !p.ahead(1).Is("INTO") && !p.ahead(1).Is(";") {
		node.Direction = p.acceptOne("NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE")
	}
	if node.Direction == "ABSOLUTE" || node.Direction == "RELATIVE" {
		node.Count = p.constant()
	}
	if node.Direction != "" && !p.is("FROM") {
		p.fail("FROM")
	}
	node.HasFrom = p.accept("FROM")
	node.Cursor = p.cursorName()
	if p.accept("INTO") {
		p.list(func() { node.Into = append(node.Into, p.variable()) })
	}
	node.Place = p.since(start)
	return node
}

// set takes SET of a variable, of an option, or of the transaction's isolation.
func (p *parser) set(start int) ast.Statement {
	p.expect("SET")
	if p.isVariable() {
		return p.setVariable(start)
	}
	return p.setOption(start)
}

func (p *parser) setVariable(start int) ast.Statement {
	node := &ast.SetVariable{Variable: p.variable()}
	switch {
	case p.is(".") && p.ahead(2).Is("("):
		target := &ast.Variable{Name: node.Variable}
		target.Place = p.since(p.at - 1)
		node.Method = p.member(p.at-1, target).(*ast.MethodCall)
	case p.is("."):
		p.at++
		node.Property = p.identifier("a property")
		node.Operator = p.assignment()
		node.Value = p.expression()
	default:
		node.Operator = p.assignment()
		if p.is("CURSOR") {
			node.Cursor = p.cursorDefinition()
		} else {
			node.Value = p.expression()
		}
	}
	node.Place = p.since(start)
	return node
}

// switches are the options of a session that are ON or OFF. Page: statements/set-statements-transact-sql.
var switches = []string{
	"ANSI_DEFAULTS", "ANSI_NULL_DFLT_OFF", "ANSI_NULL_DFLT_ON", "ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "ARITHABORT", "ARITHIGNORE",
	"CONCAT_NULL_YIELDS_NULL", "CURSOR_CLOSE_ON_COMMIT", "FMTONLY", "FORCEPLAN", "IMPLICIT_TRANSACTIONS", "NOCOUNT", "NOEXEC",
	"NUMERIC_ROUNDABORT", "PARSEONLY", "QUOTED_IDENTIFIER", "REMOTE_PROC_TRANSACTIONS", "RESULT_SET_CACHING", "SHOWPLAN_ALL",
	"SHOWPLAN_TEXT", "SHOWPLAN_XML", "XACT_ABORT", "NO_BROWSETABLE", "DISABLE_DEF_CNST_CHK",
}

// valued are the options of a session that have a value.
var valued = []string{
	"CONTEXT_INFO", "DATEFIRST", "DATEFORMAT", "DEADLOCK_PRIORITY", "FIPS_FLAGGER", "LANGUAGE", "LOCK_TIMEOUT",
	"QUERY_GOVERNOR_COST_LIMIT", "ROWCOUNT", "TEXTSIZE",
}

func (p *parser) setOption(start int) ast.Statement {
	switch {
	case p.accept("TRANSACTION", "ISOLATION", "LEVEL"), p.accept("TRAN", "ISOLATION", "LEVEL"):
		node := &ast.SetIsolation{Level: p.expectPhrase("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SNAPSHOT", "SERIALIZABLE")}
		node.Place = p.since(start)
		return node
	case p.accept("IDENTITY_INSERT"):
		node := &ast.SetIdentityInsert{Table: p.name("a table")}
		node.On = p.onOff()
		node.Place = p.since(start)
		return node
	case p.accept("STATISTICS"):
		node := &ast.SetStatistics{}
		p.list(func() { node.Kinds = append(node.Kinds, p.expectOne("IO", "TIME", "PROFILE", "XML")) })
		node.On = p.onOff()
		node.Place = p.since(start)
		return node
	case p.accept("OFFSETS"):
		return p.setSwitches(start, []string{"OFFSETS " + p.word("a keyword")})
	}
	if option := p.acceptOne(valued...); option != "" {
		node := &ast.SetValue{Option: option, Value: p.settingValue()}
		node.Place = p.since(start)
		return node
	}
	option := p.acceptOne(switches...)
	if option == "" {
		if p.current().Kind == token.Word && !p.current().Reserved {
			p.refuse(p.at, 195, 15, "'%s' is not a recognized SET option.", p.current().Text)
		}
		p.fail("a variable", "an option")
	}
	return p.setSwitches(start, []string{option})
}

func (p *parser) setSwitches(start int, options []string) ast.Statement {
	for p.accept(",") {
		options = append(options, p.expectOne(switches...))
	}
	node := &ast.SetOptions{Options: options, On: p.onOff()}
	if slices.Contains(options, "QUOTED_IDENTIFIER") {
		p.strings = !node.On
	}
	node.Place = p.since(start)
	return node
}

// settingValue takes a constant, a variable, or a word such as LOW or dmy.
func (p *parser) settingValue() ast.Expression {
	if p.current().Kind != token.Word || p.is("NULL") {
		return p.constant()
	}
	start := p.at
	node := &ast.Keyword{Word: p.take().Text}
	node.Place = p.since(start)
	return node
}
