package translator

import (
	"context"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// An aggregate leaves NULL out, and SQL Server says so once for a statement by warning 8153. The value of an aggregate that may be NULL
// notes the moment of the statement in a setting, where it is NULL; a column behind the results asks whether the setting has that moment.
const (
	notesNull    = "nullif(set_config('parley.tsql_nulls', statement_timestamp()::text, false), statement_timestamp()::text)"
	nullsDropped = "(coalesce(current_setting('parley.tsql_nulls', true), '') = statement_timestamp()::text)"
)

// watched writes the value of an aggregate so that the statement knows of a NULL in it. Definitions that the database keeps are not
// watched.
func (b *builder) watched(node *ast.Call, name string, e sqlExpression) sqlExpression {
	if b.isDefinition || b.isQuiet || !b.mayBeNull(node.Arguments[0]) || (name == "MIN" || name == "MAX") && b.hasIndex(node.Arguments[0]) {
		return e
	}
	b.dropsNulls = true
	e.sql = "coalesce(" + e.sql + ", " + notesNull + "::" + databaseType(e.typ) + ")"
	return e
}

// mayBeNull reports whether an expression may be NULL: columns that may not and constants are not, nor is ISNULL with such a second part.
func (b *builder) mayBeNull(node ast.Expression) bool {
	switch node := node.(type) {
	case *ast.Literal:
		return node.Kind == ast.Null
	case *ast.ColumnReference:
		c := b.plainColumn(node)
		return c == nil || c.isNullable
	case *ast.Call:
		name := strings.ToUpper(node.Name.Object())
		if len(node.Name.Parts) == 1 && (name == "ISNULL" || name == "COALESCE") && len(node.Arguments) > 0 {
			return b.mayBeNull(node.Arguments[len(node.Arguments)-1])
		}
	case *ast.Arithmetic:
		return b.mayBeNull(node.Left) || b.mayBeNull(node.Right)
	}
	return true
}

// plainColumn finds the column of a query over one table; nil in any other query, where an outer join may add rows.
func (b *builder) plainColumn(node *ast.ColumnReference) *column {
	if b.names == nil || len(b.names.sources) != 1 || b.names.sources[0].table == nil {
		return nil
	}
	return b.names.sources[0].table.find(node.Name.Object())
}

// hasIndex reports whether an index begins with a column: the least and the greatest value are found there, past all that is NULL.
func (b *builder) hasIndex(node ast.Expression) bool {
	reference, is := node.(*ast.ColumnReference)
	if !is {
		return false
	}
	c := b.plainColumn(reference)
	if c == nil || c.table == nil || c.table.oid == 0 {
		return false
	}
	found := false
	err := b.translator.rows(b.ctx, "select 1 from pg_catalog.pg_index as i where i.indrelid = $1::text::oid"+
		" and i.indkey[0] = $2::text::smallint limit 1",
		[]string{strconv.FormatUint(uint64(c.table.oid), 10), strconv.Itoa(c.number)}, func([]string) { found = true })
	return err == nil && found
}

// executeWatched is execute for a query: it takes the column that tells of a NULL from its rows, and warns.
func (b *builder) executeWatched(ctx context.Context, sql string, f *expression.Frame, row func([][]byte) *fault.Error,
) (int64, *fault.Error) {
	if !b.dropsNulls || !f.Context.Settings.ANSIWarnings {
		return b.execute(ctx, sql, "SELECT", nil, f, row)
	}
	hasDropped := false
	n, err := b.execute(ctx, "select q.*, "+nullsDropped+" from ("+sql+") as q", "SELECT", nil, f, func(cells [][]byte) *fault.Error {
		last := len(cells) - 1
		hasDropped = hasDropped || string(cells[last]) == "t"
		return row(cells[:last])
	})
	if err == nil && hasDropped {
		warn(f)
	}
	return n, err
}

// warn gives warning 8153.
func warn(f *expression.Frame) {
	if f.Warn != nil && f.Context.Settings.ANSIWarnings {
		f.Warn(fault.New(8153))
	}
}
