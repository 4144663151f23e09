package expression

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// literal gives a constant the type that its form has.
func literal(node *ast.Literal) (*Expression, *fault.Error) {
	v, err := literalValue(node)
	if err != nil {
		return nil, err
	}
	e := constant(v)
	e.isLiteral = node.Kind == ast.Integer || node.Kind == ast.Decimal || node.Kind == ast.Float || node.Kind == ast.Money
	return e, nil
}

func literalValue(node *ast.Literal) (value.Value, *fault.Error) {
	switch node.Kind {
	case ast.Integer:
		if n, err := strconv.ParseInt(node.Text, 10, 64); err == nil && n <= math.MaxInt32 {
			return value.NewInt(int(n)), nil
		}
		return value.DecimalConstant(node.Text)
	case ast.Decimal:
		return value.DecimalConstant(node.Text)
	case ast.Float:
		return value.Defaults().Cast(value.NewVarChar(node.Text), value.Of(value.Float))
	case ast.Money:
		return value.Defaults().Cast(value.NewVarChar(node.Text), value.Of(value.Money))
	case ast.String:
		return value.NewVarChar(node.Text), nil
	case ast.NationalString:
		return value.NewNVarChar(node.Text), nil
	case ast.Binary:
		digits := strings.ReplaceAll(node.Text, "\\\n", "")
		if len(digits)%2 == 1 {
			digits = "0" + digits
		}
		bytes, err := hex.DecodeString(digits)
		if err != nil {
			return value.Value{}, fault.New(102, "0x"+node.Text)
		}
		return value.NewVarBinary(string(bytes)), nil
	case ast.Null:
		return value.Value{}, nil
	default:
		return value.Value{}, fault.New(156, strings.ToUpper(node.Text))
	}
}
