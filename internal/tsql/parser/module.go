package parser

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/token"
)

// alone refuses a module that is not the first statement of its batch.
func (p *parser) alone(start int, statement string) {
	for at := range start {
		if !p.tokens[at].Is(";") {
			p.refuse(start, 111, 15, "'%s' must be the first statement in a query batch.", statement)
		}
	}
	p.whiles = 0
}

// textOf gives the text of a module, from its verb to the last token taken.
func (p *parser) textOf(start int) string {
	return p.text[p.tokens[start].Offset:p.tokens[p.at-1].End]
}

// restOfBatch gives the text of a module that takes its batch to the end, comments included.
func (p *parser) restOfBatch(start int) string { return p.text[p.tokens[start].Offset:] }

// moduleOptions takes WITH of a module.
func (p *parser) moduleOptions() (all []*ast.ModuleOption) {
	if !p.accept("WITH") {
		return nil
	}
	p.list(func() { all = append(all, p.moduleOption()) })
	return all
}

func (p *parser) moduleOption() *ast.ModuleOption {
	start := p.at
	option := &ast.ModuleOption{}
	switch {
	case p.accept("EXECUTE", "AS"), p.accept("EXEC", "AS"):
		option.Words = "EXECUTE AS"
		if p.isString() {
			option.Value = p.literal()
		} else {
			option.Words += " " + p.expectOne("CALLER", "SELF", "OWNER")
		}
	case p.accept("INLINE"):
		option.Words = "INLINE"
		p.expect("=")
		option.Value = p.keyword()
	default:
		option.Words = p.expectPhrase("ENCRYPTION", "RECOMPILE", "SCHEMABINDING", "VIEW_METADATA", "NATIVE_COMPILATION",
			"RETURNS NULL ON NULL INPUT", "CALLED ON NULL INPUT")
	}
	option.Place = p.since(start)
	return option
}

// external takes EXTERNAL NAME, if it comes next.
func (p *parser) external() *ast.External {
	if !p.is("EXTERNAL", "NAME") {
		return nil
	}
	start := p.at
	p.at += 2
	node := &ast.External{Name: p.name("assembly.class.method")}
	node.Place = p.since(start)
	return node
}

func (p *parser) procedure(start int, verb string) ast.Statement {
	p.expectOne("PROCEDURE", "PROC")
	p.alone(start, verb+" PROCEDURE")
	node := &ast.Procedure{Module: ast.Module{Verb: verb, Name: p.name("a procedure")}}
	if p.is(";") && p.ahead(1).Kind == token.Integer {
		p.at++
		node.Number = p.take().Text
	}
	switch {
	case p.is("(") && p.ahead(1).Kind == token.Variable:
		node.Parens = true
		p.inParens(func() { node.Parameters = p.parameters() })
	case p.isVariable():
		node.Parameters = p.parameters()
	}
	node.Options = p.moduleOptions()
	node.ForReplication = p.accept("FOR", "REPLICATION")
	p.expect("AS")
	if node.External = p.external(); node.External == nil {
		p.procedureBody(node)
	}
	node.Text = p.restOfBatch(start)
	node.Place = p.since(start)
	return node
}

func (p *parser) procedureBody(node *ast.Procedure) {
	p.isModule = true
	if p.is("BEGIN", "ATOMIC") {
		start := p.at
		p.at += 2
		p.expect("WITH")
		node.AtomicOptions = p.optionsInParens()
		node.Atomic = &ast.Block{Statements: p.statements(endOfBlock)}
		p.expect("END")
		p.accept(";")
		node.Atomic.Place = p.since(start)
		return
	}
	node.Body = p.statements(endOfBatch)
}

func (p *parser) parameters() (all []*ast.Parameter) {
	p.list(func() { all = append(all, p.parameter()) })
	return all
}

func (p *parser) parameter() *ast.Parameter {
	start := p.at
	node := &ast.Parameter{Name: p.variable(), HasAs: p.accept("AS")}
	if p.is("CURSOR") {
		from := p.at
		p.at++
		node.Type.Name = ast.Name{Parts: []string{"cursor"}, Place: p.since(from)}
		node.Type.Place = node.Type.Name.Place
	} else {
		node.Type = p.dataType()
	}
	node.Varying = p.accept("VARYING")
	node.Nullable = p.acceptPhrase("NOT NULL", "NULL")
	if p.accept("=") {
		node.Default = p.parameterDefault()
	}
	node.Output = p.acceptOne("OUTPUT", "OUT") != ""
	node.ReadOnly = p.accept("READONLY")
	node.Place = p.since(start)
	return node
}

// parameterDefault takes a constant, or a bare word that stands for a string.
func (p *parser) parameterDefault() ast.Expression {
	if p.isName() {
		return p.columnOrCall(p.at)
	}
	return p.constant()
}

func (p *parser) function(start int, verb string) ast.Statement {
	p.expect("FUNCTION")
	p.alone(start, verb+" FUNCTION")
	node := &ast.Function{Module: ast.Module{Verb: verb, Name: p.name("a function")}}
	p.expect("(")
	if !p.is(")") {
		node.Parameters = p.parameters()
	}
	p.expect(")", "RETURNS")
	switch {
	case p.isVariable():
		node.IsTable = true
		node.Variable = p.variable()
		p.expect("TABLE")
		node.Table = p.tableDefinition()
	case p.accept("TABLE"):
		node.IsTable = true
		if p.is("(") {
			node.Table = p.tableDefinition()
		}
	default:
		node.Returns = p.dataType()
	}
	node.Options = p.moduleOptions()
	if p.accept("ORDER") {
		node.Order = p.keyColumns()
	}
	p.accept("AS")
	p.functionBody(node)
	node.Text = p.textOf(start)
	node.Place = p.since(start)
	return node
}

func (p *parser) functionBody(node *ast.Function) {
	p.isModule = true
	if node.External = p.external(); node.External != nil {
		return
	}
	if p.is("BEGIN") {
		node.Body = p.block(p.at).(*ast.Block)
		return
	}
	if !node.IsTable || node.Table != nil {
		p.fail("BEGIN")
	}
	p.expect("RETURN")
	inParens := p.is("(") && !p.opensQuery() && p.ahead(1).Is("WITH") || p.is("(", "SELECT") || p.is("(", "(")
	if inParens {
		node.QueryInParens = true
		p.expect("(")
	}
	if p.is("WITH") {
		node.With = p.with()
	}
	node.Query = p.query()
	if inParens {
		p.expect(")")
	}
}

func (p *parser) view(start int, verb string) ast.Statement {
	p.expect("VIEW")
	p.alone(start, verb+" VIEW")
	node := &ast.View{Module: ast.Module{Verb: verb, Name: p.name("a view")}, Columns: p.columnList()}
	node.Options = p.moduleOptions()
	p.expect("AS")
	if p.is("WITH") {
		node.With = p.with()
	}
	node.Query = p.query()
	node.CheckOption = p.accept("WITH", "CHECK", "OPTION")
	node.Text = p.textOf(start)
	node.Place = p.since(start)
	return node
}

func (p *parser) trigger(start int, verb string) ast.Statement {
	p.expect("TRIGGER")
	p.alone(start, verb+" TRIGGER")
	node := &ast.Trigger{Module: ast.Module{Verb: verb, Name: p.name("a trigger")}}
	p.expect("ON")
	node.On, node.Table = p.triggerTarget()
	node.Options = p.moduleOptions()
	node.Timing = p.expectPhrase("FOR", "AFTER", "INSTEAD OF")
	p.list(func() { node.Events = append(node.Events, p.word("an event")) })
	node.WithAppend = p.accept("WITH", "APPEND")
	node.NotForReplication = p.accept("NOT", "FOR", "REPLICATION")
	p.expect("AS")
	if node.External = p.external(); node.External == nil {
		p.isModule = true
		node.Body = p.statements(endOfBatch)
	}
	node.Text = p.restOfBatch(start)
	node.Place = p.since(start)
	return node
}

// triggerTarget takes a table, DATABASE or ALL SERVER.
func (p *parser) triggerTarget() (kind string, table ast.Name) {
	if scope := p.acceptPhrase("ALL SERVER", "DATABASE"); scope != "" {
		return scope, table
	}
	return "TABLE", p.name("a table")
}

func (p *parser) switchTrigger(start int) ast.Statement {
	node := &ast.SwitchTrigger{Enable: p.expectOne("ENABLE", "DISABLE") == "ENABLE"}
	p.expect("TRIGGER")
	if p.accept("ALL") {
		node.All = true
	} else {
		node.Names = p.names("a trigger")
	}
	p.expect("ON")
	node.On, node.Table = p.triggerTarget()
	node.Place = p.since(start)
	return node
}
