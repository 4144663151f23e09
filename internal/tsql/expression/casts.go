package expression

import (
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// TypeOf gives the system type that a batch names. Types of the user are left to the scope's database.
func TypeOf(t ast.DataType, use value.Use) (value.Type, *fault.Error) {
	name := t.Name.Object()
	if schema := t.Name.Schema(); schema != "" && !strings.EqualFold(schema, "sys") {
		return value.Type{}, fault.New(2715, 1, t.Name.String()).At(t.Line, "")
	}
	attributes := t.Arguments
	if t.Max {
		attributes = []int{value.Max}
	}
	if strings.EqualFold(name, "xml") {
		attributes = nil
	}
	found, err := value.Named(name, use, attributes...)
	if err != nil {
		return value.Type{}, err.At(t.Line, "")
	}
	return found, nil
}

func (c *compiler) cast(node *ast.Cast) (*Expression, *fault.Error) {
	return c.conversion(node.Operand, node.Type, node.Try, func(f *Frame, v value.Value, t value.Type) (value.Value, *fault.Error) {
		return f.Context.Settings.Cast(v, t)
	})
}

// conversion compiles CAST and CONVERT. A conversion that does not exist is an error even with TRY.
func (c *compiler) conversion(operand ast.Expression, to ast.DataType, isTry bool,
	apply func(*Frame, value.Value, value.Type) (value.Value, *fault.Error),
) (*Expression, *fault.Error) {
	t, err := TypeOf(to, value.Conversion)
	if err != nil {
		return nil, err
	}
	e, err := c.expression(operand)
	if err != nil {
		return nil, err
	}
	if err := value.CheckCastable(e.Type.Kind, t.Kind); err != nil {
		return nil, err
	}
	return &Expression{Type: t, collation: e.collation, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := e.Evaluate(f)
		if err != nil {
			return value.Value{}, err
		}
		v, err = apply(f, v, t)
		if err != nil && isTry && err.Number != 529 {
			return value.Null(t), nil
		}
		return f.tolerate(t, v, err)
	}}, nil
}

func (c *compiler) convert(node *ast.Convert) (*Expression, *fault.Error) {
	if node.Style == nil {
		return c.cast(&ast.Cast{ExpressionAt: node.ExpressionAt, Try: node.Try, Operand: node.Operand, Type: node.Type})
	}
	style, err := c.expression(node.Style)
	if err != nil {
		return nil, err
	}
	style = style.as(value.Of(value.Int))
	return c.conversion(node.Operand, node.Type, node.Try, func(f *Frame, v value.Value, t value.Type) (value.Value, *fault.Error) {
		n, err := style.Evaluate(f)
		if err != nil || n.IsNull() {
			return value.Null(t), err
		}
		return f.Context.Settings.ConvertStyled(v, t, int(n.Int64()))
	})
}

var (
	// weekday is how a date begins that says its day, as 'Monday, 13 December 2010' does.
	weekday = regexp.MustCompile(`(?i)^\s*(mon|tues|wednes|thurs|fri|satur|sun)day,?\s+`)
	// grouped is a number with a comma between digits, or with nothing but zeros behind its point.
	grouped = regexp.MustCompile(`^\s*([-+]?\d[\d,]*)(\.\d*)?\s*$`)
)

// asWritten gives a text for PARSE without what a conversion does not take: the name of a weekday, and in numbers other than float and
// real the commas of thousands, and for whole ones zeros behind the point.
func asWritten(v value.Value, k value.Kind) value.Value {
	if !v.Kind().IsCharacter() || v.IsNull() {
		return v
	}
	text := v.Raw()
	if k.IsTemporal() {
		return value.NewVarChar(weekday.ReplaceAllString(text, ""))
	}
	parts := grouped.FindStringSubmatch(text)
	if parts == nil || k.IsApproximate() {
		return v
	}
	whole, fraction := strings.ReplaceAll(parts[1], ",", ""), parts[2]
	if k.IsInteger() {
		fraction = strings.TrimRight(strings.TrimRight(fraction, "0"), ".")
	}
	return value.NewVarChar(whole + fraction)
}

// parse compiles PARSE: error 9819 in place of those of a conversion. Cultures other than en-US are refused by name.
func (c *compiler) parse(node *ast.Parse) (*Expression, *fault.Error) {
	culture := "en-US"
	if node.Culture != nil {
		e, err := c.expression(node.Culture)
		if err != nil {
			return nil, err
		}
		if e.constant == nil || !strings.EqualFold(e.constant.Raw(), culture) {
			return nil, Unsupported("PARSE USING a culture other than en-US")
		}
	}
	return c.conversion(node.Operand, node.Type, node.Try, func(f *Frame, v value.Value, t value.Type) (value.Value, *fault.Error) {
		parsed, err := f.Context.Settings.Cast(asWritten(v, t.Kind), t)
		if err != nil {
			return parsed, fault.New(9819, v.Raw(), t.Kind, culture)
		}
		return parsed, nil
	})
}
