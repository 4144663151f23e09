package expression

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A branch is a branch of CASE and IIF.
type branch struct {
	when   *Condition
	result *Expression
}

func (c *compiler) simpleCase(node *ast.SimpleCase) (*Expression, *fault.Error) {
	input, err := c.expression(node.Input)
	if err != nil {
		return nil, err
	}
	var branches []branch
	for _, w := range node.Whens {
		compared, err := c.expression(w.Value)
		if err != nil {
			return nil, err
		}
		when, err := comparison("=", input, compared)
		if err != nil {
			return nil, err
		}
		result, err := c.expression(w.Result)
		if err != nil {
			return nil, err
		}
		branches = append(branches, branch{when, result})
	}
	return c.branches(branches, node.Else)
}

func (c *compiler) searchedCase(node *ast.SearchedCase) (*Expression, *fault.Error) {
	var branches []branch
	for _, w := range node.Whens {
		when, err := c.condition(w.Condition)
		if err != nil {
			return nil, err
		}
		result, err := c.expression(w.Result)
		if err != nil {
			return nil, err
		}
		branches = append(branches, branch{when, result})
	}
	return c.branches(branches, node.Else)
}

func (c *compiler) iif(node *ast.Iif) (*Expression, *fault.Error) {
	when, err := c.condition(node.Condition)
	if err != nil {
		return nil, err
	}
	result, err := c.expression(node.True)
	if err != nil {
		return nil, err
	}
	return c.branches([]branch{{when, result}}, node.False)
}

// branches gives the result of the first branch whose condition is true, in the type that all results share.
func (c *compiler) branches(branches []branch, otherwise ast.Expression) (*Expression, *fault.Error) {
	last := constant(value.Value{})
	if otherwise != nil {
		e, err := c.expression(otherwise)
		if err != nil {
			return nil, err
		}
		last = e
	}
	results := []*Expression{last}
	for _, b := range branches {
		results = append(results, b.result)
	}
	t, err := highest(results, fault.New(8133))
	if err != nil {
		return nil, err
	}
	converted := convertAll(t, results)
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		for i, b := range branches {
			truth, err := b.when.Evaluate(f)
			if err != nil {
				return value.Value{}, err
			}
			if truth == True {
				return converted[i+1].Evaluate(f)
			}
		}
		return converted[0].Evaluate(f)
	}}, nil
}
