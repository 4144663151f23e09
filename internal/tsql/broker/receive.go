package broker

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A receiver is RECEIVE, compiled: the columns that it asks for, and what becomes of each row.
type receiver struct {
	call     call
	sql      string
	columns  []int         // of messageColumns, in the order of the answer
	row      []value.Value // by the places of messageColumns; the row that is evaluated
	list     []*expression.Expression
	headings []session.Column
	slots    []int       // of the variables that the list assigns to, nil for a result set
	into     *ast.Insert // into the table variable of INTO, nil for others
	group    parameter   // that WHERE names, nil for none
	// plain has the columns of a list that holds nothing else, so that INTO needs no rows here; direct is the statement of that.
	plain  []int
	direct interpreter.Statement
}

// rowScope resolves the columns of RECEIVE; all else is the batch's.
type rowScope struct {
	expression.Scope
	receiver *receiver
}

// External gives a column of the row.
func (s *rowScope) External(node ast.Expression) (*expression.Expression, *fault.Error) {
	reference, is := node.(*ast.ColumnReference)
	if !is {
		return s.Scope.External(node)
	}
	at := columnAt(reference.Name.Object())
	if at < 0 {
		return nil, fault.New(207, reference.Name.Object()).At(node.At().Line, "")
	}
	s.receiver.uses(at)
	return &expression.Expression{Type: messageColumns[at].kind, Evaluate: func(*expression.Frame) (value.Value, *fault.Error) {
		return s.receiver.row[at], nil
	}}, nil
}

// uses asks for a column once.
func (r *receiver) uses(at int) {
	if !slices.Contains(r.columns, at) {
		r.columns = append(r.columns, at)
	}
}

// receive compiles RECEIVE; wait is nil outside of WAITFOR.
func (c *compiler) receive(ctx context.Context, node *ast.Receive, wait *wait) (*statement, *fault.Error) {
	r := &receiver{row: make([]value.Value, len(messageColumns)), call: call{verb: "RECEIVE"}}
	if err := c.receiveList(r, node); err != nil {
		return nil, err
	}
	if node.Into != "" {
		if r.slots != nil {
			return nil, fault.New(8450)
		}
		target := ast.Target{Place: node.Place, Variable: node.Into}
		r.into = &ast.Insert{StatementAt: ast.StatementAt{Place: node.Place}, HasInto: true, Target: target}
	}
	queue, err := c.queue(ctx, node.Queue)
	if err != nil {
		return nil, err
	}
	r.call.queue = node.Queue.String()
	r.call.with("queue", "text", constant(queue))
	if node.Top != nil {
		top, err := c.expression(node.Top.Count, intType)
		if err != nil {
			return nil, err
		}
		r.call.with("top", "integer", top)
	}
	if node.Where != nil {
		if err := c.only(r, node.Where); err != nil {
			return nil, err
		}
	}
	if wait != nil {
		r.call.with("timeout", "integer", wait.slice)
	}
	if r.into != nil && len(r.plain) == len(r.list) {
		if err := c.direct(ctx, r); err != nil {
			return nil, err
		}
	}
	names := make([]string, len(r.columns))
	for i, at := range r.columns {
		names[i] = messageColumns[at].text()
	}
	r.sql = "select " + strings.Join(names, ", ") + " from " + r.call.text()
	s := &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
		return c.fromGroup(ctx, r, frame, sink, wait)
	}}
	s.soon = wait == nil
	if wait != nil {
		return wait.repeat(s), nil
	}
	return s, nil
}

// receiveList compiles the list: either all items assign, or none does.
func (c *compiler) receiveList(r *receiver, node *ast.Receive) *fault.Error {
	scope := &rowScope{Scope: c.scope, receiver: r}
	assigns := 0
	for _, item := range node.Items {
		switch item := item.(type) {
		case *ast.AssignedColumn:
			slot, t, err := c.slot(item.Variable)
			if err != nil {
				return err
			}
			e, err := assigned(item, t, scope)
			if err != nil {
				return err
			}
			r.slots, r.list = append(r.slots, slot), append(r.list, e)
			assigns++
		case *ast.ResultColumn:
			if _, isStar := item.Value.(*ast.Star); isStar {
				r.all()
				continue
			}
			if reference, is := item.Value.(*ast.ColumnReference); is {
				if at := columnAt(reference.Name.Object()); at >= 0 && !messageColumns[at].isOfGo {
					r.plain = append(r.plain, at)
				}
			}
			e, err := expression.Compile(item.Value, scope)
			if err != nil {
				return err
			}
			r.list = append(r.list, e)
			r.headings = append(r.headings, session.Column{Name: heading(item), Type: e.Type})
		}
	}
	if assigns > 0 && len(r.headings) > 0 {
		return fault.New(8447)
	}
	return nil
}

// direct compiles INTO as one statement: the rows go from the queue to the table.
func (c *compiler) direct(ctx context.Context, r *receiver) *fault.Error {
	from := interpreter.RowSource{Fault: func(err error) *fault.Error {
		if _, isBroker := pgdb.ErrorNumber(err); !isBroker {
			return nil
		}
		return r.call.fault(err)
	}}
	var columns []string
	for _, at := range r.plain {
		columns, from.Types = append(columns, messageColumns[at].kept()), append(from.Types, messageColumns[at].kind)
	}
	for _, p := range r.call.parameters {
		from.Parameters = append(from.Parameters, p)
	}
	from.SQL = "select " + strings.Join(columns, ", ") + " from " + r.call.text()
	direct, err := c.translator.InsertFrom(ctx, r.into, c.scope, from)
	r.direct = direct
	return err
}

// assigned compiles what an item assigns. A body becomes text or xml as CAST makes it.
func assigned(item *ast.AssignedColumn, t value.Type, scope expression.Scope) (*expression.Expression, *fault.Error) {
	if operator := strings.TrimSuffix(item.Operator, "="); operator != "" {
		current, err := expression.Compile(&ast.Variable{ExpressionAt: ast.ExpressionAt{Place: item.Place}, Name: item.Variable}, scope)
		if err != nil {
			return nil, err
		}
		operand, err := expression.Compile(item.Value, scope)
		if err != nil {
			return nil, err
		}
		computed, err := expression.Operation(operator, current, operand)
		if err != nil {
			return nil, err
		}
		return computed.As(t)
	}
	return expression.CompileAs(item.Value, t, scope)
}

// all adds the columns of RECEIVE *.
func (r *receiver) all() {
	for at, column := range messageColumns {
		r.uses(at)
		r.list = append(r.list, &expression.Expression{Type: column.kind, Evaluate: func(*expression.Frame) (value.Value, *fault.Error) {
			return r.row[at], nil
		}})
		r.headings = append(r.headings, session.Column{Name: column.name, Type: column.kind})
	}
}

// heading gives the name of a column of the result: its alias, or that of the column itself.
func heading(item *ast.ResultColumn) string {
	if item.HasAlias || item.Alias != "" {
		return item.Alias
	}
	if reference, is := item.Value.(*ast.ColumnReference); is {
		return reference.Name.Object()
	}
	return ""
}

// only compiles WHERE: one of two columns, and a value.
func (c *compiler) only(r *receiver, condition ast.Condition) *fault.Error {
	comparison, is := condition.(*ast.Comparison)
	if !is || comparison.Operator != "=" {
		return expression.Unsupported("WHERE of RECEIVE with anything but conversation_handle = or conversation_group_id =")
	}
	left, right := comparison.Left, comparison.Right
	if _, isColumn := right.(*ast.ColumnReference); isColumn {
		left, right = right, left
	}
	reference, is := left.(*ast.ColumnReference)
	if !is {
		return expression.Unsupported("WHERE of RECEIVE without a column")
	}
	switch name := strings.ToLower(reference.Name.Object()); name {
	case "conversation_handle":
		return c.handle(&r.call, name, right)
	case "conversation_group_id":
		err := c.handle(&r.call, name, right)
		if err == nil {
			r.group = r.call.parameters[len(r.call.parameters)-1]
		}
		return err
	default:
		return expression.Unsupported("WHERE of RECEIVE with " + reference.Name.Object())
	}
}

// received makes the call and hands the rows out. An empty answer is a result where no call follows it.
func (c *compiler) received(
	ctx context.Context, r *receiver, frame *expression.Frame, sink session.Sink, wait *wait,
) (int64, bool, *fault.Error) {
	if r.direct != nil {
		rows, _, err := r.direct.Run(ctx, frame, sink)
		return rows, true, err
	}
	values, err := r.call.values(frame)
	if err != nil {
		return 0, false, err
	}
	out := &output{compiler: c, receiver: r, frame: frame, sink: sink}
	sent := connection.Statement{SQL: r.sql, Parameters: values, Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
		return out.take(row)
	}}
	_, refused := c.translator.connection.Run(ctx, sent)
	switch {
	case out.failed != nil:
		return 0, false, out.failed
	case refused != nil:
		return 0, false, r.call.fault(refused)
	}
	if err := out.finish(ctx, wait); err != nil {
		return 0, false, err
	}
	return int64(len(out.rows)), r.slots == nil, nil
}

// An output is what one call of RECEIVE gives. Rows are shown when all are there: one that fails shows none.
type output struct {
	compiler *compiler
	receiver *receiver
	frame    *expression.Frame
	sink     session.Sink
	rows     [][]value.Value
	failed   *fault.Error
}

// take evaluates the list for a row.
func (o *output) take(row [][]byte) error {
	if o.failed != nil {
		return o.failed
	}
	r := o.receiver
	for i, at := range r.columns {
		r.row[at] = messageColumns[at].decode(o.frame, row[i])
		if messageColumns[at].name == "conversation_group_id" {
			o.compiler.translator.hold(row[i])
		}
	}
	values := make([]value.Value, len(r.list))
	for i, e := range r.list {
		v, err := e.Evaluate(o.frame)
		if err != nil {
			o.failed = err
			return err
		}
		values[i] = v
	}
	o.rows = append(o.rows, values)
	return nil
}

// finish hands the rows to the variables, of which the last row's values stay, to the table, or to the sink.
func (o *output) finish(ctx context.Context, wait *wait) *fault.Error {
	r := o.receiver
	switch {
	case r.slots != nil:
		for _, row := range o.rows {
			for i, slot := range r.slots {
				o.frame.Variables[slot] = row[i]
			}
		}
		return nil
	case r.into != nil:
		if len(o.rows) == 0 {
			return nil
		}
		_, err := o.compiler.translator.Insert(ctx, r.into, o.compiler.scope, o.frame, o.rows)
		return err
	case len(o.rows) == 0 && wait != nil && !wait.isLast():
		return nil
	}
	if err := o.sink.Columns(r.headings); err != nil {
		return lost(err)
	}
	for _, row := range o.rows {
		if err := o.sink.Row(row); err != nil {
			return lost(err)
		}
	}
	return nil
}
