package translator

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A selection is a translated specification.
type selection struct {
	sql     string
	columns []sourceColumn
	// Of a list that Go computes: what PostgreSQL gives, and the results of it.
	leaves  []sqlExpression
	results []*expression.Expression
	slots   []int // of variables that take the results
	source  *source
	after   afterwards
	isOne   bool // aggregates without GROUP BY give one row, also of none
}

// An item is an element of the list of results, with * spread out.
type item struct {
	name     string
	node     ast.Expression
	column   *sqlExpression // of *
	variable string         // that takes the value
	operator string
}

func (b *builder) specification(node *ast.Specification, q *ast.Query, list listing) (*selection, *fault.Error) {
	recursive, fallsBack := b.recursive, b.fallsBack
	defer b.entered()()
	var clauses strings.Builder
	locks := ""
	if node.From != nil {
		sql, err := b.from(node.From)
		if err != nil {
			return nil, err
		}
		clauses.WriteString(" from " + sql)
		b.beside = append(slices.Clip(b.beside), sight{sources: node.From})
		locks = lockOf(node.From)
	}
	s := &selection{}
	items, err := b.items(node.Items)
	if err != nil {
		return nil, err
	}
	isPlain := node.Quantifier != "DISTINCT" && node.GroupBy == nil && node.Having == nil && !aggregates(items)
	isFree := mayChoose(node, q, list)
	where, err := b.where(s, node, isFree && isPlain)
	if err != nil {
		return nil, err
	}
	clauses.WriteString(where)
	if node.From != nil {
		b.beside[len(b.beside)-1].where = node.Where
	}
	b.computes = !isPlain || !fallsBack
	groups, err := b.groups(s, node, isFree)
	if err != nil {
		return nil, err
	}
	clauses.WriteString(groups)
	s.isOne = node.GroupBy == nil && anyCall(items, func(call *ast.Call) bool { return isAggregateCall(call) && call.Over == nil })
	if list == shownTo && node.Quantifier != "DISTINCT" && groupsColumns(node.GroupBy) {
		err = b.computedInGo(s, items)
	} else {
		err = b.computedInDatabase(s, items, list, node.Quantifier == "DISTINCT")
	}
	if err != nil {
		return nil, err
	}
	b.computes = !isFree || !isPlain
	order, err := b.sorted(s, q, items, node.Quantifier == "DISTINCT", isFree)
	if err == nil && order == "" && list == shownTo {
		order, err = b.ownOrder(node, isPlain, len(s.leaves))
	}
	if err != nil {
		return nil, err
	}
	if isPlain {
		s.source = b.onlyTable()
	}
	quantifier := map[string]string{"DISTINCT": "distinct "}[node.Quantifier]
	rows := "select " + quantifier + b.list(s, list) + b.nextLevel(recursive) + clauses.String()
	limits, err := b.cut(s, node.Top, q, rows)
	if err != nil {
		return nil, err
	}
	if !isPlain || list == computed {
		locks = ""
	}
	s.sql = rows + order + limits + locks
	return s, nil
}

// entered begins a specification, until the returned function ends it: its names and what it computes are its own.
func (b *builder) entered() (leave func()) {
	b.names = &names{outer: b.names}
	grouped, beside, computes := b.grouped, b.beside, b.computes
	b.grouped, b.computes, b.fallsBack, b.recursive = nil, false, false, nil
	return func() { b.names, b.grouped, b.beside, b.computes = b.names.outer, grouped, beside, computes }
}

// list writes the list of results.
func (b *builder) list(s *selection, list listing) string {
	switch {
	case list == existing && s.isOne:
		return "count(*)"
	case list == existing:
		return "1"
	}
	var texts []string
	for _, e := range s.leaves {
		texts = append(texts, e.sql)
	}
	if texts == nil {
		return "1"
	}
	return strings.Join(texts, ", ")
}

// items spreads * out and names the results.
func (b *builder) items(nodes []ast.SelectItem) ([]item, *fault.Error) {
	var items []item
	for _, node := range nodes {
		switch node := node.(type) {
		case *ast.AssignedColumn:
			items = append(items, item{node: node.Value, variable: node.Variable, operator: node.Operator})
		case *ast.ResultColumn:
			s, isStar := node.Value.(*ast.Star)
			if !isStar {
				items = append(items, item{name: resultName(node), node: node.Value})
				continue
			}
			found := false
			for _, source := range b.names.sources {
				if source.isHidden || !s.Qualifier.IsEmpty() && !source.isCalled(ast.Name{Parts: append(slices.Clone(s.Qualifier.Parts), "*")}) {
					continue
				}
				found = true
				for _, c := range source.columns {
					items = append(items, item{name: c.name, column: &sqlExpression{sql: c.sql, typ: c.typ}})
				}
			}
			if !found && !s.Qualifier.IsEmpty() {
				return nil, fault.New(107, s.Qualifier.String())
			}
		}
	}
	return items, nil
}

func resultName(node *ast.ResultColumn) string {
	if node.HasAlias || node.Alias != "" {
		return node.Alias
	}
	if c, is := node.Value.(*ast.ColumnReference); is {
		return c.Name.Object()
	}
	if c, is := node.Value.(*ast.PseudoColumn); is && c.Name == "$ACTION" {
		return "$action"
	}
	return ""
}

func aggregates(items []item) bool {
	return anyCall(items, func(call *ast.Call) bool {
		return isAggregateCall(call) || len(call.Name.Parts) == 1 && call.Over != nil
	})
}

// anyCall reports whether a call in the list of results, outside of subqueries, is of some kind.
func anyCall(items []item, isKind func(*ast.Call) bool) bool {
	found := false
	for _, i := range items {
		if i.node == nil {
			continue
		}
		ast.Walk(i.node, func(node ast.Node) bool {
			if call, is := node.(*ast.Call); is {
				found = found || isKind(call)
			}
			_, isQuery := node.(*ast.Query)
			return !isQuery
		})
	}
	return found
}

// groupsColumns reports whether groups, if there are any, are of columns alone: then each result is computed of them.
func groupsColumns(node *ast.GroupBy) bool {
	if node == nil {
		return true
	}
	for _, i := range node.Items {
		if _, isColumn := i.Value.(*ast.ColumnReference); !isColumn {
			return false
		}
	}
	return node.With == ""
}

// computedInGo compiles the results as expressions of Go over what PostgreSQL gives.
func (b *builder) computedInGo(s *selection, items []item) *fault.Error {
	scope := goScope{builder: b, leaves: &s.leaves}
	for _, i := range items {
		if i.column != nil {
			s.results = append(s.results, scope.leaf(*i.column))
			s.columns = append(s.columns, sourceColumn{name: i.name, typ: i.column.typ})
			continue
		}
		if i.variable != "" {
			slot, e, err := b.assigned(i, scope)
			if err != nil {
				return err.At(i.node.At().Line, "")
			}
			s.slots, s.results = append(s.slots, slot), append(s.results, e)
			continue
		}
		e, err := expression.Compile(i.node, scope)
		if err != nil {
			return err
		}
		s.results = append(s.results, e)
		s.columns = append(s.columns, sourceColumn{name: i.name, typ: shown(e.Type)})
	}
	if s.slots != nil && s.columns != nil {
		return fault.New(141)
	}
	return nil
}

// assigned compiles @variable = value, and the operators that compute with its old value.
func (b *builder) assigned(i item, scope expression.Scope) (slot int, e *expression.Expression, err *fault.Error) {
	slot, t, known := b.scope.Variable(i.variable)
	if !known {
		return 0, nil, fault.New(137, i.variable)
	}
	if i.operator == "=" || i.operator == "" {
		e, err = expression.CompileAs(i.node, t, scope)
		return slot, e, err
	}
	current, err := expression.Compile(&ast.Variable{Name: i.variable}, scope)
	if err != nil {
		return 0, nil, err
	}
	operand, err := expression.Compile(i.node, scope)
	if err != nil {
		return 0, nil, err
	}
	e, err = expression.Operation(strings.TrimSuffix(i.operator, "="), current, operand)
	if err != nil {
		return 0, nil, err
	}
	e, err = e.As(t)
	return slot, e, err
}

// computedInDatabase translates the results. An item that assigns takes its value from a column of its own. Go computes one of sums that
// has no form in SQL, such as FORMAT(SUM(n), 'N0'), where the rows are shown as they are.
func (b *builder) computedInDatabase(s *selection, items []item, list listing, isDistinct bool) *fault.Error {
	if list == existing {
		return nil
	}
	for _, i := range items {
		var e sqlExpression
		var err *fault.Error
		if i.column != nil {
			e = *i.column
		} else if e, err = b.expression(i.node); err != nil {
			if err.Number != unsupported || list != shownTo || isDistinct || i.variable != "" {
				return err
			}
			read, err := expression.Compile(i.node, goScope{builder: b, leaves: &s.leaves})
			if err != nil {
				return err
			}
			s.results = append(s.results, read)
			s.columns = append(s.columns, sourceColumn{name: i.name, typ: shown(read.Type)})
			continue
		}
		if e.typ.Kind == value.Unknown {
			e = sqlExpression{sql: "(null::integer)", typ: value.Of(value.Int)}
		}
		at := len(s.leaves)
		s.leaves = append(s.leaves, e)
		read := &expression.Expression{Type: e.typ, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) { return f.Row[at], nil }}
		if i.variable != "" {
			slot, t, known := b.scope.Variable(i.variable)
			if !known {
				return fault.New(137, i.variable)
			}
			if read, err = read.As(t); err != nil {
				return err
			}
			s.slots = append(s.slots, slot)
		} else {
			s.columns = append(s.columns, sourceColumn{name: i.name, typ: e.typ})
		}
		s.results = append(s.results, read)
	}
	return nil
}

// orderBy translates ORDER BY: of names of results, of their numbers, of other expressions.
func (b *builder) orderBy(q *ast.Query, items []item, isDistinct bool) (string, *fault.Error) {
	var parts []string
	for _, o := range q.OrderBy {
		at, err := placeInList(o.Value, items)
		if err != nil {
			return "", err
		}
		var e sqlExpression
		switch {
		case at >= 0 && items[at].column != nil:
			e = *items[at].column
		case at >= 0:
			e, err = b.expression(items[at].node)
		default:
			e, err = b.expression(o.Value)
		}
		if err != nil {
			return "", err
		}
		if e.isConstant && !isDistinct {
			continue
		}
		parts = append(parts, ordered(e, o.Direction))
	}
	if parts == nil {
		return "", nil
	}
	return " order by " + strings.Join(parts, ", "), nil
}

// placeInList gives the place of the result that a term of ORDER BY names, by its number or its name; -1 for another term.
func placeInList(term ast.Expression, items []item) (int, *fault.Error) {
	switch node := term.(type) {
	case *ast.Literal:
		at := ordinal(node, len(items))
		if at < 0 {
			return at, fault.New(108, node.Text, len(items))
		}
		return at, nil
	case *ast.ColumnReference:
		if len(node.Name.Parts) == 1 {
			return slices.IndexFunc(items, func(i item) bool { return i.name != "" && strings.EqualFold(i.name, node.Name.Object()) }), nil
		}
	}
	return -1, nil
}
