package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// plainSelect recognizes a SELECT without tables: values, or assignments, perhaps with a condition.
func plainSelect(node *ast.Select) (items []ast.SelectItem, where ast.Condition, isPlain bool) {
	if node.With != nil || node.Query == nil || node.Query.OrderBy != nil || node.Query.Offset != nil || node.Query.For != nil {
		return nil, nil, false
	}
	s, is := node.Query.Body.(*ast.Specification)
	if !is || s.From != nil || s.Into != nil || s.Top != nil || s.GroupBy != nil || s.Having != nil {
		return nil, nil, false
	}
	for _, item := range s.Items {
		if column, isColumn := item.(*ast.ResultColumn); isColumn {
			if _, isStar := column.Value.(*ast.Star); isStar || isAggregate(column.Value) {
				return nil, nil, false
			}
		}
	}
	return s.Items, s.Where, true
}

// aggregates are functions of rows; a SELECT with one is the Translator's even without FROM.
var aggregates = map[string]bool{
	"COUNT": true, "COUNT_BIG": true, "SUM": true, "MIN": true, "MAX": true, "AVG": true, "STRING_AGG": true, "STDEV": true,
	"STDEVP": true, "VAR": true, "VARP": true, "CHECKSUM_AGG": true,
}

func isAggregate(e ast.Expression) bool {
	found := false
	ast.Walk(e, func(node ast.Node) bool {
		if call, isCall := node.(*ast.Call); isCall && len(call.Name.Parts) == 1 && aggregates[upper(call.Name.Object())] {
			found = true
		}
		_, isQuery := node.(*ast.Query)
		return !isQuery
	})
	return found
}

// selectValues compiles a SELECT without tables: either all items assign, or none does.
func (c *compiler) selectValues(node *ast.Select, items []ast.SelectItem, where ast.Condition) *fault.Error {
	nodes := []ast.Node{where}
	for _, item := range items {
		nodes = append(nodes, item)
	}
	return c.whenReached(node, func(c *compiler) *fault.Error { return c.selectNow(node, items, where) }, nodes...)
}

func (c *compiler) selectNow(node *ast.Select, items []ast.SelectItem, where ast.Condition) *fault.Error {
	condition := &expression.Condition{Evaluate: func(*expression.Frame) (expression.Truth, *fault.Error) { return expression.True, nil }}
	if where != nil {
		compiled, err := expression.CompileCondition(where, c)
		if err != nil {
			return err
		}
		condition = compiled
	}
	var slots []int
	var values []*expression.Expression
	var columns []session.Column
	for _, item := range items {
		switch item := item.(type) {
		case *ast.AssignedColumn:
			slot, e, err := c.assignment(item.Variable, item.Operator, item.Value)
			if err != nil {
				return err.At(item.Line, "")
			}
			slots, values = append(slots, slot), append(values, e)
		case *ast.ResultColumn:
			e, err := expression.Compile(item.Value, c)
			if err != nil {
				return err
			}
			values, columns = append(values, e), append(columns, session.Column{Name: item.Alias, Type: shownType(e.Type)})
		}
	}
	if slots != nil && columns != nil {
		return fault.New(141)
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		frame := a.frameOf(ctx)
		truth, err := condition.Evaluate(frame)
		if err != nil {
			return err
		}
		if slots != nil {
			return a.session.assigned(frame, truth == expression.True, slots, values)
		}
		return a.session.selected(frame, truth == expression.True, columns, values)
	})
	if slots != nil {
		nodes := []ast.Node{where}
		for _, item := range items {
			nodes = append(nodes, item)
		}
		c.quiet(nodes...)
	}
	return nil
}

// shownType gives a column of the constant NULL the type int, as SQL Server does.
func shownType(t value.Type) value.Type {
	if t.Kind == value.Unknown {
		return value.Of(value.Int)
	}
	return t
}

// assigned assigns one after another, so that a later item sees an earlier one. Without a row nothing changes.
func (s *Session) assigned(frame *expression.Frame, hasRow bool, slots []int, values []*expression.Expression) *fault.Error {
	if !hasRow {
		s.succeeded(0)
		return nil
	}
	for i, e := range values {
		v, err := e.Evaluate(frame)
		if err != nil {
			return err
		}
		frame.Variables[slots[i]] = v
	}
	s.succeeded(1)
	return nil
}

// selected gives a result set of one row, or of none.
func (s *Session) selected(frame *expression.Frame, hasRow bool, columns []session.Column, values []*expression.Expression) *fault.Error {
	var row []value.Value
	rows := int64(0)
	if hasRow {
		rows = 1
		for _, e := range values {
			v, err := e.Evaluate(frame)
			if err != nil {
				return s.failedRow(columns, err)
			}
			row = append(row, v)
		}
	}
	if err := s.begun(columns); err != nil {
		return err
	}
	if hasRow {
		if err := s.sink.Row(row); err != nil {
			return s.stop(err)
		}
	}
	s.succeeded(rows)
	if err := s.sink.Done(session.Done{HasRows: true, HasCount: !s.options.noCount, Count: rows}); err != nil {
		return s.stop(err)
	}
	return nil
}

// failedRow gives the result set that a failed row leaves behind: its headings, and a count of 0 where a TRY takes the error.
func (s *Session) failedRow(columns []session.Column, err *fault.Error) *fault.Error {
	if lost := s.begun(columns); lost != nil {
		return lost
	}
	if s.current.isProtected() {
		if lost := s.sink.Done(session.Done{HasRows: true, HasCount: !s.options.noCount}); lost != nil {
			return s.stop(lost)
		}
	}
	return err
}

// begun begins a result set.
func (s *Session) begun(columns []session.Column) *fault.Error {
	if err := s.sink.Columns(columns); err != nil {
		return s.stop(err)
	}
	return nil
}

// done ends a statement of the Translator.
func (s *Session) done(counts bool, rows int64, hasRows bool) *fault.Error {
	if err := s.sink.Done(session.Done{HasRows: hasRows, HasCount: counts && !s.options.noCount, Count: rows}); err != nil {
		return s.stop(err)
	}
	return nil
}

// A resultSink notes whether a statement of the Translator gives a result set.
type resultSink struct {
	session.Sink
	hasRows bool
}

// Columns begins a result set.
func (r *resultSink) Columns(columns []session.Column) error {
	r.hasRows = true
	return r.Sink.Columns(columns)
}
