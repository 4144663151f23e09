package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A reading is a query that is ready to run: its rows become values of T-SQL.
type reading struct {
	builder   *builder
	sql       string
	columns   []sourceColumn
	leaves    []value.Type
	results   []*expression.Expression
	slots     []int
	documents *ast.For // FOR XML or FOR JSON, of a query in Go
	shape     *documentShape
	leafSQL   []string
	after     afterwards
	source    *source // the one table that the rows come from, or nil
}

// reading translates a query whose rows come to Go.
func (t *Translator) reading(ctx context.Context, scope expression.Scope, with *ast.With, q *ast.Query) (*reading, *fault.Error) {
	b := t.builder(ctx, scope)
	prefix, done, err := b.with(with)
	defer done()
	if err != nil {
		return nil, err
	}
	r, err := b.readingOf(q)
	if err != nil {
		return nil, err
	}
	r.sql = prefix + r.sql
	return r, nil
}

// readingOf translates a query in the names that are in sight.
func (b *builder) readingOf(q *ast.Query) (*reading, *fault.Error) {
	r := &reading{builder: b}
	if q.For != nil && q.For.Kind != "BROWSE" {
		r.documents = q.For
	}
	if body, is := q.Body.(*ast.Specification); is {
		s, err := b.specification(body, q, shownTo)
		if err != nil {
			return nil, err
		}
		r.sql, r.columns, r.results, r.slots = s.sql, s.columns, s.results, s.slots
		r.source, r.after = s.source, s.after
		for _, e := range s.leaves {
			r.leaves, r.leafSQL = append(r.leaves, e.typ), append(r.leafSQL, e.sql)
		}
		if len(s.leaves) == 0 {
			r.leaves = []value.Type{value.Of(value.Int)}
		}
		if r.documents != nil {
			r.shape, err = b.documentShape(q.For, body, r.columns)
		}
		return r, err
	}
	plainQuery := *q
	plainQuery.For = nil
	sql, columns, err := b.query(&plainQuery, shownTo)
	if err != nil {
		return nil, err
	}
	r.sql, r.columns = sql, columns
	for n, c := range columns {
		r.leaves = append(r.leaves, c.typ)
		r.results = append(r.results, &expression.Expression{
			Type: c.typ, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) { return f.Row[n], nil },
		})
	}
	if r.documents != nil {
		r.shape, err = b.documentShape(q.For, nil, r.columns)
	}
	return r, err
}

// each runs the query and gives its results row by row. A result of Go that fails ends it.
func (r *reading) each(ctx context.Context, f *expression.Frame, take func(row []value.Value) *fault.Error) (int64, *fault.Error) {
	rows := int64(0)
	outer := f.Row
	defer func() { f.Row = outer }()
	one := func(row []value.Value) *fault.Error {
		f.Row = row
		rows++
		results := make([]value.Value, len(r.results))
		for i, e := range r.results {
			v, err := e.Evaluate(f)
			if err != nil {
				return err
			}
			results[i] = v
			if r.slots != nil {
				f.Variables[r.slots[i]] = v
			}
		}
		if take == nil {
			return nil
		}
		return take(results)
	}
	var kept [][]value.Value
	_, err := r.builder.executeWatched(ctx, r.sql, f, func(cells [][]byte) *fault.Error {
		row, err := decodeRow(r.leaves, cells)
		if err != nil {
			return err
		}
		if r.keepsRows() { // the connection is free when all rows are here
			kept = append(kept, row)
			return nil
		}
		f.Row = row
		if isChosen, err := r.after.chosen(f); err != nil || !isChosen {
			return err
		}
		return one(row)
	})
	if err == nil && kept != nil {
		kept, err = r.after.apply(f, kept)
	}
	for _, row := range kept {
		if err != nil {
			break
		}
		err = one(row)
	}
	return rows, err
}

func decodeRow(types []value.Type, cells [][]byte) ([]value.Value, *fault.Error) {
	row := make([]value.Value, len(types))
	for i, t := range types {
		v, err := decode(t, cells[i])
		if err != nil {
			return nil, &fault.Error{Number: 50000, Severity: 16, State: 1, Message: err.Error()}
		}
		row[i] = v
	}
	return row, nil
}

// gather runs the query and keeps its rows.
func (r *reading) gather(ctx context.Context, f *expression.Frame) ([][]value.Value, *fault.Error) {
	var rows [][]value.Value
	_, err := r.each(ctx, f, func(row []value.Value) *fault.Error {
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// selectStatement is SELECT: it gives a result set or assigns to variables.
type selectStatement struct{ *reading }

// IsWrite says that a doomed transaction runs it.
func (*selectStatement) IsWrite() bool { return false }

// Run gives the rows to the client, or the values of the last row to the variables.
func (s *selectStatement) Run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	if s.slots != nil {
		rows, err := s.each(ctx, f, nil)
		return rows, false, err
	}
	if s.documents != nil {
		return s.document(ctx, f, sink)
	}
	columns := make([]session.Column, len(s.columns))
	for i, c := range s.columns {
		columns[i] = session.Column{Name: c.name, Type: c.typ}
	}
	if err := sink.Columns(columns); err != nil {
		return 0, false, lost(err)
	}
	rows, err := s.each(ctx, f, func(row []value.Value) *fault.Error { return lost(sink.Row(row)) })
	if err != nil {
		return 0, false, err
	}
	return rows, true, nil
}

// lost gives the error of a client that is gone, which ends the session.
func lost(err error) *fault.Error {
	if err == nil {
		return nil
	}
	return &fault.Error{Number: 10054, Severity: 20, State: 1, Message: err.Error()}
}

func (t *Translator) selects(ctx context.Context, node *ast.Select, scope expression.Scope) (*selectStatement, *fault.Error) {
	r, err := t.reading(ctx, scope, node.With, node.Query)
	if err != nil {
		return nil, err
	}
	r.cutAtRowLimit()
	return &selectStatement{r}, nil
}

// Expression compiles an expression of a statement without tables that has a part with tables, such as SET @n = (SELECT ...).
func (t *Translator) Expression(ctx context.Context, node ast.Expression, scope expression.Scope) (*expression.Expression, *fault.Error) {
	if column, is := node.(*ast.ColumnReference); is {
		if len(column.Name.Parts) > 1 {
			return nil, fault.New(4104, column.Name.String()).At(node.At().Line, "")
		}
		return nil, fault.New(207, column.Name.Object()).At(node.At().Line, "")
	}
	if q, is := node.(*ast.Subquery); is && q.Query.For != nil {
		return t.documentOf(ctx, scope, q.Query)
	}
	b := t.builder(ctx, scope)
	b.names = &names{}
	if call, is := node.(*ast.Call); is && len(call.Name.Parts) > 1 {
		return b.called(call, scope)
	}
	e, err := b.expression(node)
	if err != nil {
		return nil, err.At(node.At().Line, "")
	}
	return b.single(e), nil
}

// single gives an expression of the database as one of Go: it asks the database when it is evaluated.
func (b *builder) single(e sqlExpression) *expression.Expression {
	t := shown(e.typ)
	return &expression.Expression{Type: t, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		ctx, _ := f.Outside.(context.Context)
		result := value.Null(t)
		_, err := b.executeWatched(ctx, "select "+e.sql, f, func(cells [][]byte) *fault.Error {
			row, err := decodeRow([]value.Type{t}, cells)
			if err == nil {
				result = row[0]
			}
			return err
		})
		return result, err
	}}
}

// Condition compiles a condition of a statement without tables that has a part with tables, such as IF EXISTS (SELECT ...).
func (t *Translator) Condition(ctx context.Context, node ast.Condition, scope expression.Scope) (*expression.Condition, *fault.Error) {
	if updated, is := node.(*ast.UpdatedColumn); is {
		return t.updated(updated.Column), nil
	}
	b := t.builder(ctx, scope)
	b.names = &names{}
	sql, err := b.condition(node)
	if err != nil {
		return nil, err
	}
	e := b.single(sqlExpression{sql: sql, typ: value.Of(value.Bit)})
	return isTrue(e), nil
}
