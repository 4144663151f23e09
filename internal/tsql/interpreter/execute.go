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

// A module is a procedure of the session: temporary procedures, until it ends.
type module struct {
	node     *ast.Procedure
	compiled *program
}

func isTemporary(name ast.Name) bool { return isTemporaryName(name.Object()) }

// createTemporary compiles CREATE, ALTER and CREATE OR ALTER PROCEDURE of a temporary procedure.
func (c *compiler) createTemporary(node *ast.Procedure) *fault.Error {
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
	if node.AsKind != "" {
		return expression.Unsupported("EXECUTE (text) AS " + node.AsKind)
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
	isKnown := target >= 0 || isTemporary(node.Procedure) || strings.EqualFold(node.Procedure.Object(), "sp_executesql")
	if !isKnown {
		c.translated(node)
		return nil
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		name := node.Procedure.Object()
		if target >= 0 {
			name = a.session.settings.Text(a.frame.Variables[target])
		}
		if strings.EqualFold(name, "sp_executesql") || strings.EqualFold(name, "sys.sp_executesql") {
			return a.session.executeParameterized(ctx, a, arguments, result)
		}
		m, known := a.session.modules[strings.ToLower(strings.Trim(name, "[]"))]
		if !known {
			return fault.New(2812, name)
		}
		return a.session.call(ctx, a, m.compiled, arguments, result)
	})
	return nil
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
		switch v := node.Value.(type) {
		case *ast.Keyword:
			e, err := expression.Compile(&ast.Literal{Kind: ast.NationalString, Text: v.Word}, c)
			if err != nil {
				return nil, err
			}
			compiled.value = e
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
	before, saved, savedSettings := s.depth, s.options, s.settings
	err = s.run(ctx, called)
	// The options that a module sets end with it.
	s.options, s.settings = saved, savedSettings
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

// bind gives the parameters of a module their values. It gives the argument of each parameter, nil where a default stands in.
func (s *Session) bind(ctx context.Context, a, called *activation, arguments []argument) ([]*argument, *fault.Error) {
	p := called.program
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
	for i, described := range p.parameters {
		var v value.Value
		var err *fault.Error
		switch {
		case bound[i] != nil && bound[i].value != nil:
			v, err = bound[i].value.Evaluate(a.frameOf(ctx))
			if err == nil {
				v, err = s.settings.Assign(v, p.variables[i])
			}
			if err != nil && (err.Number == 245 || err.Number == 8169 || err.Number == 241) {
				err = fault.New(8114, bound[i].value.Type.Kind, p.variables[i].Kind)
			}
		case described.initial != nil:
			v, err = described.initial.Evaluate(called.frameOf(ctx))
		default:
			err = fault.New(201, p.name, described.name)
		}
		if err != nil {
			return nil, err
		}
		called.frame.Variables[i] = v
	}
	return bound, nil
}

func (p *program) parameterAt(name string) int {
	for i, described := range p.parameters {
		if strings.EqualFold(described.name, name) {
			return i
		}
	}
	return -1
}
