package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// aggregateNames are the functions of many rows, as PostgreSQL calls them.
var aggregateNames = map[string]string{
	"COUNT": "count", "COUNT_BIG": "count", "SUM": "sum", "AVG": "avg", "MIN": "min", "MAX": "max", "STRING_AGG": "string_agg",
	"STDEV": "stddev_samp", "STDEVP": "stddev_pop", "VAR": "var_samp", "VARP": "var_pop",
}

// windowNames are the functions that need OVER.
var windowNames = map[string]string{
	"ROW_NUMBER": "row_number", "RANK": "rank", "DENSE_RANK": "dense_rank", "NTILE": "ntile", "LAG": "lag", "LEAD": "lead",
	"FIRST_VALUE": "first_value", "LAST_VALUE": "last_value", "PERCENT_RANK": "percent_rank", "CUME_DIST": "cume_dist",
}

func isAggregate(name string) bool { return aggregateNames[name] != "" || isGrouping(name) }

func isAggregateCall(call *ast.Call) bool {
	return len(call.Name.Parts) == 1 && isAggregate(strings.ToUpper(call.Name.Object()))
}

// isGrouping reports whether a function says which columns of GROUP BY a row sums up.
func isGrouping(name string) bool { return name == "GROUPING" || name == "GROUPING_ID" }

// aggregate translates an aggregate or a function of a window.
func (b *builder) aggregate(node *ast.Call, name string) (sqlExpression, *fault.Error) {
	window := ""
	if node.Over != nil {
		sql, err := b.window(node.Over)
		if err != nil {
			return sqlExpression{}, err
		}
		window = " over (" + sql + ")"
	}
	if called, is := windowNames[name]; is {
		return b.windowFunction(node, name, called, window)
	}
	if isGrouping(name) {
		return b.grouping(node, name)
	}
	called := aggregateNames[name]
	if called == "" {
		return sqlExpression{}, expression.Unsupported(name + "()")
	}
	if hasStar(node) || len(node.Arguments) == 0 {
		return counted("count(*)"+window, name), nil
	}
	e, err := b.expression(node.Arguments[0])
	if err != nil {
		return e, err
	}
	if name != "STRING_AGG" {
		e = b.watched(node, name, e)
	}
	distinct := ""
	if node.Quantifier == "DISTINCT" {
		distinct = "distinct "
	}
	switch name {
	case "COUNT", "COUNT_BIG":
		return counted("count("+distinct+e.sql+")"+window, name), nil
	case "MIN", "MAX":
		if k := e.typ.Kind; k.IsBinary() && k != value.Image && e.typ.Length != value.Max {
			// PostgreSQL has no order of aggregates for bytes before 18; their digits have the same order.
			return sqlExpression{sql: "decode(" + called + "(encode(" + e.sql + ", 'hex'))" + window + ", 'hex')", typ: e.typ}, nil
		} else if k == value.Bit || k == value.UniqueIdentifier || k.IsBinary() {
			return e, fault.New(8117, e.typ, strings.ToLower(name))
		}
		return sqlExpression{sql: called + "(" + e.sql + ")" + window, typ: e.typ}, nil
	case "STRING_AGG":
		return b.stringAggregate(node, e)
	case "SUM", "AVG":
		return summed(name, distinct+e.sql, e.typ, window)
	}
	sql := "(" + called + "(" + distinct + "(" + e.sql + ")::double precision)" + window + "::double precision)"
	return sqlExpression{sql: sql, typ: value.Of(value.Float)}, nil
}

// grouping translates GROUPING and GROUPING_ID: a bit for each column, the last one lowest, 1 where the row sums it up.
func (b *builder) grouping(node *ast.Call, name string) (sqlExpression, *fault.Error) {
	if b.grouped == nil {
		return sqlExpression{}, fault.New(8160)
	}
	if len(node.Arguments) == 0 || name == "GROUPING" && len(node.Arguments) != 1 {
		return sqlExpression{}, fault.New(174, strings.ToLower(name), 1)
	}
	var columns []string
	for i, argument := range node.Arguments {
		e, err := b.expression(argument)
		if err != nil {
			return e, err
		}
		if !b.grouped[e.sql] {
			return e, fault.New(8161, i+1, name)
		}
		columns = append(columns, e.sql)
	}
	t := value.Of(value.Int)
	if name == "GROUPING" {
		t = value.Of(value.TinyInt)
	}
	return sqlExpression{sql: "(grouping(" + strings.Join(columns, ", ") + ")::" + databaseType(t) + ")", typ: t}, nil
}

// hasStar reports whether the one argument is *.
func hasStar(node *ast.Call) bool {
	if len(node.Arguments) != 1 {
		return false
	}
	_, is := node.Arguments[0].(*ast.Star)
	return is
}

func counted(sql, name string) sqlExpression {
	if name == "COUNT_BIG" {
		return sqlExpression{sql: "(" + sql + ")", typ: value.Of(value.BigInt)}
	}
	return sqlExpression{sql: "((" + sql + ")::integer)", typ: value.Of(value.Int)}
}

// summed gives sums and averages the types of SQL Server: an int stays an int, a decimal gets 38 digits.
func summed(name, argument string, t value.Type, window string) (sqlExpression, *fault.Error) {
	result := t
	switch k := t.Kind; {
	case k == value.TinyInt || k == value.SmallInt:
		result = value.Of(value.Int)
	case k == value.SmallMoney:
		result = value.Of(value.Money)
	case k == value.Real:
		result = value.Of(value.Float)
	case k == value.Decimal && name == "SUM":
		result = value.Numeric(value.MaxPrecision, int(t.Scale))
	case k == value.Decimal:
		result = value.Numeric(value.MaxPrecision, max(int(t.Scale), 6))
	case !k.IsNumber() || k == value.Bit:
		return sqlExpression{}, fault.New(8117, k, strings.ToLower(name))
	}
	sql := strings.ToLower(name) + "(" + argument + ")" + window
	if name == "AVG" && result.Kind.IsInteger() {
		sql = "trunc(" + sql + ")"
	}
	return sqlExpression{sql: "((" + sql + ")::" + databaseType(result) + ")", typ: result}, nil
}

func (b *builder) stringAggregate(node *ast.Call, e sqlExpression) (sqlExpression, *fault.Error) {
	if len(node.Arguments) != 2 {
		return e, fault.New(174, "string_agg", 2)
	}
	e, err := b.convert(e, varying(e.typ, value.Sized(value.NVarChar, value.MaxUnicode)), implicit)
	if err != nil {
		return e, err
	}
	separator, err := b.expression(node.Arguments[1])
	if err != nil {
		return e, err
	}
	order := ""
	if node.WithinGroup != nil {
		sql, err := b.orderItems(node.WithinGroup)
		if err != nil {
			return e, err
		}
		order = " order by " + sql
	}
	return text("string_agg("+plain(e.sql)+", "+plain(separator.sql)+order+")", longest(e.typ)), nil
}

func (b *builder) windowFunction(node *ast.Call, name, called, window string) (sqlExpression, *fault.Error) {
	if window == "" {
		return sqlExpression{}, fault.New(10753, name)
	}
	t := value.Of(value.BigInt)
	var arguments []string
	for i, argument := range node.Arguments {
		e, err := b.expression(argument)
		if err != nil {
			return e, err
		}
		switch {
		case i == 0 && name != "NTILE":
			t = e.typ
		case i == 2:
			if e, err = b.convert(e, t, implicit); err != nil {
				return e, err
			}
		default:
			if e, err = b.convert(e, value.Of(value.Int), implicit); err != nil {
				return e, err
			}
		}
		arguments = append(arguments, e.sql)
	}
	if name == "PERCENT_RANK" || name == "CUME_DIST" {
		t = value.Of(value.Float)
	}
	return sqlExpression{sql: "(" + called + "(" + strings.Join(arguments, ", ") + ")" + window + ")", typ: t}, nil
}

// window translates what stands behind OVER. Without a frame an order means all rows up to the current one, in both languages.
func (b *builder) window(node *ast.Window) (string, *fault.Error) {
	if node.Name != "" {
		return "", expression.Unsupported("OVER a named window")
	}
	var parts []string
	if node.PartitionBy != nil {
		var texts []string
		for _, p := range node.PartitionBy {
			e, err := b.expression(p)
			if err != nil {
				return "", err
			}
			texts = append(texts, e.sql)
		}
		parts = append(parts, "partition by "+strings.Join(texts, ", "))
	}
	if node.OrderBy != nil {
		sql, err := b.orderItems(node.OrderBy)
		if err != nil {
			return "", err
		}
		if sql != "" {
			parts = append(parts, "order by "+sql)
		}
	}
	if node.Frame != nil {
		sql, err := b.frame(node.Frame)
		if err != nil {
			return "", err
		}
		parts = append(parts, sql)
	}
	return strings.Join(parts, " "), nil
}

func (b *builder) frame(node *ast.Frame) (string, *fault.Error) {
	from, err := b.frameBound(&node.From)
	if err != nil || node.To == nil {
		return strings.ToLower(node.Unit) + " " + from, err
	}
	to, err := b.frameBound(node.To)
	return strings.ToLower(node.Unit) + " between " + from + " and " + to, err
}

func (b *builder) frameBound(node *ast.FrameBound) (string, *fault.Error) {
	if node.Count == nil {
		return strings.ToLower(node.Kind), nil
	}
	e, err := b.expression(node.Count)
	return e.sql + " " + strings.ToLower(node.Kind), err
}

// orderItems translates ORDER BY of a window. NULL stands first, as the lowest of all. A subquery such as (SELECT NULL) orders nothing.
func (b *builder) orderItems(items []*ast.OrderItem) (string, *fault.Error) {
	var parts []string
	for _, item := range items {
		if _, isQuery := item.Value.(*ast.Subquery); isQuery {
			continue
		}
		e, err := b.expression(item.Value)
		if err != nil {
			return "", err
		}
		parts = append(parts, ordered(e, item.Direction))
	}
	return strings.Join(parts, ", "), nil
}

func ordered(e sqlExpression, direction string) string {
	sql := e.sql
	if e.typ.Kind == value.UniqueIdentifier {
		sql = identifierOrder(sql)
	}
	if direction == "DESC" {
		return sql + " desc nulls last"
	}
	return sql + " nulls first"
}
