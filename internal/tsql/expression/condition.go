package expression

import (
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Truth is the result of a condition.
type Truth int8

// The three results; their order makes AND the lesser and OR the greater.
const (
	False Truth = iota - 1
	Unknown
	True
)

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// A Condition is compiled.
type Condition struct {
	Evaluate func(*Frame) (Truth, *fault.Error)
}

// CompileCondition resolves and types a condition.
func CompileCondition(node ast.Condition, scope Scope) (*Condition, *fault.Error) {
	c := &compiler{scope: scope}
	compiled, err := c.condition(node)
	if err != nil {
		return nil, err.At(node.At().Line, "")
	}
	return compiled, nil
}

func (c *compiler) condition(node ast.Condition) (*Condition, *fault.Error) {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxDepth {
		return nil, fault.New(191)
	}
	switch node := node.(type) {
	case *ast.ConditionGroup:
		return c.condition(node.Inner)
	case *ast.Not:
		inner, err := c.condition(node.Operand)
		if err != nil {
			return nil, err
		}
		return negated(inner), nil
	case *ast.Logical:
		return c.logical(node)
	case *ast.Comparison:
		return c.pair(node.Left, node.Right, func(left, right *Expression) (*Condition, *fault.Error) {
			return comparison(node.Operator, left, right)
		})
	case *ast.IsDistinct:
		return c.distinct(node)
	case *ast.IsNull:
		return c.isNull(node)
	case *ast.Between:
		return c.between(node)
	case *ast.In:
		if node.Query == nil {
			return c.in(node)
		}
	case *ast.Like:
		return c.like(node)
	}
	return c.scope.ExternalCondition(node)
}

func negated(inner *Condition) *Condition {
	return &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		t, err := inner.Evaluate(f)
		return -t, err
	}}
}

func turned(not bool, inner *Condition) *Condition {
	if not {
		return negated(inner)
	}
	return inner
}

// logical evaluates the right side only where the left does not decide.
func (c *compiler) logical(node *ast.Logical) (*Condition, *fault.Error) {
	left, err := c.condition(node.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.condition(node.Right)
	if err != nil {
		return nil, err
	}
	decisive, choose := False, func(a, b Truth) Truth { return min(a, b) }
	if node.Operator == "OR" {
		decisive, choose = True, func(a, b Truth) Truth { return max(a, b) }
	}
	return &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		a, err := left.Evaluate(f)
		if err != nil || a == decisive {
			return a, err
		}
		b, err := right.Evaluate(f)
		if err != nil {
			return Unknown, err
		}
		return choose(a, b), nil
	}}, nil
}

func (c *compiler) pair(a, b ast.Expression, build func(left, right *Expression) (*Condition, *fault.Error)) (*Condition, *fault.Error) {
	left, err := c.expression(a)
	if err != nil {
		return nil, err
	}
	right, err := c.expression(b)
	if err != nil {
		return nil, err
	}
	return build(left, right)
}

// comparison compares two values. With NULL it is unknown, but = and <> compare with NULL where ANSI_NULLS is OFF.
func comparison(operator string, left, right *Expression) (*Condition, *fault.Error) {
	if err := value.CheckComparable(left.Type, right.Type, operator); err != nil {
		return nil, err
	}
	if _, err := value.Higher(left.Type, right.Type); err != nil {
		return nil, err
	}
	holds := orders[operator]
	exact := left.collation | right.collation
	isEquality := operator == "=" || operator == "<>" || operator == "!="
	return &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		a, err := left.Evaluate(f)
		if err != nil {
			return Unknown, err
		}
		b, err := right.Evaluate(f)
		if err != nil {
			return Unknown, err
		}
		if a.IsNull() || b.IsNull() {
			if isEquality && !f.Context.Settings.ANSINulls {
				return truth((a.IsNull() == b.IsNull()) == (operator == "=")), nil
			}
			return Unknown, nil
		}
		order, err := exact.compare(f.Context.Settings, a, b)
		if err != nil {
			return Unknown, err
		}
		return truth(holds(order)), nil
	}}, nil
}

// orders says for which orders of two values each operator holds.
var orders = map[string]func(int) bool{
	"=": func(o int) bool { return o == 0 }, "<>": func(o int) bool { return o != 0 }, "!=": func(o int) bool { return o != 0 },
	"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 }, "!>": func(o int) bool { return o <= 0 },
	">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 }, "!<": func(o int) bool { return o >= 0 },
}

func (c *compiler) distinct(node *ast.IsDistinct) (*Condition, *fault.Error) {
	return c.pair(node.Left, node.Right, func(left, right *Expression) (*Condition, *fault.Error) {
		equal, err := comparison("=", left, right)
		if err != nil {
			return nil, err
		}
		return &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
			t, err := equal.Evaluate(f)
			if err != nil || t != Unknown {
				return truth((t == False) != node.Not), err
			}
			a, err := left.Evaluate(f)
			if err != nil {
				return Unknown, err
			}
			b, err := right.Evaluate(f)
			if err != nil {
				return Unknown, err
			}
			return truth((a.IsNull() != b.IsNull()) != node.Not), nil
		}}, nil
	})
}

func (c *compiler) isNull(node *ast.IsNull) (*Condition, *fault.Error) {
	operand, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	return &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		v, err := operand.Evaluate(f)
		if err != nil {
			return Unknown, err
		}
		return truth(v.IsNull() != node.Not), nil
	}}, nil
}

func (c *compiler) between(node *ast.Between) (*Condition, *fault.Error) {
	low, err := c.condition(&ast.Comparison{ConditionAt: node.ConditionAt, Operator: ">=", Left: node.Operand, Right: node.Low})
	if err != nil {
		return nil, err
	}
	high, err := c.condition(&ast.Comparison{ConditionAt: node.ConditionAt, Operator: "<=", Left: node.Operand, Right: node.High})
	if err != nil {
		return nil, err
	}
	return turned(node.Not, &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		a, err := low.Evaluate(f)
		if err != nil || a == False {
			return a, err
		}
		b, err := high.Evaluate(f)
		return min(a, b), err
	}}), nil
}

func (c *compiler) in(node *ast.In) (*Condition, *fault.Error) {
	operand, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	var equal []*Condition
	for _, item := range node.List {
		e, err := c.expression(item)
		if err != nil {
			return nil, err
		}
		one, err := comparison("=", operand, e)
		if err != nil {
			return nil, err
		}
		equal = append(equal, one)
	}
	return turned(node.Not, &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		result := False
		for _, one := range equal {
			t, err := one.Evaluate(f)
			if err != nil || t == True {
				return t, err
			}
			result = max(result, t)
		}
		return result, nil
	}}), nil
}

func (c *compiler) like(node *ast.Like) (*Condition, *fault.Error) {
	operand, err := c.expression(node.Operand)
	if err != nil {
		return nil, err
	}
	pattern, err := c.expression(node.Pattern)
	if err != nil {
		return nil, err
	}
	escape := constant(value.NewVarChar(""))
	if node.Escape != nil {
		if escape, err = c.expression(node.Escape); err != nil {
			return nil, err
		}
	}
	for i, e := range []*Expression{operand, pattern} {
		if k := e.Type.Kind; k == value.XML || k == value.Image || k >= value.Table {
			return nil, fault.New(8116, k, i+1, "like")
		}
	}
	exact := operand.collation | pattern.collation
	return turned(node.Not, &Condition{Evaluate: func(f *Frame) (Truth, *fault.Error) {
		var texts [3]string
		for i, e := range []*Expression{operand, pattern, escape} {
			v, err := e.Evaluate(f)
			if err != nil || v.IsNull() {
				return Unknown, err
			}
			texts[i] = f.Context.Settings.Text(v)
		}
		escape, size := utf8.DecodeRuneInString(texts[2])
		switch {
		case texts[2] == "":
			escape = 0
		case size != len(texts[2]):
			return Unknown, fault.New(506, texts[2], "LIKE")
		}
		return truth(value.CompilePattern(texts[1], escape).ByCase(exact.isExact()).Matches(texts[0])), nil
	}}), nil
}
