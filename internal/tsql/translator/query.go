package translator

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A listing says what becomes of the list of results of a query.
type listing int

const (
	computed listing = iota // PostgreSQL computes each result
	existing                // only whether there is a row counts
	shownTo                 // rows go to Go, which computes the results of leaves
)

// derived translates a query whose rows PostgreSQL needs.
func (b *builder) derived(q *ast.Query) (string, []sourceColumn, *fault.Error) {
	return b.query(q, computed)
}

// query translates a query. Its columns have the names and types of its results.
func (b *builder) query(q *ast.Query, list listing) (string, []sourceColumn, *fault.Error) {
	if q.For != nil && list == computed {
		return "", nil, expression.Unsupported("FOR " + q.For.Kind + " in the database")
	}
	switch body := q.Body.(type) {
	case *ast.Specification:
		s, err := b.specification(body, q, list)
		if err != nil {
			return "", nil, err
		}
		return s.sql, s.columns, nil
	case *ast.QueryGroup:
		sql, columns, err := b.query(body.Query, computed)
		if err != nil {
			return "", nil, err
		}
		order, err := b.orderByColumns(q, columns)
		return "(" + sql + ")" + order, columns, err
	case *ast.SetOperation:
		sql, columns, err := b.setOperation(body)
		if err != nil {
			return "", nil, err
		}
		order, err := b.orderByColumns(q, columns)
		if order == "" && list == shownTo && !strings.HasSuffix(body.Operator, "ALL") {
			order = orderOfColumns(len(columns))
		}
		return sql + order, columns, err
	}
	return "", nil, expression.Unsupported("a query of this form")
}

func (b *builder) setOperation(node *ast.SetOperation) (string, []sourceColumn, *fault.Error) {
	recursive := b.recursive
	b.recursive = nil
	var texts [2]string
	var sides [2][]sourceColumn
	for i, body := range []ast.QueryBody{node.Left, node.Right} {
		if _, is := body.(*ast.Specification); is && i == 1 {
			b.recursive = recursive
		}
		sql, columns, err := b.query(&ast.Query{Place: node.Place, Body: body}, computed)
		if err != nil {
			return "", nil, err
		}
		texts[i], sides[i] = sql, columns
	}
	if len(sides[0]) != len(sides[1]) {
		return "", nil, fault.New(205)
	}
	columns := make([]sourceColumn, len(sides[0]))
	for i := range columns {
		t, err := value.Higher(sides[0][i].typ, sides[1][i].typ)
		if err != nil {
			return "", nil, err
		}
		columns[i] = sourceColumn{name: sides[0][i].name, typ: shown(t)}
	}
	level := ""
	if recursive != nil && recursive.reading != "" {
		level = levelColumn
		texts[0] = "select l.*, 0 from (" + texts[0] + ") as l"
	}
	for i := range texts {
		sql, err := b.retyped(texts[i], sides[i], columns, level)
		if err != nil {
			return "", nil, err
		}
		texts[i] = sql
	}
	return "(" + texts[0] + ") " + strings.ToLower(node.Operator) + " (" + texts[1] + ")", columns, nil
}

// retyped converts the columns of a query where their types differ.
func (b *builder) retyped(sql string, from, to []sourceColumn, level string) (string, *fault.Error) {
	name := b.alias("u")
	var written, results []string
	differs := false
	for i := range from {
		column := fmt.Sprintf("c%d", i+1)
		written = append(written, column)
		e, err := b.convert(sqlExpression{sql: name + "." + column, typ: from[i].typ}, to[i].typ, implicit)
		if err != nil {
			return "", err
		}
		differs = differs || databaseType(from[i].typ) != databaseType(to[i].typ)
		results = append(results, e.sql)
	}
	if !differs {
		return sql, nil
	}
	if level != "" {
		written, results = append(written, level), append(results, name+"."+level)
	}
	return "select " + strings.Join(results, ", ") + " from (" + sql + ") as " + name + " (" + strings.Join(written, ", ") + ")", nil
}

// orderByColumns orders the rows of a set operation: by names of its columns or their numbers.
func (b *builder) orderByColumns(q *ast.Query, columns []sourceColumn) (string, *fault.Error) {
	var parts []string
	for _, item := range q.OrderBy {
		at := -1
		switch node := item.Value.(type) {
		case *ast.Literal:
			at = ordinal(node, len(columns))
		case *ast.ColumnReference:
			for i, c := range columns {
				if strings.EqualFold(c.name, node.Name.Object()) {
					at = i
				}
			}
			if at < 0 {
				return "", fault.New(207, node.Name.Object())
			}
		}
		if at < 0 {
			return "", fault.New(104)
		}
		direction := " nulls first"
		if item.Direction == "DESC" {
			direction = " desc nulls last"
		}
		parts = append(parts, itoa(at+1)+direction)
	}
	sql := ""
	if parts != nil {
		sql = " order by " + strings.Join(parts, ", ")
	}
	limits, err := b.offset(q)
	return sql + limits, err
}

// ordinal gives the place of a column that ORDER BY names by its number, or -1.
func ordinal(node *ast.Literal, count int) int {
	n := 0
	if node.Kind != ast.Integer {
		return -1
	}
	if _, err := fmt.Sscan(node.Text, &n); err != nil || n < 1 || n > count {
		return -1
	}
	return n - 1
}

func (b *builder) offset(q *ast.Query) (string, *fault.Error) {
	var sql strings.Builder
	for _, part := range []struct {
		word string
		node ast.Expression
	}{{" offset ", q.Offset}, {" limit ", q.Fetch}} {
		if part.node == nil {
			continue
		}
		e, err := b.expression(part.node)
		if err != nil {
			return "", err
		}
		if e, err = b.convert(e, value.Of(value.BigInt), implicit); err != nil {
			return "", err
		}
		sql.WriteString(part.word + e.sql)
	}
	return sql.String(), nil
}

// with translates the common tables of a statement. They stay in sight until the returned function is called.
func (b *builder) with(node *ast.With) (string, func(), *fault.Error) {
	b.names = &names{outer: b.names}
	outer := b.common
	done := func() { b.names, b.common = b.names.outer, outer }
	if node == nil {
		return "", done, nil
	}
	if node.ChangeContext != nil {
		return "", done, expression.Unsupported("CHANGE_TRACKING_CONTEXT")
	}
	b.namespaces = node.Namespaces
	var parts []string
	for i, common := range node.Tables {
		b.common = &ast.With{Tables: node.Tables[:i]}
		sql, err := b.commonTable(common)
		if err != nil {
			return "", done, err
		}
		parts = append(parts, sql)
	}
	if parts == nil {
		return "", done, nil
	}
	b.common = &ast.With{Tables: node.Tables}
	return "with recursive " + strings.Join(parts, ", ") + " ", done, nil
}

func (b *builder) commonTable(node *ast.CommonTable) (string, *fault.Error) {
	c := &commonTable{name: node.Name, query: node.Query, sqlName: quote(b.alias("w"))}
	// A recursive table sees itself with the columns of its first part.
	if set, is := node.Query.Body.(*ast.SetOperation); is && set.Operator == "UNION ALL" {
		probe := *b
		probe.parameters, probe.places, probe.tables = nil, map[string]int{}, nil
		_, columns, err := probe.query(&ast.Query{Place: node.Place, Body: set.Left}, computed)
		if err != nil {
			return "", err
		}
		c.columns = namedColumns(columns, node.Columns)
	}
	if c.columns != nil {
		b.names.common = append(b.names.common, c)
		b.recursive, c.isOpen = c, true
	}
	sql, columns, err := b.derived(node.Query)
	b.recursive, c.isOpen = nil, false
	if err != nil {
		return "", err
	}
	if len(node.Columns) > 0 && len(node.Columns) != len(columns) {
		number := 8158
		if len(node.Columns) > len(columns) {
			number = 8159
		}
		return "", fault.New(number, node.Name)
	}
	columns = namedColumns(columns, node.Columns)
	if err := eachNamed(columns, node.Name); err != nil {
		return "", err
	}
	var written []string
	for _, column := range columns {
		written = append(written, column.name)
	}
	if c.columns == nil {
		b.names.common = append(b.names.common, c)
	}
	c.columns = columns
	if c.reading != "" {
		written = append(written, levelColumn)
	}
	return c.sqlName + " (" + quoteAll(written) + ") as (" + sql + ")", nil
}

func namedColumns(columns []sourceColumn, given []string) []sourceColumn {
	named := append([]sourceColumn(nil), columns...)
	for i := range named {
		if i < len(given) {
			named[i].name = given[i]
		}
	}
	return named
}
