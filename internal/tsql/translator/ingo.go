package translator

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// An afterwards is what Go does with the rows of a query, because a part of its clauses has no form in SQL: it chooses, sorts and cuts.
type afterwards struct {
	filter *expression.Condition // of WHERE
	order  []sortTerm            // of ORDER BY, all of its terms
	limits []rowLimit            // of TOP and of SET ROWCOUNT
}

type sortTerm struct {
	value        *expression.Expression
	isDescending bool
}

// mayChoose reports whether Go may choose or sort the rows of a query: nothing that the database does depends on the rows before.
func mayChoose(node *ast.Specification, q *ast.Query, list listing) bool {
	return list == shownTo && node.Quantifier != "DISTINCT" && q.Offset == nil && (node.Top == nil || !node.Top.WithTies)
}

// where translates WHERE: to SQL, and for the parts between AND that have no form there to a condition of Go, where it may choose.
func (b *builder) where(s *selection, node *ast.Specification, isFree bool) (string, *fault.Error) {
	if node.Where == nil {
		return "", nil
	}
	if !isFree {
		sql, err := b.condition(node.Where)
		if err != nil && err.Number == unsupported {
			return b.chosenBefore(node.From, node.Where, err)
		}
		return " where " + sql, err
	}
	sql, filter, err := b.conditions(node.Where, &s.leaves)
	s.after.filter = filter
	return sql, err
}

// conditions translates the parts of a condition between AND; those that have no form in SQL become a condition of Go over the leaves.
func (b *builder) conditions(node ast.Condition, leaves *[]sqlExpression) (sql string, filter *expression.Condition, _ *fault.Error) {
	var written []string
	for _, part := range conjuncts(node) {
		sql, err := b.condition(part)
		if err == nil {
			written = append(written, sql)
			continue
		}
		if err.Number != unsupported {
			return "", nil, err
		}
		c, err := expression.CompileCondition(part, goScope{builder: b, leaves: leaves})
		if err != nil {
			return "", nil, err
		}
		filter = bothTrue(filter, c)
	}
	if written == nil {
		return "", filter, nil
	}
	return " where " + strings.Join(written, " and "), filter, nil
}

// conjuncts gives the parts of a condition between which AND stands.
func conjuncts(node ast.Condition) []ast.Condition {
	switch c := node.(type) {
	case *ast.ConditionGroup:
		if parts := conjuncts(c.Inner); len(parts) > 1 {
			return parts
		}
	case *ast.Logical:
		if c.Operator == "AND" {
			return append(conjuncts(c.Left), conjuncts(c.Right)...)
		}
	}
	return []ast.Condition{node}
}

// bothTrue gives the condition that both are true; the first may be nil.
func bothTrue(first, second *expression.Condition) *expression.Condition {
	if first == nil {
		return second
	}
	return &expression.Condition{Evaluate: func(f *expression.Frame) (expression.Truth, *fault.Error) {
		if truth, err := first.Evaluate(f); err != nil || truth != expression.True {
			return truth, err
		}
		return second.Evaluate(f)
	}}
}

// sorted translates ORDER BY: to SQL, or all of it to terms of Go where one has no form in SQL and Go may sort.
func (b *builder) sorted(s *selection, q *ast.Query, items []item, isDistinct, isFree bool) (string, *fault.Error) {
	sql, err := b.orderBy(q, items, isDistinct)
	if err == nil || err.Number != unsupported || !isFree {
		return sql, err
	}
	scope := goScope{builder: b, leaves: &s.leaves}
	for _, o := range q.OrderBy {
		node := o.Value
		if at, err := placeInList(o.Value, items); err != nil {
			return "", err
		} else if at >= 0 && items[at].column == nil {
			node = items[at].node
		}
		e, err := expression.Compile(node, scope)
		if err != nil {
			return "", err
		}
		if e.Type.Kind == value.XML {
			return "", fault.New(305, e.Type.Kind)
		}
		s.after.order = append(s.after.order, sortTerm{e, o.Direction == "DESC"})
	}
	return "", nil
}

// keepsRows reports whether the rows are read before results are computed of them: to be sorted or cut, or because a result asks the
// database, which is busy while rows come.
func (r *reading) keepsRows() bool {
	return r.builder.callsModules || r.after.order != nil || r.after.limits != nil
}

// chosen reports whether the condition of Go takes the row of the frame.
func (a *afterwards) chosen(f *expression.Frame) (bool, *fault.Error) {
	if a.filter == nil {
		return true, nil
	}
	truth, err := a.filter.Evaluate(f)
	return truth == expression.True, err
}

// apply chooses, sorts and cuts rows that were read.
func (a *afterwards) apply(f *expression.Frame, rows [][]value.Value) ([][]value.Value, *fault.Error) {
	outer := f.Row
	defer func() { f.Row = outer }()
	type keyed struct{ row, keys []value.Value }
	var kept []keyed
	for _, row := range rows {
		f.Row = row
		isChosen, err := a.chosen(f)
		if err != nil {
			return nil, err
		}
		if !isChosen {
			continue
		}
		k := keyed{row: row}
		for _, term := range a.order {
			key, err := term.value.Evaluate(f)
			if err != nil {
				return nil, err
			}
			k.keys = append(k.keys, key)
		}
		kept = append(kept, k)
	}
	f.Row = outer
	var failed *fault.Error
	slices.SortStableFunc(kept, func(x, y keyed) int {
		for i, term := range a.order {
			order, err := compareKeys(f, x.keys[i], y.keys[i])
			if err != nil {
				failed = err
			}
			if term.isDescending {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	if failed != nil {
		return nil, failed
	}
	for _, limit := range a.limits {
		n, err := limit.of(f, len(kept))
		if err != nil {
			return nil, err
		}
		kept = kept[:n]
	}
	given := make([][]value.Value, len(kept))
	for i, k := range kept {
		given[i] = k.row
	}
	return given, nil
}

// compareKeys orders two values as ORDER BY does: NULL stands first.
func compareKeys(f *expression.Frame, x, y value.Value) (int, *fault.Error) {
	switch {
	case x.IsNull() && y.IsNull():
		return 0, nil
	case x.IsNull():
		return -1, nil
	case y.IsNull():
		return 1, nil
	}
	return f.Context.Settings.Compare(x, y)
}

// resultsOf computes the results of rows that were read.
func (r *reading) resultsOf(f *expression.Frame, rows [][]value.Value) ([][]value.Value, *fault.Error) {
	rows, err := r.after.apply(f, rows)
	if err != nil {
		return nil, err
	}
	outer := f.Row
	defer func() { f.Row = outer }()
	var given [][]value.Value
	for _, row := range rows {
		f.Row = row
		results := make([]value.Value, len(r.results))
		for i, e := range r.results {
			if results[i], err = e.Evaluate(f); err != nil {
				return nil, err
			}
		}
		given = append(given, results)
	}
	return given, nil
}
