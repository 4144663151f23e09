package expression

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// call compiles a call of a built-in function; the scope has those of the session and of the user, and aggregates.
func (c *compiler) call(node *ast.Call) (*Expression, *fault.Error) {
	name := strings.ToUpper(node.Name.Object())
	if len(node.Name.Parts) != 1 || node.Over != nil || node.Quantifier != "" || node.WithinGroup != nil {
		return c.scope.External(node)
	}
	f, known := function.Lookup(name)
	if !known {
		f, known = c.scope.Function(name)
	}
	compile, isLazy := lazy[name]
	if !known && !isLazy {
		return c.scope.External(node)
	}
	arguments := make([]*Expression, len(node.Arguments))
	for i, argument := range node.Arguments {
		e, err := c.expression(c.datePartName(f, i, argument))
		if err != nil {
			return nil, err
		}
		arguments[i] = e
	}
	if isLazy {
		return compile(name, arguments)
	}
	return callOf(f, arguments)
}

// datePartName reads a bare word in the place of a date part as its name.
func (c *compiler) datePartName(f *function.Function, at int, node ast.Expression) ast.Expression {
	column, isColumn := node.(*ast.ColumnReference)
	if f == nil || at > 0 || !isColumn || !strings.HasPrefix(f.Parameters, "p") || len(column.Name.Parts) != 1 {
		return node
	}
	return &ast.DatePart{ExpressionAt: column.ExpressionAt, Name: column.Name.Object()}
}

// callOf calls a function with compiled arguments.
func callOf(f *function.Function, arguments []*Expression) (*Expression, *fault.Error) {
	described := make([]function.Argument, len(arguments))
	for i, a := range arguments {
		described[i] = function.Argument{Type: a.Type, Constant: a.constant}
	}
	t, err := f.TypeOf(described)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(f.Parameters, "p") && arguments[0].constant != nil {
		if _, err := function.PartName(arguments[0].constant.Raw(), f.Name); err != nil {
			return nil, err
		}
	}
	var named collation
	for _, a := range arguments {
		named |= a.collation
	}
	result := named
	if !t.Kind.IsCharacter() {
		result = 0
	}
	return &Expression{Type: t, collation: result, Evaluate: func(frame *Frame) (value.Value, *fault.Error) {
		values := make([]value.Value, len(arguments))
		for i, a := range arguments {
			v, err := a.Evaluate(frame)
			if err != nil {
				return value.Value{}, err
			}
			values[i] = v
		}
		context := frame.Context
		if named.isExact() {
			exact := *context
			exact.IsExact = true
			context = &exact
		}
		v, err := f.Evaluate(context, t, values)
		return frame.tolerate(t, v, err)
	}}, nil
}

func (c *compiler) trim(node *ast.Trim) (*Expression, *fault.Error) {
	name := "TRIM"
	if side := strings.ToUpper(node.Side); side == "LEADING" || side == "TRAILING" {
		name += " " + side
	}
	operand, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	arguments := []*Expression{operand}
	if node.Characters != nil {
		characters, err := c.expression(node.Characters)
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, characters)
	} else if name != "TRIM" {
		arguments = append(arguments, constant(value.NewVarChar(" ")))
	}
	f, _ := function.Lookup(name)
	return callOf(f, arguments)
}

// atTimeZone compiles AT TIME ZONE, which is a function of the time and the name of the zone.
func (c *compiler) atTimeZone(node *ast.AtTimeZone) (*Expression, *fault.Error) {
	operand, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	zone, err := c.expression(node.Zone)
	if err != nil {
		return nil, err
	}
	return callOf(function.AtTimeZone, []*Expression{operand, zone})
}

// lazy are the functions that do not evaluate all of their arguments.
var lazy = map[string]func(name string, arguments []*Expression) (*Expression, *fault.Error){
	"COALESCE": coalesce, "ISNULL": isNull, "NULLIF": nullIf, "CHOOSE": choose,
}

func coalesce(name string, arguments []*Expression) (*Expression, *fault.Error) {
	if len(arguments) < 2 {
		return nil, fault.New(174, strings.ToLower(name), 2)
	}
	t, err := highest(arguments, fault.New(4127))
	if err != nil {
		return nil, err
	}
	return firstOf(t, arguments), nil
}

// firstOf gives the first of the expressions that is not NULL.
func firstOf(t value.Type, arguments []*Expression) *Expression {
	converted := convertAll(t, arguments)
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		for _, a := range converted {
			v, err := a.Evaluate(f)
			if err != nil || !v.IsNull() {
				return v, err
			}
		}
		return value.Null(t), nil
	}}
}

// isNull takes the type and the length of its first argument.
func isNull(name string, arguments []*Expression) (*Expression, *fault.Error) {
	if len(arguments) != 2 {
		return nil, fault.New(174, strings.ToLower(name), 2)
	}
	t := arguments[0].Type
	if arguments[0].isNull() {
		t = arguments[1].Type
	}
	if err := value.CheckAssignable(arguments[1].Type.Kind, t.Kind); err != nil {
		return nil, err
	}
	return firstOf(t, arguments), nil
}

func nullIf(name string, arguments []*Expression) (*Expression, *fault.Error) {
	if len(arguments) != 2 {
		return nil, fault.New(174, strings.ToLower(name), 2)
	}
	equal, err := comparison("=", arguments[0], arguments[1])
	if err != nil {
		return nil, err
	}
	t := arguments[0].Type
	if arguments[0].isNull() {
		t = value.Of(value.Int)
	}
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		truth, err := equal.Evaluate(f)
		if err != nil || truth == True {
			return value.Null(t), err
		}
		return arguments[0].Evaluate(f)
	}}, nil
}

func choose(name string, arguments []*Expression) (*Expression, *fault.Error) {
	if len(arguments) < 2 {
		return nil, fault.New(174, strings.ToLower(name), 2)
	}
	t, err := highest(arguments[1:], fault.New(8133))
	if err != nil {
		return nil, err
	}
	if err := value.CheckAssignable(arguments[0].Type.Kind, value.Int); err != nil {
		return nil, err
	}
	index, choices := arguments[0].as(value.Of(value.Int)), convertAll(t, arguments[1:])
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := index.Evaluate(f)
		if err != nil || v.IsNull() || v.Int64() < 1 || v.Int64() > int64(len(choices)) {
			return value.Null(t), err
		}
		return choices[v.Int64()-1].Evaluate(f)
	}}, nil
}

// highest gives the type of several results by precedence; allNull is the error where each is the constant NULL.
func highest(results []*Expression, allNull *fault.Error) (value.Type, *fault.Error) {
	var t value.Type
	for _, r := range results {
		higher, err := value.Higher(t, r.Type)
		if err != nil {
			return value.Type{}, err
		}
		t = higher
	}
	if t.Kind == value.Unknown {
		return value.Type{}, allNull
	}
	return t, nil
}

func convertAll(t value.Type, expressions []*Expression) []*Expression {
	converted := make([]*Expression, len(expressions))
	for i, e := range expressions {
		converted[i] = e.as(t)
	}
	return converted
}
