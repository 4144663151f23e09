package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// onlyTable gives the one table that the rows come from; nil where there are others.
func (b *builder) onlyTable() *source {
	if len(b.names.sources) == 1 && b.names.sources[0].table != nil && b.names.sources[0].table.kind == 'r' {
		return b.names.sources[0]
	}
	return nil
}

// keyOrder gives the rows in the order of the primary key of the first table, as a scan of SQL Server's clustered index does. A table
// without one gives them as they came, which its IDENTITY tells: changed rows stand elsewhere in PostgreSQL, but not in a heap of SQL
// Server. Where only some rows are asked for, that is done for temporary tables alone, because it reads all.
func (b *builder) keyOrder(isCut bool) string {
	if len(b.names.sources) == 0 {
		return ""
	}
	s := b.names.sources[0]
	if s.table == nil {
		return ""
	}
	names := s.table.key
	if id := s.table.identity(); len(names) == 0 && id != nil && (!isCut || strings.HasPrefix(s.table.schema, "pg_temp")) {
		names = []string{id.name}
	}
	if len(names) == 0 {
		return ""
	}
	var parts []string
	for _, name := range names {
		for _, c := range s.columns {
			if c.name == name {
				parts = append(parts, ordered(sqlExpression{sql: c.sql, typ: c.typ}, ""))
			}
		}
	}
	return " order by " + strings.Join(parts, ", ")
}

// ownOrder gives the order of rows that ORDER BY does not order: that of the key, and for groups and DISTINCT that of a sort by which SQL
// Server finds them.
func (b *builder) ownOrder(node *ast.Specification, isPlain bool, columns int) (string, *fault.Error) {
	switch {
	case isPlain && (node.Top == nil || len(b.names.sources) == 1):
		return b.keyOrder(node.Top != nil), nil
	case node.Quantifier == "DISTINCT":
		return orderOfColumns(columns), nil
	case node.GroupBy == nil:
		return "", nil
	}
	items, isRollup := node.GroupBy.Items, node.GroupBy.With == "ROLLUP"
	if len(items) == 1 && items[0].Kind == "ROLLUP" {
		items, isRollup = items[0].Items, true
	}
	if !groupsColumns(&ast.GroupBy{Items: items}) || !isRollup && node.GroupBy.With != "" {
		return "", nil
	}
	var parts []string
	for _, item := range items {
		e, err := b.expression(item.Value)
		if err != nil {
			return "", err
		}
		if isRollup { // a sum stands behind what it sums up
			parts = append(parts, "grouping("+e.sql+")")
		}
		parts = append(parts, ordered(e, ""))
	}
	return " order by " + strings.Join(parts, ", "), nil
}

// orderOfColumns orders rows by all their columns.
func orderOfColumns(columns int) string {
	parts := make([]string, columns)
	for i := range parts {
		parts[i] = itoa(i+1) + " nulls first"
	}
	if columns == 0 {
		return ""
	}
	return " order by " + strings.Join(parts, ", ")
}

// lockOf gives the lock that hints ask for: UPDLOCK and XLOCK lock the rows, READPAST leaves out those that others hold.
func lockOf(sources []ast.TableSource) string {
	if len(sources) != 1 {
		return ""
	}
	table, is := sources[0].(*ast.TableName)
	if !is {
		return ""
	}
	return lockHints(table.Hints)
}

func lockHints(hints []*ast.TableHint) string {
	locks, skips := false, ""
	for _, h := range hints {
		switch h.Name {
		case "UPDLOCK", "XLOCK":
			locks = true
		case "READPAST":
			skips = " skip locked"
		}
	}
	if !locks && skips == "" {
		return ""
	}
	return " for update" + skips
}
