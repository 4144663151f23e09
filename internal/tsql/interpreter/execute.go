package interpreter

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// maxNesting is how deep modules may call each other.
const maxNesting = 32

// maxName is how many characters a name may have.
const maxName = 128

// A module is a procedure of the session: temporary procedures, until it ends.
type module struct {
	node     *ast.Procedure
	compiled *program
	version  string // of one that the database keeps
	as       string // the role of EXECUTE AS; empty for the caller
	author   string // the role that owns it
}

func isTemporary(name ast.Name) bool { return isTemporaryName(name.Object()) }

// createTemporary compiles CREATE, ALTER and CREATE OR ALTER PROCEDURE of a temporary procedure.
func (c *compiler) createTemporary(node *ast.Procedure) *fault.Error {
	if actsAs(node.Options, defaultSchema) != "" {
		return expression.Unsupported("EXECUTE AS of a temporary procedure")
	}
	c.simply(node, func(_ context.Context, a *activation) *fault.Error {
		s, key := a.session, strings.ToLower(node.Name.Object())
		_, exists := s.modules[key]
		switch {
		case exists && node.Verb == "CREATE":
			return fault.New(2714, node.Name.Object())
		case !exists && node.Verb == "ALTER":
			return fault.New(208, node.Name.Object())
		}
		compiled, err := s.compile(node.Name.Object(), node.Parameters, node.Body)
		if err != nil {
			return err
		}
		s.modules[key] = &module{node: node, compiled: compiled}
		s.succeeded(0)
		return nil
	})
	return nil
}

// An argument of a call is compiled; output is the slot that takes the parameter's value back, or -1.
type argument struct {
	name      string
	value     *expression.Expression // nil for DEFAULT
	output    int
	asksValue bool // OUTPUT was written
}

// execute compiles EXECUTE: of text, of sp_executesql, of a procedure.
func (c *compiler) execute(node *ast.Execute) *fault.Error {
	if node.Server != "" || node.AtSource {
		return expression.Unsupported("EXECUTE AT a linked server")
	}
	if node.Text != nil {
		return c.executeText(node)
	}
	arguments, err := c.arguments(node.Arguments)
	if err != nil {
		return err
	}
	result := -1
	if node.Result != "" {
		slot, _, known := c.Variable(node.Result)
		if !known {
			return fault.New(137, node.Result)
		}
		result = slot
	}
	target := -1
	if node.Variable != "" {
		slot, _, known := c.Variable(node.Variable)
		if !known {
			return fault.New(137, node.Variable)
		}
		target = slot
	}
	isKnown := c.session.kept != nil || target >= 0 || isTemporary(node.Procedure) ||
		systemProcedures()[strings.ToLower(node.Procedure.Object())] != nil ||
		strings.EqualFold(node.Procedure.Object(), "sp_executesql")
	if !isKnown {
		c.translated(node)
		return nil
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		name := node.Procedure
		if target >= 0 {
			text := a.session.settings.Text(a.frame.Variables[target])
			called, known := nameIn(text)
			switch {
			case !known && value.UnitsOf(text) > maxName:
				return fault.New(203, text)
			case !known:
				return fault.New(2812, text)
			}
			name = called
		}
		if strings.EqualFold(name.Object(), "sp_executesql") {
			return a.session.executeParameterized(ctx, a, arguments, result)
		}
		return a.session.callNamed(ctx, name, func(m *module) *fault.Error {
			return a.session.callAs(ctx, m, func() *fault.Error { return a.session.call(ctx, a, m.compiled, arguments, result) })
		})
	})
	return nil
}

// spelled gives the text that a word without quotes means, as the value of a parameter or as its default.
func spelled(node ast.Expression) ast.Expression {
	switch word := node.(type) {
	case *ast.Keyword:
		return &ast.Literal{ExpressionAt: word.ExpressionAt, Kind: ast.NationalString, Text: word.Word}
	case *ast.ColumnReference:
		if len(word.Name.Parts) == 1 {
			return &ast.Literal{ExpressionAt: word.ExpressionAt, Kind: ast.NationalString, Text: word.Name.Object()}
		}
	}
	return node
}

func (c *compiler) arguments(nodes []*ast.Argument) ([]argument, *fault.Error) {
	var arguments []argument
	isNamed := false
	for i, node := range nodes {
		if node.Name == "" && isNamed {
			return nil, fault.New(119, i+1)
		}
		isNamed = isNamed || node.Name != ""
		compiled := argument{name: node.Name, output: -1, asksValue: node.IsOutput}
		switch v := spelled(node.Value).(type) {
		case *ast.Literal:
			if v.Kind == ast.Default {
				break
			}
			e, err := expression.Compile(v, c)
			if err != nil {
				return nil, err
			}
			compiled.value = e
		default:
			e, err := expression.Compile(v, c)
			if err != nil {
				return nil, err
			}
			compiled.value = e
			if variable, is := v.(*ast.Variable); is && node.IsOutput {
				compiled.output, _, _ = c.Variable(variable.Name)
			}
		}
		arguments = append(arguments, compiled)
	}
	return arguments, nil
}

// call runs a module with its arguments; it checks that the depth of transactions is the same after it.
func (s *Session) call(ctx context.Context, a *activation, p *program, arguments []argument, result int) *fault.Error {
	if s.nesting() >= maxNesting {
		return fault.New(217, maxNesting)
	}
	called := s.activate(p)
	bound, err := s.bind(ctx, a, called, arguments)
	if err != nil {
		return err
	}
	before, saved, savedSettings, floor, database := s.depth, s.options, s.settings, s.floor, s.identity.Database
	s.floor = len(s.taken)
	s.translator.Enter()
	err = s.run(ctx, called)
	s.translator.Leave(context.WithoutCancel(ctx))
	// The options that a module sets end with it, and so do the rights that it took.
	s.options, s.settings = saved, savedSettings
	s.actsAgain(s.floor)
	s.floor = floor
	if lost := s.comeBack(ctx, database); err == nil {
		err = lost
	}
	if err != nil {
		return err
	}
	for i, argument := range bound {
		if argument == nil || argument.output < 0 {
			continue
		}
		v, err := s.settings.Assign(called.frame.Variables[i], a.program.variables[argument.output])
		if err != nil {
			return err
		}
		a.frame.Variables[argument.output] = v
	}
	if result >= 0 {
		v, err := s.settings.Assign(value.NewInt(int(called.returned)), a.program.variables[result])
		if err != nil {
			return err
		}
		a.frame.Variables[result] = v
	}
	if s.depth != before && !s.isDoomed {
		return &fault.Error{
			Number: 266, Severity: 16, State: 2, Procedure: p.name, KeepsTransaction: true,
			Message: fault.New(266, before, s.depth).Message,
		}
	}
	return nil
}

// bind gives the parameters of a module their values. It gives the argument of each parameter, nil where a default stands in. Its
// errors stand in the module, before its first line.
func (s *Session) bind(ctx context.Context, a, called *activation, arguments []argument) ([]*argument, *fault.Error) {
	bound, err := called.program.match(arguments)
	if err == nil {
		err = s.fill(ctx, a, called, bound)
	}
	if err != nil {
		return nil, err.At(0, called.program.name)
	}
	return bound, nil
}

// match finds the argument of each parameter.
func (p *program) match(arguments []argument) ([]*argument, *fault.Error) {
	bound := make([]*argument, len(p.parameters))
	for i := range arguments {
		argument := &arguments[i]
		at := i
		if argument.name != "" {
			at = p.parameterAt(argument.name)
		}
		switch {
		case len(p.parameters) == 0:
			return nil, fault.New(8146, p.name)
		case at < 0:
			return nil, fault.New(8145, argument.name, p.name)
		case at >= len(p.parameters):
			return nil, fault.New(8144, p.name)
		case bound[at] != nil:
			return nil, fault.New(8143, p.parameters[at].name)
		case argument.asksValue && !p.parameters[at].isOutput:
			return nil, fault.New(8162, p.parameters[at].name)
		}
		bound[at] = argument
	}
	return bound, nil
}

// fill evaluates the arguments and the defaults.
func (s *Session) fill(ctx context.Context, a, called *activation, bound []*argument) *fault.Error {
	p := called.program
	for i, described := range p.parameters {
		var v value.Value
		var err *fault.Error
		switch {
		case bound[i] != nil && bound[i].value != nil:
			v, err = bound[i].value.Evaluate(a.frameOf(ctx))
			switch isTable := v.Kind() == value.Table; {
			case err != nil:
			case isTable != p.isTable(i):
				err = fault.New(206, v.Kind(), p.variables[i].Kind)
			case !isTable:
				v, err = s.settings.Assign(v, p.variables[i])
			}
			if err != nil && (err.Number == 245 || err.Number == 8169 || err.Number == 241) {
				err = fault.New(8114, bound[i].value.Type.Kind, p.variables[i].Kind)
			}
		case described.initial != nil:
			v, err = described.initial.Evaluate(called.frameOf(ctx))
		case p.isTable(i):
			v = value.Null(p.variables[i]) // the procedure makes it
		case p.name == "":
			err = fault.New(8178, p.text, described.name)
		default:
			err = fault.New(201, p.name, described.name)
		}
		if err != nil {
			return err
		}
		called.frame.Variables[i] = v
	}
	return nil
}

func (p *program) parameterAt(name string) int {
	for i, described := range p.parameters {
		if strings.EqualFold(described.name, name) {
			return i
		}
	}
	return -1
}
