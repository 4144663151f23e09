package expression

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A compiler compiles one expression; depth bounds how deep it may be nested.
type compiler struct {
	scope Scope
	depth int
}

// maxDepth is more than any script nests; beyond it SQL Server gives error 191 too.
const maxDepth = 1000

func (c *compiler) expression(node ast.Expression) (*Expression, *fault.Error) {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxDepth {
		return nil, fault.New(191)
	}
	switch node := node.(type) {
	case *ast.Literal:
		return literal(node)
	case *ast.Variable:
		return c.variable(node)
	case *ast.Parenthesis:
		return c.expression(node.Inner)
	case *ast.Unary:
		return c.unary(node)
	case *ast.Arithmetic:
		return c.arithmetic(node)
	case *ast.Collate:
		return c.collate(node)
	case *ast.AtTimeZone:
		return c.atTimeZone(node)
	case *ast.SimpleCase:
		return c.simpleCase(node)
	case *ast.SearchedCase:
		return c.searchedCase(node)
	case *ast.Iif:
		return c.iif(node)
	case *ast.Cast:
		return c.cast(node)
	case *ast.Convert:
		return c.convert(node)
	case *ast.Parse:
		return c.parse(node)
	default:
		return c.called(node)
	}
}

// called compiles what is a call of a function in one form or another, and leaves the rest to the scope.
func (c *compiler) called(node ast.Expression) (*Expression, *fault.Error) {
	switch node := node.(type) {
	case *ast.SystemVariable:
		return c.session(strings.ToUpper(node.Name))
	case *ast.Niladic:
		return c.niladic(node)
	case *ast.Call:
		return c.call(node)
	case *ast.Trim:
		return c.trim(node)
	case *ast.DatePart:
		return constant(value.NewVarChar(node.Name)), nil
	case *ast.OdbcEscape:
		return c.escape(node)
	case *ast.MethodCall:
		return c.method(node)
	}
	return c.scope.External(node)
}

func (c *compiler) variable(node *ast.Variable) (*Expression, *fault.Error) {
	slot, t, known := c.scope.Variable(node.Name)
	if !known {
		return nil, fault.New(137, node.Name).At(node.Line, "")
	}
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) { return f.Variables[slot], nil }}, nil
}

func (c *compiler) unary(node *ast.Unary) (*Expression, *fault.Error) {
	operand, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	if operand.constant != nil && operand.isLiteral && node.Operator == "-" {
		v, err := value.Defaults().Negate(*operand.constant)
		if err != nil {
			return nil, err
		}
		negative := constant(v)
		negative.isLiteral = true
		return negative, nil
	}
	if node.Operator == "+" {
		return operand, nil
	}
	return c.checkedUnary(node.Operator, operand)
}

func (c *compiler) checkedUnary(operator string, operand *Expression) (*Expression, *fault.Error) {
	apply := (*value.Settings).Negate
	if operator == "~" {
		apply = (*value.Settings).Complement
	}
	t := operand.Type
	if t.Kind == value.TinyInt && operator == "-" {
		t = value.Of(value.SmallInt)
	}
	if _, err := apply(value.Defaults(), value.Null(operand.Type)); err != nil {
		return nil, err
	}
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := operand.Evaluate(f)
		if err != nil {
			return value.Value{}, err
		}
		v, err = apply(f.Context.Settings, v)
		return f.tolerate(t, v, err)
	}}, nil
}

func (c *compiler) arithmetic(node *ast.Arithmetic) (*Expression, *fault.Error) {
	left, err := c.expression(node.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.expression(node.Right)
	if err != nil {
		return nil, err
	}
	return operation(node.Operator, left, right)
}

// Operation compiles an operator between two expressions, as a compound assignment needs it.
func Operation(operator string, left, right *Expression) (*Expression, *fault.Error) {
	return operation(operator, left, right)
}

func operation(operator string, left, right *Expression) (*Expression, *fault.Error) {
	if operator == "||" {
		operator = "+"
	}
	if len(operator) != 1 {
		return nil, Unsupported(operator)
	}
	left, right = exactLiteral(left, right), exactLiteral(right, left)
	t, err := value.OperationType(operator[0], left.Type, right.Type)
	if err != nil {
		return nil, err
	}
	sign := operator[0]
	return &Expression{Type: t, collation: left.collation | right.collation, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		a, err := left.Evaluate(f)
		if err != nil {
			return value.Value{}, err
		}
		b, err := right.Evaluate(f)
		if err != nil {
			return value.Value{}, err
		}
		v, err := f.Context.Settings.Operate(sign, a, b)
		if err == nil && v.Type() != t && v.Kind() == t.Kind && !v.IsNull() {
			v, err = f.Context.Settings.Assign(v, t)
		}
		return f.tolerate(t, v, err)
	}}, nil
}

// exactLiteral makes a whole constant beside a decimal as precise as it is written: 1.0 / 3 has the scale of numeric(1,0).
func exactLiteral(e, other *Expression) *Expression {
	if !e.isLiteral || e.Type.Kind != value.Int || other.Type.Kind != value.Decimal {
		return e
	}
	d, err := value.DecimalConstant(value.Defaults().Text(*e.constant))
	if err != nil {
		return e
	}
	return constant(d)
}

func (c *compiler) session(name string) (*Expression, *fault.Error) {
	f, known := c.scope.Function(name)
	if !known {
		return nil, fault.New(137, name)
	}
	return callOf(f, nil)
}

func (c *compiler) niladic(node *ast.Niladic) (*Expression, *fault.Error) {
	name := strings.ToUpper(node.Name)
	if f, known := function.Lookup(name); known {
		return callOf(f, nil)
	}
	return c.session(name)
}

func (c *compiler) escape(node *ast.OdbcEscape) (*Expression, *fault.Error) {
	e, err := c.expression(node.Value)
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(node.Kind) {
	case "d", "t", "ts":
		return e.as(value.Of(value.DateTime)), nil
	case "guid":
		return e.as(value.Of(value.UniqueIdentifier)), nil
	}
	return e, nil
}
