package translator

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A cursor has the rows that its query gave when it was opened.
type cursor struct {
	name     string
	node     *ast.CursorDefinition
	scope    expression.Scope
	frame    *expression.Frame // of the batch or module that declared it
	isScroll bool
	isStatic bool
	isGlobal bool
	isOpen   bool
	columns  []sourceColumn
	rows     [][]value.Value
	places   []string // ctid of each row, where the cursor can be updated
	table    string   // that it reads, as SQL writes it
	at       int      // of the current row; -1 before the first
}

func (t *Translator) cursorStatement(ctx context.Context, node ast.Statement, s expression.Scope) (interpreter.Statement, *fault.Error) {
	switch node := node.(type) {
	case *ast.DeclareCursor:
		return cursorRun(func(_ context.Context, f *expression.Frame) *fault.Error {
			c := newCursor(node.Name, node.Cursor, s, f)
			c.isScroll = c.isScroll || slices.Contains(node.Before, "SCROLL")
			c.isStatic = c.isStatic || slices.Contains(node.Before, "INSENSITIVE")
			return t.declareCursor(c)
		}), nil
	case *ast.SetVariable:
		return t.setCursor(node, s)
	case *ast.OpenCursor:
		return cursorRun(func(ctx context.Context, f *expression.Frame) *fault.Error {
			c, err := t.findCursor(&node.Cursor, s, f)
			if err != nil {
				return err
			}
			return t.open(ctx, c)
		}), nil
	case *ast.Fetch:
		return t.fetch(ctx, node, s)
	case *ast.CloseCursor:
		return cursorRun(func(_ context.Context, f *expression.Frame) *fault.Error {
			c, err := t.findCursor(&node.Cursor, s, f)
			if err == nil && !c.isOpen {
				err = fault.New(16917)
			}
			if err == nil {
				c.close()
			}
			return err
		}), nil
	case *ast.Deallocate:
		return cursorRun(func(_ context.Context, f *expression.Frame) *fault.Error { return t.deallocate(&node.Cursor, s, f) }), nil
	}
	return nil, fault.New(40510, interpreter.Construct(node))
}

// cursorRun gives a statement of cursors, which a doomed transaction runs.
func cursorRun(run func(ctx context.Context, f *expression.Frame) *fault.Error) interpreter.Statement {
	return &declaration{definitionStatement{run: run}}
}

func newCursor(name string, node *ast.CursorDefinition, s expression.Scope, f *expression.Frame) *cursor {
	has := func(option string) bool { return slices.Contains(node.Options, option) }
	isScroll := has("SCROLL") || has("STATIC") || has("KEYSET") || has("DYNAMIC")
	return &cursor{
		name: name, node: node, scope: s, frame: f, isScroll: isScroll && !has("FORWARD_ONLY"), isStatic: has("STATIC"),
		isGlobal: !has("LOCAL"), at: -1,
	}
}

// declareCursor keeps a cursor under its name. Error 16915 for a name twice.
func (t *Translator) declareCursor(c *cursor) *fault.Error {
	kept := t.cursors
	if !c.isGlobal {
		kept = t.scope().cursors
	}
	key := strings.ToLower(c.name)
	if kept[key] != nil {
		return fault.New(16915, c.name)
	}
	kept[key] = c
	return nil
}

// findCursor finds a cursor: the local one first, unless GLOBAL is written.
func (t *Translator) findCursor(name *ast.CursorName, s expression.Scope, f *expression.Frame) (*cursor, *fault.Error) {
	if name.Variable != "" {
		slot, _, known := s.Variable(name.Variable)
		if !known {
			return nil, fault.New(137, name.Variable)
		}
		c, is := f.Variables[slot].Object().(*cursor)
		if !is {
			return nil, fault.New(16950, name.Variable)
		}
		return c, nil
	}
	key := strings.ToLower(name.Name)
	if c := t.scope().cursors[key]; c != nil && !name.Global {
		return c, nil
	}
	if c := t.cursors[key]; c != nil {
		return c, nil
	}
	return nil, fault.New(16916, name.Name)
}

// setCursor compiles SET @c = CURSOR FOR ..., and SET @c = name of a cursor.
func (t *Translator) setCursor(node *ast.SetVariable, s expression.Scope) (interpreter.Statement, *fault.Error) {
	slot, _, known := s.Variable(node.Variable)
	switch {
	case node.Method != nil:
		return nil, expression.Unsupported("." + node.Method.Method + "()")
	case node.Cursor == nil:
		return nil, fault.New(40510, interpreter.Construct(node))
	case !known:
		return nil, fault.New(137, node.Variable)
	}
	return cursorRun(func(_ context.Context, f *expression.Frame) *fault.Error {
		f.Variables[slot] = value.NewObject(value.Cursor, newCursor(node.Variable, node.Cursor, s, f))
		return nil
	}), nil
}

// open runs the query. The rows are those of this moment, whatever kind the cursor is.
func (t *Translator) open(ctx context.Context, c *cursor) *fault.Error {
	if c.isOpen {
		return fault.New(16905)
	}
	r, err := t.reading(ctx, c.scope, c.node.With, c.node.Query)
	if err != nil {
		return err
	}
	places := t.placed(r, c)
	if c.isStatic || slices.Contains(c.node.Options, "KEYSET") { // others follow their rows
		r.cutAtRowLimit()
	}
	c.rows, c.places = nil, nil
	outer := c.frame.Outside
	c.frame.Outside = ctx
	defer func() { c.frame.Outside = outer }()
	rows, err := r.gather(ctx, c.frame)
	if err != nil {
		return err
	}
	if places {
		for i, row := range rows {
			c.places = append(c.places, row[len(row)-1].Raw())
			rows[i] = row[:len(row)-1]
		}
	}
	c.rows, c.columns, c.isOpen, c.at = rows, r.columns, true, -1
	return nil
}

// placed adds the place of each row to a query over one table, so that WHERE CURRENT OF finds the row again.
func (*Translator) placed(r *reading, c *cursor) bool {
	s := r.source
	if s == nil || c.node.ReadOnly {
		return false
	}
	c.table = s.table.sql
	at := len(r.leaves)
	r.leaves = append(r.leaves, value.Sized(value.VarChar, value.Max))
	r.results = append(r.results, &expression.Expression{
		Type: value.Sized(value.VarChar, value.Max), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) { return f.Row[at], nil },
	})
	list := strings.Join(r.leafSQL, ", ")
	if list == "" {
		list = "1"
	}
	r.sql = strings.Replace(r.sql, "select "+list, "select "+list+", "+placeOf(s.reading), 1)
	return true
}

func (c *cursor) close() { c.isOpen, c.rows, c.places, c.at = false, nil, nil, -1 }

// closeCursors closes what a rollback closes: cursors that are not static.
func (t *Translator) closeCursors() {
	for _, kept := range append([]map[string]*cursor{t.cursors}, scopeCursors(t.scopes)...) {
		for _, c := range kept {
			if !c.isStatic && c.isOpen {
				c.close()
			}
		}
	}
}

// Mark gives what takes the cursors that are open back to where they are now.
func (t *Translator) Mark() (back func()) {
	type place struct {
		cursor *cursor
		at     int
	}
	var places []place
	for _, kept := range append(scopeCursors(t.scopes), t.cursors) {
		for _, c := range kept {
			if c.isOpen {
				places = append(places, place{c, c.at})
			}
		}
	}
	fetched := t.fetched
	return func() {
		t.fetched = fetched
		for _, p := range places {
			p.cursor.at = p.at
		}
	}
}

func scopeCursors(scopes []*scope) (all []map[string]*cursor) {
	for _, s := range scopes {
		all = append(all, s.cursors)
	}
	return all
}

func (t *Translator) deallocate(name *ast.CursorName, s expression.Scope, f *expression.Frame) *fault.Error {
	if _, err := t.findCursor(name, s, f); err != nil {
		return err
	}
	key := strings.ToLower(name.Name)
	switch {
	case name.Variable != "":
		slot, t, _ := s.Variable(name.Variable)
		f.Variables[slot] = value.Null(t)
	case t.scope().cursors[key] != nil && !name.Global:
		delete(t.scope().cursors, key)
	default:
		delete(t.cursors, key)
	}
	return nil
}
