package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A fetching is FETCH: it gives a row to variables or to the client.
type fetching struct {
	translator *Translator
	node       *ast.Fetch
	scope      expression.Scope
	count      *expression.Expression
	slots      []int
	types      []value.Type
}

// The values of @@FETCH_STATUS.
const (
	fetchedRow = 0
	noRow      = -1
)

func (t *Translator) fetch(_ context.Context, node *ast.Fetch, s expression.Scope) (interpreter.Statement, *fault.Error) {
	f := &fetching{translator: t, node: node, scope: s}
	for _, name := range node.Into {
		slot, typ, known := s.Variable(name)
		if !known {
			return nil, fault.New(137, name)
		}
		f.slots, f.types = append(f.slots, slot), append(f.types, typ)
	}
	if node.Count != nil {
		count, err := expression.CompileAs(node.Count, value.Of(value.Int), s)
		if err != nil {
			return nil, err
		}
		f.count = count
	}
	return f, nil
}

// IsWrite says that a doomed transaction runs it.
func (*fetching) IsWrite() bool { return false }

// IsLocal says that it asks no database.
func (g *fetching) IsLocal() bool { return g.slots != nil && g.count == nil }

// Run moves the cursor. Variables keep their values where there is no row.
func (g *fetching) Run(_ context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	t := g.translator
	c, err := t.findCursor(&g.node.Cursor, g.scope, f)
	if err != nil {
		return 0, false, err
	}
	if !c.isOpen {
		return 0, false, fault.New(16917)
	}
	isNext := g.node.Direction == "" || g.node.Direction == "NEXT"
	if !isNext && !c.isScroll {
		return 0, false, fault.New(16911, g.node.Direction)
	}
	if len(c.rows) > 0 && g.slots != nil && len(g.slots) != len(c.rows[0]) {
		return 0, false, fault.New(16924)
	}
	if err := g.move(c, f); err != nil {
		return 0, false, err
	}
	if c.at < 0 || c.at >= len(c.rows) {
		t.fetched = noRow
		return 0, false, nil
	}
	t.fetched = fetchedRow
	row := c.rows[c.at]
	if g.slots == nil {
		return g.show(c, row, sink)
	}
	for i, v := range row {
		assigned, err := f.Context.Settings.Assign(v, g.types[i])
		if err != nil {
			return 0, false, err
		}
		f.Variables[g.slots[i]] = assigned
	}
	return 1, false, nil
}

func (g *fetching) move(c *cursor, f *expression.Frame) *fault.Error {
	count := 0
	if g.count != nil {
		v, err := g.count.Evaluate(f)
		if err != nil {
			return err
		}
		count = int(v.Int64())
	}
	switch g.node.Direction {
	case "FIRST":
		c.at = 0
	case "LAST":
		c.at = len(c.rows) - 1
	case "PRIOR":
		c.at--
	case "ABSOLUTE":
		c.at = count - 1
		if count < 0 {
			c.at = len(c.rows) + count
		}
	case "RELATIVE":
		c.at += count
	default:
		c.at++
	}
	c.at = max(min(c.at, len(c.rows)), -1)
	return nil
}

func (g *fetching) show(c *cursor, row []value.Value, sink session.Sink) (int64, bool, *fault.Error) {
	columns := make([]session.Column, len(row))
	for i, v := range row {
		columns[i] = session.Column{Name: c.columns[i].name, Type: v.Type()}
	}
	if err := sink.Columns(columns); err != nil {
		return 0, false, lost(err)
	}
	return 1, true, lost(sink.Row(row))
}

// current gives the place of the row under a cursor. Error 16931 where there is none.
func (t *Translator) current(node *ast.CurrentOf, g *targeting, f *expression.Frame) (string, *fault.Error) {
	c, err := t.findCursor(&node.Cursor, g.scope, f)
	switch {
	case err != nil:
		return "", err
	case !c.isOpen:
		return "", fault.New(16917)
	case c.places == nil || c.at < 0 || c.at >= len(c.places):
		return "", fault.New(16931)
	}
	return c.places[c.at], nil
}

// placeOf writes the place of a row and the transaction that put it there: another row may get the place later.
func placeOf(reading string) string {
	return "(" + reading + ".ctid::text || " + reading + ".xmin::text)"
}

// isCurrentRow writes the condition that a row is the one under a cursor, as the cursor read it.
func (t *Translator) isCurrentRow(node *ast.CurrentOf, g *targeting, reading string) string {
	place := g.parameter(textOfGo(func(f *expression.Frame) (value.Value, *fault.Error) {
		place, err := t.current(node, g, f)
		return value.NewNVarChar(place), err
	}), "").sql
	return reading + ".ctid = substring(" + plain(place) + " from '^.*\\)')::tid and " + placeOf(reading) + " = " + plain(place)
}

// updateCurrent changes the row under a cursor.
func (t *Translator) updateCurrent(
	c *change, g *targeting, node *ast.CurrentOf, assignments []assignment,
) (interpreter.Statement, *fault.Error) {
	reading := g.source.reading
	c.needsRow = true
	at := c.returning(sqlExpression{sql: "(" + placeOf(reading) + "::bpchar)", typ: value.Sized(value.VarChar, value.Max)})
	// The row has a new place, which the cursor must know.
	c.slots = append(c.slots, -1)
	c.assigned = append(c.assigned, &expression.Expression{Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		if k, err := t.findCursor(&node.Cursor, g.scope, f); err == nil && k.at >= 0 && k.at < len(k.places) {
			k.places[k.at] = f.Row[at].Raw()
		}
		return value.Value{}, nil
	}})
	c.write("", "update "+g.into+" as "+reading+" set "+settings(assignments)+" where "+t.isCurrentRow(node, g, reading))
	return c, nil
}

// deleteCurrent deletes the row under a cursor.
func (t *Translator) deleteCurrent(c *change, g *targeting, node *ast.CurrentOf, reading string) (interpreter.Statement, *fault.Error) {
	c.needsRow = true
	c.write("", "delete from "+g.into+" as "+reading+" where "+t.isCurrentRow(node, g, reading))
	return c, nil
}

// Function gives what the Translator knows of the session.
func (t *Translator) Function(name string) (*function.Function, bool) {
	read := map[string]func() value.Value{
		"@@FETCH_STATUS":    func() value.Value { return value.NewInt(int(t.fetched)) },
		"@@IDENTITY":        func() value.Value { return t.lastID },
		"SCOPE_IDENTITY":    func() value.Value { return t.scope().identity },
		"@@CURSOR_ROWS":     func() value.Value { return value.NewInt(t.openRows()) },
		"COLUMNS_UPDATED":   t.columnsUpdated,
		"TRIGGER_NESTLEVEL": func() value.Value { return value.NewInt(t.depth) },
	}[name]
	switch {
	case name == "CURSOR_STATUS":
		return t.cursorStatus(), true
	case read == nil:
		return t.catalogFunction(name)
	}
	result := read().Type()
	return &function.Function{
		Name: name, IsVolatile: true, Result: func([]function.Argument) (value.Type, *fault.Error) { return result, nil },
		Call: func(*function.Context, value.Type, []value.Value) (value.Value, *fault.Error) { return read(), nil },
	}, true
}

// The values of CURSOR_STATUS. Page: functions/cursor-status-transact-sql.
const (
	cursorHasRows = 1
	cursorIsEmpty = 0
	cursorIsShut  = -1
	noSuchCursor  = -3
)

// cursorStatus is CURSOR_STATUS('local' or 'global', name).
func (t *Translator) cursorStatus() *function.Function {
	result := value.Of(value.SmallInt)
	return &function.Function{
		Name: "CURSOR_STATUS", Parameters: "tt", IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return result, nil },
		Call: func(_ *function.Context, _ value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			kept := t.cursors
			switch strings.ToLower(strings.TrimRight(arguments[0].Raw(), " ")) {
			case "local":
				kept = t.scope().cursors
			case "global":
			default:
				return value.Value{}, expression.Unsupported("CURSOR_STATUS of a variable")
			}
			status := noSuchCursor
			if c := kept[strings.ToLower(arguments[1].Raw())]; c != nil {
				switch {
				case !c.isOpen:
					status = cursorIsShut
				case len(c.rows) == 0:
					status = cursorIsEmpty
				default:
					status = cursorHasRows
				}
			}
			return value.Integer(value.SmallInt, int64(status)), nil
		},
	}
}

// openRows counts the rows of the cursor that is open, the last of them.
func (t *Translator) openRows() int {
	for _, kept := range append(scopeCursors(t.scopes), t.cursors) {
		for _, c := range kept {
			if c.isOpen {
				return len(c.rows)
			}
		}
	}
	return 0
}
