package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// dateParts has the names and abbreviations of parts of dates.
var dateParts = map[string]string{
	"YEAR": "year", "YY": "year", "YYYY": "year", "QUARTER": "quarter", "QQ": "quarter", "Q": "quarter", "MONTH": "month", "MM": "month",
	"M": "month", "DAYOFYEAR": "doy", "DY": "doy", "Y": "doy", "DAY": "day", "DD": "day", "D": "day", "WEEK": "week", "WK": "week",
	"WW": "week", "WEEKDAY": "dow", "DW": "dow", "W": "dow", "HOUR": "hour", "HH": "hour", "MINUTE": "minute", "MI": "minute",
	"N": "minute", "SECOND": "second", "SS": "second", "S": "second", "MILLISECOND": "millisecond", "MS": "millisecond",
	"MICROSECOND": "microsecond", "MCS": "microsecond",
}

// dated translates the functions of dates with a part.
func (b *builder) dated(node *ast.Call, name string) (sqlExpression, *fault.Error) {
	written := ""
	switch part := node.Arguments[0].(type) {
	case *ast.DatePart:
		written = part.Name
	case *ast.ColumnReference:
		written = part.Name.Object()
	}
	part, known := dateParts[strings.ToUpper(written)]
	if !known {
		return sqlExpression{}, fault.New(155, written, strings.ToLower(name))
	}
	var arguments []sqlExpression
	for i, argument := range node.Arguments[1:] {
		e, err := b.expression(argument)
		if err != nil {
			return e, err
		}
		letter := byte('d')
		if name == "DATEADD" && i == 0 {
			letter = 'i'
		}
		if e, err = b.argument(e, letter); err != nil {
			return e, err
		}
		arguments = append(arguments, e)
	}
	switch {
	case name == "DATEADD" && len(arguments) == 2:
		return dateAdd(part, arguments[0], arguments[1])
	case (name == "DATEDIFF" || name == "DATEDIFF_BIG") && len(arguments) == 2:
		return dateDifference(part, name, arguments[0], arguments[1])
	case name == "DATEPART" && len(arguments) == 1:
		return datePart(part, arguments[0])
	}
	return sqlExpression{}, expression.Unsupported(name + "() of rows in the database")
}

// intervals has the interval of one unit of each part.
var intervals = map[string]string{
	"year": "1 year", "quarter": "3 months", "month": "1 month", "doy": "1 day", "day": "1 day", "dow": "1 day", "week": "7 days",
	"hour": "1 hour", "minute": "1 minute", "second": "1 second", "millisecond": "1 millisecond", "microsecond": "1 microsecond",
}

func dateAdd(part string, count, date sqlExpression) (sqlExpression, *fault.Error) {
	sql := "(" + date.sql + " + " + count.sql + " * interval '" + intervals[part] + "')"
	if date.typ.Kind == value.Date {
		sql = "(" + sql + "::date)"
	}
	return sqlExpression{sql: thirds(sql, date.typ), typ: date.typ}, nil
}

// dateDifference counts the boundaries of a part between two dates.
func dateDifference(part, name string, from, to sqlExpression) (sqlExpression, *fault.Error) {
	t := value.Of(value.Int)
	if name == "DATEDIFF_BIG" {
		t = value.Of(value.BigInt)
	}
	moment := func(e sqlExpression) string {
		if e.typ.Kind == value.Time {
			return "(timestamp '1900-01-01' + " + e.sql + ")"
		}
		return "(" + e.sql + "::timestamp)"
	}
	a, z := moment(from), moment(to)
	whole := func(sql, seconds string) string {
		return "floor(extract(epoch from " + sql + ")::numeric / " + seconds + ")"
	}
	var count string
	switch part {
	case "year":
		count = "extract(year from " + z + ") - extract(year from " + a + ")"
	case "quarter":
		quarter := func(sql string) string {
			return "(extract(year from " + sql + ") * 4 + extract(quarter from " + sql + "))"
		}
		count = quarter(z) + " - " + quarter(a)
	case "month":
		month := func(sql string) string {
			return "(extract(year from " + sql + ") * 12 + extract(month from " + sql + "))"
		}
		count = month(z) + " - " + month(a)
	case "week": // weeks begin with Sunday, and 1899-12-31 was one
		week := func(sql string) string { return "floor((" + sql + "::date - date '1899-12-31') / 7.0)" }
		count = week(z) + " - " + week(a)
	case "day", "doy", "dow":
		count = z + "::date - " + a + "::date"
	default:
		seconds := map[string]string{"hour": "3600", "minute": "60", "second": "1", "millisecond": "0.001", "microsecond": "0.000001"}[part]
		count = whole(z, seconds) + " - " + whole(a, seconds)
	}
	return sqlExpression{sql: "((" + count + ")::" + databaseType(t) + ")", typ: t}, nil
}

func datePart(part string, date sqlExpression) (sqlExpression, *fault.Error) {
	sql := "extract(" + part + " from " + date.sql + ")"
	switch part {
	case "dow":
		sql += " + 1"
	case "week":
		sql = "floor((extract(doy from " + date.sql + ") - 1 + extract(dow from date_trunc('year', " + date.sql + "))) / 7) + 1"
	case "second":
		sql = "floor(" + sql + ")"
	case "millisecond":
		sql = "floor(extract(milliseconds from " + date.sql + ")::numeric % 1000)"
	case "microsecond":
		sql = "floor(extract(microseconds from " + date.sql + ")::numeric % 1000000)"
	}
	return sqlExpression{sql: "((" + sql + ")::integer)", typ: value.Of(value.Int)}, nil
}
