package translator

import (
	"math"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// limit translates TOP: the words behind ORDER BY. A percentage counts the rows of a query, which has neither order nor limit.
func (b *builder) limit(top *ast.Top, rows string) (string, *fault.Error) {
	if top == nil {
		return "", nil
	}
	count, err := b.topCount(top, rows)
	switch {
	case err != nil || count == "":
		return "", err
	case top.WithTies:
		return " fetch first " + count + " rows with ties", nil
	}
	return " limit " + count, nil
}

// limitOfChange translates TOP of a change. The smaller of it and of the number of SET ROWCOUNT counts.
func (b *builder) limitOfChange(top *ast.Top, rows string) (string, *fault.Error) {
	if !b.isCut {
		return b.limit(top, rows)
	}
	most := b.parameter(b.translator.rowLimit(), "").sql
	if top == nil {
		return " limit " + most, nil
	}
	count, err := b.topCount(top, rows)
	if err != nil || count == "" {
		return " limit " + most, err
	}
	return " limit least(" + count + ", " + most + ")", nil
}

// topCount translates the number of rows of TOP; empty for 100 PERCENT, which takes all.
func (b *builder) topCount(top *ast.Top, rows string) (string, *fault.Error) {
	if top.Percent && isAllPercent(top.Count) {
		return "", nil
	}
	var e sqlExpression
	var err *fault.Error
	if b.readsRows(top.Count) {
		if e, err = b.expression(top.Count); err == nil {
			e, err = b.convert(e, topType(top), implicit)
		}
	} else {
		var count *expression.Expression
		if count, err = rowsOfTop(top, goScope{builder: b}); err == nil {
			e = b.parameter(count, "")
		}
	}
	if err != nil || !top.Percent {
		return e.sql, err
	}
	return "(select ceil(count(*) * " + e.sql + " / 100)::bigint from (" + rows + ") as n)", nil
}

// isAllPercent reports whether TOP says 100 PERCENT, which takes all rows.
func isAllPercent(count ast.Expression) bool {
	if inner, is := count.(*ast.Parenthesis); is {
		return isAllPercent(inner.Inner)
	}
	literal, is := count.(*ast.Literal)
	return is && literal.Kind == ast.Integer && literal.Text == "100"
}

// topType gives the type to which the number of TOP is converted.
func topType(top *ast.Top) value.Type {
	if top.Percent {
		return value.Of(value.Float)
	}
	return value.Of(value.BigInt)
}

// rowsOfTop compiles the number of rows of TOP. Error 1014 for NULL and below 0, 1031 for no percentage.
func rowsOfTop(top *ast.Top, scope expression.Scope) (*expression.Expression, *fault.Error) {
	e, err := expression.CompileAs(top.Count, topType(top), scope)
	if err != nil {
		return nil, err
	}
	return &expression.Expression{Type: e.Type, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		v, err := e.Evaluate(f)
		switch {
		case err != nil:
		case v.IsNull() || !top.Percent && v.Int64() < 0:
			err = fault.New(1014)
		case top.Percent && (v.Float64() < 0 || v.Float64() > 100):
			err = fault.New(1031)
		}
		return v, err
	}}, nil
}

// cut translates TOP and OFFSET: to SQL, or TOP to a limit of Go where Go chooses or sorts. Errors 1062 and 10741.
func (b *builder) cut(s *selection, top *ast.Top, q *ast.Query, rows string) (string, *fault.Error) {
	switch {
	case top != nil && top.WithTies && q.OrderBy == nil:
		return "", fault.New(1062).At(top.Line, "")
	case top != nil && q.Offset != nil:
		return "", fault.New(10741).At(top.Line, "")
	case top != nil && (s.after.filter != nil || s.after.order != nil):
		count, err := rowsOfTop(top, goScope{builder: b})
		s.after.limits = []rowLimit{{count, top.Percent}}
		return "", err
	}
	limit, err := b.limit(top, rows)
	if err != nil {
		return "", err
	}
	offset, err := b.offset(q)
	return limit + offset, err
}

// A rowLimit is how many rows of a query go on, or how many of a hundred.
type rowLimit struct {
	count     *expression.Expression
	isPercent bool
}

// of gives how many of some rows go on.
func (l rowLimit) of(f *expression.Frame, rows int) (int, *fault.Error) {
	v, err := l.count.Evaluate(f)
	switch {
	case err != nil:
		return 0, err
	case v.IsNull():
		return rows, nil
	case l.isPercent:
		return int(math.Ceil(float64(rows) * v.Float64() / 100)), nil
	}
	return int(min(int64(rows), v.Int64())), nil
}

// isCutting reports whether SET ROWCOUNT limits the statements of the session.
func (t *Translator) isCutting() bool { return t.host != nil && t.host.RowLimit() > 0 }

// rowLimit is the number of SET ROWCOUNT at the time when a statement runs; NULL where it is 0.
func (t *Translator) rowLimit() *expression.Expression {
	bigint := value.Of(value.BigInt)
	return &expression.Expression{Type: bigint, Evaluate: func(*expression.Frame) (value.Value, *fault.Error) {
		if !t.isCutting() {
			return value.Null(bigint), nil
		}
		return value.Integer(value.BigInt, t.host.RowLimit()), nil
	}}
}

// cutAtRowLimit ends the rows of a query where SET ROWCOUNT does.
func (r *reading) cutAtRowLimit() {
	t := r.builder.translator
	switch limit := t.rowLimit(); {
	case !t.isCutting():
	case r.after.filter != nil || r.after.order != nil:
		r.after.limits = append(r.after.limits, rowLimit{count: limit})
	default:
		r.sql = "select * from (" + r.sql + ") as cut limit " + r.builder.parameter(limit, "").sql
	}
}
