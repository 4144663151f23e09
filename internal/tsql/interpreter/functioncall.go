package interpreter

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A function is the compiled body of a function of the user.
type compiledFunction struct {
	text    string
	program *program
}

// functionProgram compiles a function once for each text of it.
func (s *Session) functionProgram(node *ast.Function, result value.Type) (*program, *fault.Error) {
	key := strings.ToLower(node.Name.String())
	if known := s.functions[key]; known != nil && known.text == node.Text {
		return known.program, nil
	}
	c := &compiler{
		session: s, program: &program{name: node.Name.Object()}, slots: map[string]int{}, try: outside, catch: outside,
		labels: map[string]*label{}, isModule: true, tables: map[string]*ast.TableDefinition{}, resultType: result,
	}
	if err := c.declareParameters(node.Parameters); err != nil {
		return nil, err.At(1, node.Name.Object())
	}
	if node.Table != nil {
		declared := &ast.Declare{Variables: []*ast.VariableDeclaration{{Place: node.Table.Place, Name: node.Variable, Table: node.Table}}}
		if err := c.declareVariables(declared); err != nil {
			return nil, err.At(1, node.Name.Object())
		}
	}
	if err := c.statements(node.Body.Statements); err != nil {
		return nil, err.At(1, node.Name.Object())
	}
	if s.functions == nil {
		s.functions = map[string]*compiledFunction{}
	}
	s.functions[key] = &compiledFunction{text: node.Text, program: c.program}
	return c.program, nil
}

// callFunction runs a function; finish reads what it leaves before its scope ends.
func (s *Session) callFunction(
	ctx context.Context, node *ast.Function, result value.Type, arguments []value.Value, finish func(*activation) *fault.Error,
) *fault.Error {
	if s.nesting() >= maxNesting {
		return fault.New(217, maxNesting)
	}
	compiled, err := s.functionProgram(node, result)
	if err != nil {
		return err
	}
	rows, lastError, sink := s.rowCount, s.lastError, s.sink
	s.sink = &gatheringSink{Sink: sink} // a function shows nothing
	defer func() { s.sink = sink }()
	called := s.activate(compiled)
	copy(called.frame.Variables, arguments)
	s.translator.Enter()
	defer s.translator.Leave(context.WithoutCancel(ctx))
	if err := s.run(ctx, called); err != nil {
		return err
	}
	s.rowCount, s.lastError = rows, lastError
	return finish(called)
}

// Call runs a scalar function of the user.
func (s *Session) Call(
	ctx context.Context, node *ast.Function, result value.Type, arguments []value.Value,
) (v value.Value, err *fault.Error) {
	err = s.callFunction(ctx, node, result, arguments, func(a *activation) *fault.Error {
		v = a.result
		if v.Kind() == value.Unknown {
			v = value.Null(result)
		}
		return nil
	})
	return v, err
}

// CallTable runs a table function of several statements; read gives the rows of its table.
func (s *Session) CallTable(
	ctx context.Context, node *ast.Function, arguments []value.Value, read func(value.Value) ([][]string, *fault.Error),
) (rows [][]string, err *fault.Error) {
	slot := len(arguments)
	err = s.callFunction(ctx, node, value.Type{}, arguments, func(a *activation) *fault.Error {
		rows, err = read(a.frame.Variables[slot])
		return err
	})
	return rows, err
}

// returnsResult compiles RETURN of a scalar function.
func (c *compiler) returnsResult(node *ast.Return) *fault.Error {
	result, err := expression.CompileAs(node.Value, c.resultType, c)
	if err != nil {
		return err
	}
	c.emit(node, func(ctx context.Context, a *activation) (int, *fault.Error) {
		v, err := result.Evaluate(a.frameOf(ctx))
		if err != nil {
			return next, err
		}
		a.result = v
		return ended, nil
	})
	return nil
}
