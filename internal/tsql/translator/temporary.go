package translator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

var identityType = value.Numeric(value.MaxPrecision, 0)

// A scope is a module that runs, or the batch: its temporary tables and cursors end with it.
type scope struct {
	temporary map[string]string // names of #tables in lower case to those in the database
	variables []*tableObject
	cursors   map[string]*cursor
	identity  value.Value // SCOPE_IDENTITY()
}

func newScope() *scope {
	return &scope{temporary: map[string]string{}, cursors: map[string]*cursor{}, identity: value.Null(identityType)}
}

func (t *Translator) scope() *scope { return t.scopes[len(t.scopes)-1] }

// Enter begins the scope of a module.
func (t *Translator) Enter() { t.scopes = append(t.scopes, newScope()) }

// Leave drops what the module leaves behind.
func (t *Translator) Leave(ctx context.Context) {
	ended := t.scope()
	t.scopes = t.scopes[:len(t.scopes)-1]
	for _, name := range ended.temporary {
		_ = t.run(ctx, "DROP TABLE", "drop table if exists pg_temp."+quote(name))
	}
	for _, v := range ended.variables {
		t.discard(ctx, v)
	}
	if len(ended.temporary) > 0 {
		t.forget()
	}
}

// nameTemporary gives the name in the database of a new #table of this scope. Each has its own: a module may hide one of its caller.
func (t *Translator) nameTemporary(name string) (string, *fault.Error) {
	key := strings.ToLower(name)
	if _, twice := t.scope().temporary[key]; twice {
		return "", fault.New(2714, name)
	}
	t.tables++
	return fmt.Sprintf("%s\u00a0%d", name, t.tables), nil
}

// shownName gives the name of a temporary table without its number.
func shownName(name string) string {
	shown, _, _ := strings.Cut(name, "\u00a0")
	return shown
}

// temporary finds a #table: of this scope, or of those that called it.
func (t *Translator) temporary(ctx context.Context, name ast.Name) (*relation, *fault.Error) {
	key := strings.ToLower(name.Object())
	for _, s := range slices.Backward(t.scopes) {
		known, is := s.temporary[key]
		if !is {
			continue
		}
		r, err := t.lookUp(ctx, "pg_temp", known)
		if err != nil {
			return nil, err
		}
		if r != nil {
			return r, nil
		}
		delete(s.temporary, key) // a rollback undid it
	}
	return nil, fault.New(208, name.Object())
}

// A tableObject is the table of a table variable in one activation.
type tableObject struct {
	name       string // in pg_temp
	shape      *relation
	definition []string // the statements that make it
}

// A keptTable is a table variable whose rows outlive a rollback.
type keptTable struct {
	table *tableObject
	rows  [][]byte
	next  []byte // of its identity
}

// declare makes the objects of table variables. A DECLARE in a loop runs each time and keeps the rows, as in SQL Server.
func (t *Translator) declare(ctx context.Context, node *ast.Declare, s expression.Scope) (interpreter.Statement, *fault.Error) {
	tables, is := s.(interpreter.TableScope)
	if !is {
		return nil, expression.Unsupported("DECLARE of a table")
	}
	for _, v := range node.Variables {
		if v.Table == nil {
			continue
		}
		if _, err := t.shapeOf(ctx, v.Name, v.Table); err != nil {
			return nil, err
		}
	}
	return &declaration{definitionStatement{run: func(ctx context.Context, f *expression.Frame) *fault.Error {
		for _, v := range node.Variables {
			slot, definition, known := tables.Table(v.Name)
			if !known || !f.Variables[slot].IsNull() {
				continue
			}
			if err := t.makeVariable(ctx, f, slot, v.Name, definition); err != nil {
				return err
			}
		}
		return nil
	}}}, nil
}

// A declaration is DECLARE, which a doomed transaction runs.
type declaration struct{ definitionStatement }

// IsWrite says that a doomed transaction runs it.
func (*declaration) IsWrite() bool { return false }

// shapes are found by their definition: the same DECLARE has the same shape each time.
func (t *Translator) shapeOf(ctx context.Context, name string, definition *ast.TableDefinition) (*relation, *fault.Error) {
	shape, _, err := t.tableOf(ctx, &relation{schema: "pg_temp", name: name, sql: quote(name)}, definition, true)
	return shape, err
}

func (t *Translator) makeVariable(
	ctx context.Context, f *expression.Frame, slot int, name string, definition *ast.TableDefinition,
) *fault.Error {
	t.tables++
	object := &tableObject{name: fmt.Sprintf("%s\u00a0%d", name, t.tables)}
	shape, statements, err := t.tableOf(ctx, &relation{
		schema: "pg_temp", name: object.name, sql: "pg_temp." + quote(object.name),
	}, definition, true)
	if err != nil {
		return err
	}
	object.shape, object.definition = shape, statements
	if err := t.run(ctx, "CREATE TABLE", statements...); err != nil {
		return err
	}
	t.variables = append(t.variables, object)
	t.scope().variables = append(t.scope().variables, object)
	f.Variables[slot] = value.NewObject(value.Table, object)
	return nil
}

// discard drops the table of a variable.
func (t *Translator) discard(ctx context.Context, v *tableObject) {
	_ = t.run(ctx, "DROP TABLE", "drop table if exists pg_temp."+quote(v.name))
	for i, known := range t.variables {
		if known == v {
			t.variables = append(t.variables[:i], t.variables[i+1:]...)
			break
		}
	}
}

// variableTable gives the table of a variable in this activation.
func (t *Translator) variableTable(ctx context.Context, f *expression.Frame, slot int) (*tableObject, *fault.Error) {
	object, is := f.Variables[slot].Object().(*tableObject)
	if !is {
		return nil, fault.New(1087, "@")
	}
	_ = ctx
	return object, nil
}

// RollsBack keeps the rows of table variables, which a rollback does not undo.
func (t *Translator) RollsBack(ctx context.Context) {
	t.kept = nil
	for _, v := range t.variables {
		k := keptTable{table: v}
		sql := "select t::text from pg_temp." + quote(v.name) + " as t"
		if err := t.rows(ctx, sql, nil, func(row []string) { k.rows = append(k.rows, []byte(row[0])) }); err != nil {
			continue
		}
		if id := v.shape.identity(); id != nil {
			sql := "select nextval(pg_get_serial_sequence($1::text, $2::text))::text"
			_ = t.rows(ctx, sql, []string{"pg_temp." + quote(v.name), id.name}, func(row []string) { k.next = []byte(row[0]) })
		}
		t.kept = append(t.kept, k)
	}
}

// Moved says that the session is in another database than before.
func (t *Translator) Moved() {
	t.far, t.nextFar = t.nextFar, nil
	t.forget()
	t.isPrepared = false
}

// RolledBack makes table variables anew with their rows. Cursors are closed unless they are static.
func (t *Translator) RolledBack(ctx context.Context, isWhole bool) {
	t.forget()
	t.isPrepared = false
	if isWhole {
		t.closeCursors()
	}
	for _, k := range t.kept {
		name := "pg_temp." + quote(k.table.name)
		_ = t.run(ctx, "DROP TABLE", "drop table if exists "+name)
		if err := t.prepare(ctx); err != nil {
			return
		}
		if err := t.run(ctx, "CREATE TABLE", k.table.definition...); err != nil {
			return
		}
		t.restore(ctx, k)
	}
	t.kept = nil
}

func (t *Translator) restore(ctx context.Context, k keptTable) {
	name := "pg_temp." + quote(k.table.name)
	for _, row := range k.rows {
		_ = t.rows(ctx, "insert into "+name+" overriding system value select ($1::text::"+name+").*", []string{string(row)}, func([]string) {})
	}
	if id := k.table.shape.identity(); id != nil && k.next != nil {
		_ = t.rows(ctx, "select setval(pg_get_serial_sequence($1::text, $2::text), $3::text::bigint, false)",
			[]string{name, id.name, string(k.next)}, func([]string) {})
	}
}
