package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// groups translates GROUP BY and HAVING: to SQL, or HAVING to a condition of Go where it has no form there and Go may choose.
func (b *builder) groups(s *selection, node *ast.Specification, isFree bool) (sql string, err *fault.Error) {
	if node.GroupBy != nil {
		if sql, err = b.groupBy(node.GroupBy); err != nil {
			return "", err
		}
	}
	if node.Having == nil {
		return sql, nil
	}
	having, err := b.condition(node.Having)
	if err != nil && err.Number == unsupported && isFree {
		s.after.filter, err = expression.CompileCondition(node.Having, goScope{builder: b, leaves: &s.leaves})
		return sql, err
	}
	return sql + " having " + having, err
}

// groupBy translates GROUP BY.
func (b *builder) groupBy(node *ast.GroupBy) (string, *fault.Error) {
	listed := map[string]bool{}
	defer func() { b.grouped = listed }()
	items, err := b.groupItems(node.Items, listed)
	if err != nil {
		return "", err
	}
	if node.With != "" {
		items = strings.ToLower(node.With) + " (" + items + ")"
	}
	return " group by " + items, nil
}

func (b *builder) groupItems(nodes []*ast.GroupItem, listed map[string]bool) (string, *fault.Error) {
	var parts []string
	for _, node := range nodes {
		if node.Kind == "" {
			e, err := b.expression(node.Value)
			if err != nil {
				return "", err
			}
			parts, listed[e.sql] = append(parts, e.sql), true
			continue
		}
		inner, err := b.groupItems(node.Items, listed)
		if err != nil {
			return "", err
		}
		kind := strings.ToLower(node.Kind)
		if kind == "list" {
			kind = ""
		}
		parts = append(parts, kind+" ("+inner+")")
	}
	return strings.Join(parts, ", "), nil
}
