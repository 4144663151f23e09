package expression

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Frame is what an evaluation reads: the variables by their slots, and what functions see of the session.
type Frame struct {
	Variables []value.Value
	Context   *function.Context
	Warn      func(*fault.Error) // takes messages 3606 and 3607 where arithmetic errors are no errors
	Outside   any                // what the scope's own expressions need: a context
	Row       []value.Value      // what the scope fetched for its own expressions: the row of a query

	document document
}

// A Scope resolves the names that stand in an expression.
type Scope interface {
	// Variable gives the slot and the type of a variable by its name with @, in any case.
	Variable(name string) (slot int, t value.Type, known bool)
	// Function gives a function of the session, such as @@ROWCOUNT, ERROR_NUMBER or DB_NAME, by its name in upper case.
	Function(name string) (*function.Function, bool)
	// External compiles a node that needs tables: a subquery, a column, a function of the user.
	External(node ast.Expression) (*Expression, *fault.Error)
	// ExternalCondition compiles a condition that needs tables: EXISTS, IN and ALL with a query.
	ExternalCondition(node ast.Condition) (*Condition, *fault.Error)
}

// An Expression is compiled: its type is known, its names are resolved.
type Expression struct {
	Type     value.Type
	Evaluate func(*Frame) (value.Value, *fault.Error)

	constant  *value.Value
	isLiteral bool      // a constant of digits, perhaps behind a sign
	collation collation // named by COLLATE

	// IsNode says that xml is a row of nodes: its methods begin at its first element.
	IsNode bool
}

// Compile resolves and types an expression.
func Compile(node ast.Expression, scope Scope) (*Expression, *fault.Error) {
	c := &compiler{scope: scope}
	e, err := c.expression(node)
	if err != nil {
		return nil, err.At(node.At().Line, "")
	}
	return e, nil
}

// CompileAs compiles an expression whose value is assigned to a type.
func CompileAs(node ast.Expression, to value.Type, scope Scope) (*Expression, *fault.Error) {
	e, err := Compile(node, scope)
	if err != nil {
		return nil, err
	}
	if err := value.CheckAssignable(e.Type.Kind, to.Kind); err != nil {
		return nil, err.At(node.At().Line, "")
	}
	return e.as(to), nil
}

// as gives the expression converted to a type, as an assignment or an operator converts.
func (e *Expression) as(to value.Type) *Expression {
	if e.Type == to {
		return e
	}
	return &Expression{Type: to, constant: nil, collation: e.collation, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := e.Evaluate(f)
		if err != nil {
			return value.Value{}, err
		}
		v, err = f.Context.Settings.Assign(v, to)
		return f.tolerate(to, v, err)
	}}
}

// As gives the expression converted to a type, as an assignment converts it.
func (e *Expression) As(to value.Type) (*Expression, *fault.Error) {
	if err := value.CheckAssignable(e.Type.Kind, to.Kind); err != nil {
		return nil, err
	}
	return e.as(to), nil
}

// tolerate makes NULL and a warning of an arithmetic error where ANSI_WARNINGS and ARITHABORT are OFF. Where ARITHABORT alone is ON,
// the error ends the batch.
func (f *Frame) tolerate(t value.Type, v value.Value, err *fault.Error) (value.Value, *fault.Error) {
	if err == nil || f.Context.Settings.ANSIWarnings {
		return v, err
	}
	var warning int
	switch err.Number {
	case 8134:
		warning = 3607
	case 8115, 220, 232, 3623:
		warning = 3606
	default:
		return v, err
	}
	if f.Context.Settings.ArithAbort {
		err.Reach = fault.Batch
		return v, err
	}
	if f.Warn != nil {
		f.Warn(fault.New(warning))
	}
	return value.Null(t), nil
}

func constant(v value.Value) *Expression {
	return &Expression{Type: v.Type(), constant: &v, Evaluate: func(*Frame) (value.Value, *fault.Error) { return v, nil }}
}

// Constant gives the value of an expression that is a constant.
func (e *Expression) Constant() (value.Value, bool) {
	if e.constant == nil {
		return value.Value{}, false
	}
	return *e.constant, true
}

// isNull reports whether an expression is the constant NULL.
func (e *Expression) isNull() bool { return e.Type.Kind == value.Unknown }

// Unsupported gives the error for a construct that Parley does not run, by its name.
func Unsupported(construct string) *fault.Error { return fault.New(40517, construct) }
