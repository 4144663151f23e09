package translator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A commonTable is one of WITH.
type commonTable struct {
	name, sqlName string
	query         *ast.Query
	columns       []sourceColumn
	isOpen        bool   // its query is translated
	reading       string // how its query calls it; empty where it does not
}

// sourceOf gives a relation as a source under an alias.
func sourceOf(r *relation, alias, reading string) *source {
	s := &source{alias: alias, table: r, reading: reading}
	for _, c := range r.columns {
		s.columns = append(s.columns, sourceColumn{name: c.name, typ: c.typ, sql: reading + "." + quote(c.name)})
	}
	return s
}

// from translates the sources of FROM and adds them to the names in sight.
func (b *builder) from(sources []ast.TableSource) (string, *fault.Error) {
	var parts []string
	for _, s := range sources {
		sql, err := b.source(s)
		if err != nil {
			return "", err
		}
		parts = append(parts, sql)
	}
	return strings.Join(parts, " cross join "), nil
}

func (b *builder) source(node ast.TableSource) (string, *fault.Error) {
	if node == b.stands && node != nil {
		return b.standsFor()
	}
	switch node := node.(type) {
	case *ast.TableName:
		return b.tableName(node)
	case *ast.TableVariable:
		return b.tableVariable(node.Name, node.Alias.Name)
	case *ast.SourceGroup:
		sql, err := b.source(node.Inner)
		return "(" + sql + ")", err
	case *ast.Join:
		return b.join(node)
	case *ast.DerivedTable:
		sql, columns, err := b.derived(node.Query)
		if err != nil {
			return "", err
		}
		if given := len(node.Alias.Columns); given == 0 || given == len(columns) {
			if err := eachNamed(namedColumns(columns, node.Alias.Columns), node.Alias.Name); err != nil {
				return "", err
			}
		}
		return b.named("("+sql+")", columns, node.Alias)
	case *ast.ValuesTable:
		return b.valuesTable(node)
	case *ast.FunctionTable:
		return b.functionTable(node)
	case *ast.Pivot:
		return b.pivot(node)
	case *ast.Unpivot:
		return b.unpivot(node)
	}
	return "", expression.Unsupported(interpreter.Construct(node))
}

// eachNamed gives error 8155 for a column without a name, 8156 for a name twice.
func eachNamed(columns []sourceColumn, table string) *fault.Error {
	for i, c := range columns {
		if c.name == "" {
			return fault.New(8155, i+1, table)
		}
		for _, before := range columns[:i] {
			if strings.EqualFold(before.name, c.name) {
				return fault.New(8156, c.name, table)
			}
		}
	}
	return nil
}

// add makes a source visible under its alias; error 1011 for an alias twice.
func (b *builder) add(s *source) *fault.Error {
	for _, known := range b.names.sources {
		if strings.EqualFold(known.alias, s.alias) && known.table == nil == (s.table == nil) {
			return fault.New(1011, s.alias)
		}
	}
	b.names.sources, b.all = append(b.names.sources, s), append(b.all, s)
	return nil
}

func (b *builder) tableName(node *ast.TableName) (string, *fault.Error) {
	if node.Temporal != nil {
		return "", expression.Unsupported("FOR SYSTEM_TIME")
	}
	if node.Sample != nil {
		return "", expression.Unsupported("TABLESAMPLE")
	}
	alias := node.Alias.Name
	if alias == "" {
		alias = node.Name.Object()
	}
	reading := quote(b.alias("t"))
	if len(node.Name.Parts) == 1 {
		if c := b.commonNamed(node.Name); c != nil {
			return c.sqlName + " as " + reading, b.add(c.source(alias, reading))
		}
		if r, is := b.translator.firing[strings.ToLower(node.Name.Object())]; is {
			return r.sql + " as " + reading, b.add(sourceOf(r, alias, reading))
		}
	}
	r, err := b.translator.reads(b.ctx, node.Name)
	if err != nil {
		return "", err
	}
	named, sql := "", r.sql
	if r.kind == 's' {
		if sql, err = b.withParameters(sql); err != nil {
			return "", err
		}
		var columns []string
		for _, c := range r.columns {
			columns = append(columns, c.name)
		}
		named = " (" + quoteAll(columns) + ")"
	}
	return sql + " as " + reading + named, b.add(sourceOf(r, alias, reading))
}

// source gives a common table as a source under an alias.
func (c *commonTable) source(alias, reading string) *source {
	if c.isOpen {
		c.reading = reading
	}
	s := &source{alias: alias, reading: reading}
	for _, column := range c.columns {
		s.columns = append(s.columns, sourceColumn{name: column.name, typ: column.typ, sql: reading + "." + quote(column.name)})
	}
	return s
}

// tableVariable names the table of a variable by a mark.
func (b *builder) tableVariable(name, alias string) (string, *fault.Error) {
	r, mark, err := b.variable(name)
	if err != nil {
		return "", err
	}
	if alias == "" {
		alias = name
	}
	reading := quote(b.alias("v"))
	return mark + " as " + reading, b.add(sourceOf(r, alias, reading))
}

// variable gives the relation of a table variable and the mark that stands for its table.
func (b *builder) variable(name string) (*relation, string, *fault.Error) {
	tables, is := b.scope.(interpreter.TableScope)
	if !is {
		return nil, "", fault.New(1087, name)
	}
	slot, definition, known := tables.Table(name)
	if !known {
		return nil, "", fault.New(1087, name)
	}
	r, err := b.translator.shapeOf(b.ctx, name, definition)
	if err != nil {
		return nil, "", err
	}
	mark := fmt.Sprintf("\x01%d\x01", slot)
	b.tables = append(b.tables, tableSlot{slot, mark})
	return r, mark, nil
}

// named gives a query in FROM its alias and the names of its columns.
func (b *builder) named(sql string, columns []sourceColumn, alias ast.Alias) (string, *fault.Error) {
	if len(alias.Columns) > 0 && len(alias.Columns) != len(columns) {
		number := 8158
		if len(alias.Columns) > len(columns) {
			number = 8159
		}
		return "", fault.New(number, alias.Name)
	}
	reading := quote(b.alias("q"))
	s := &source{alias: alias.Name, reading: reading}
	var written []string
	for i, c := range columns {
		if len(alias.Columns) > 0 {
			c.name = alias.Columns[i]
		}
		inner := fmt.Sprintf("c%d", i+1)
		written = append(written, inner)
		s.columns = append(s.columns, sourceColumn{name: c.name, typ: c.typ, sql: reading + "." + inner, isNode: c.isNode})
	}
	return sql + " as " + reading + " (" + strings.Join(written, ", ") + ")", b.add(s)
}

func (b *builder) join(node *ast.Join) (string, *fault.Error) {
	left, err := b.source(node.Left)
	if err != nil {
		return "", err
	}
	lateral := ""
	if strings.HasSuffix(node.Kind, "APPLY") {
		lateral = "lateral "
	}
	outer := b.beside
	if lateral != "" {
		b.beside = append(slices.Clip(outer), sight{sources: []ast.TableSource{node.Left}})
	}
	right, err := b.source(node.Right)
	if b.beside = outer; err != nil {
		return "", err
	}
	if lateral != "" && !strings.HasPrefix(right, "(") {
		lateral = ""
	}
	switch node.Kind {
	case "CROSS":
		return left + " cross join " + right, nil
	case "CROSS APPLY":
		return left + " cross join " + lateral + right, nil
	case "OUTER APPLY":
		return left + " left join " + lateral + right + " on true", nil
	}
	on, err := b.onCondition(node)
	if err != nil {
		return "", err
	}
	return left + " " + strings.ToLower(node.Kind) + " join " + right + " on " + on, nil
}

// valuesTable translates (VALUES ...) as a source: columns take the highest type of their rows.
func (b *builder) valuesTable(node *ast.ValuesTable) (string, *fault.Error) {
	sql, columns, err := b.valuesRows(node.Rows)
	if err != nil {
		return "", err
	}
	return b.named("("+sql+")", columns, node.Alias)
}

func (b *builder) valuesRows(rows [][]ast.Expression) (string, []sourceColumn, *fault.Error) {
	var cells [][]sqlExpression
	var columns []sourceColumn
	for i, row := range rows {
		if i > 0 && len(row) != len(columns) {
			return "", nil, fault.New(10709)
		}
		var translated []sqlExpression
		for j, node := range row {
			e, err := b.expression(node)
			if err != nil {
				return "", nil, err
			}
			translated = append(translated, e)
			if i == 0 {
				columns = append(columns, sourceColumn{name: fmt.Sprintf("column%d", j+1), typ: e.typ})
				continue
			}
			if columns[j].typ, err = value.Higher(columns[j].typ, e.typ); err != nil {
				return "", nil, err
			}
		}
		cells = append(cells, translated)
	}
	var written []string
	for _, row := range cells {
		var texts []string
		for j, e := range row {
			converted, err := b.convert(e, shown(columns[j].typ), implicit)
			if err != nil {
				return "", nil, err
			}
			texts = append(texts, converted.sql)
		}
		written = append(written, "("+strings.Join(texts, ", ")+")")
	}
	for i := range columns {
		columns[i].typ = shown(columns[i].typ)
	}
	return "values " + strings.Join(written, ", "), columns, nil
}

// shown gives the constant NULL the type int, as SQL Server does.
func shown(t value.Type) value.Type {
	if t.Kind == value.Unknown {
		return value.Of(value.Int)
	}
	return t
}

// resolve finds a column: in the sources of this query, then in those around it. Errors 207, 209 and 4104.
func (b *builder) resolve(name ast.Name) (sqlExpression, *fault.Error) {
	object, qualifier := name.Object(), name.Schema()
	for n := b.names; n != nil; n = n.outer {
		found := 0
		var e sqlExpression
		for _, s := range n.sources {
			if qualifier == "" && s.isHidden || qualifier != "" && !s.isCalled(name) {
				continue
			}
			for _, c := range s.columns {
				if strings.EqualFold(c.name, object) {
					found++
					e = sqlExpression{sql: c.sql, typ: c.typ, isNode: c.isNode}
				}
			}
			if qualifier != "" && found == 0 {
				return e, fault.New(207, object)
			}
		}
		switch {
		case found > 1:
			return e, fault.New(209, object)
		case found == 1:
			return e, nil
		}
	}
	if qualifier != "" {
		return sqlExpression{}, fault.New(4104, name.String())
	}
	return sqlExpression{}, fault.New(207, object)
}

// pseudoColumn finds $ACTION in OUTPUT of MERGE, and $IDENTITY of a table in sight.
func (b *builder) pseudoColumn(node *ast.PseudoColumn) (sqlExpression, *fault.Error) {
	if at, is := strings.CutPrefix(node.Name, keyPseudo); is {
		place, _ := strconv.Atoi(at)
		return b.key(place), nil
	}
	switch node.Name {
	case "$ACTION":
		if b.action != nil {
			return *b.action, nil
		}
	case "$IDENTITY", "IDENTITYCOL":
		for _, s := range b.names.sources {
			if s.table == nil || s.table.identity() == nil {
				continue
			}
			name := ast.Name{Parts: append(slices.Clone(node.Qualifier.Parts), s.table.identity().name)}
			if node.Qualifier.IsEmpty() || s.isCalled(name) {
				return b.resolve(name)
			}
		}
	}
	return sqlExpression{}, fault.New(207, strings.ToLower(node.Name))
}

// isCalled reports whether the qualifier of a column names the source: by its alias, or by its schema and name.
func (s *source) isCalled(name ast.Name) bool {
	if !strings.EqualFold(s.alias, name.Schema()) {
		return false
	}
	schema := name.Database()
	return schema == "" || s.table != nil && strings.EqualFold(s.table.schema, schema)
}
