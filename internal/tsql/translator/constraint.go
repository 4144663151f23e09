package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// constraint writes a constraint of a table, or of one column of it.
func (b *tableBuilder) constraint(node *ast.Constraint, of *ast.ColumnDefinition) (string, *fault.Error) {
	columns, err := b.keyColumns(node, of)
	if err != nil {
		return "", err
	}
	name := node.Name
	switch node.Kind {
	case "PRIMARY KEY", "UNIQUE":
		kind, prefix := byte('p'), "PK__"
		if node.Kind == "UNIQUE" {
			kind, prefix = 'u', "UQ__"
		}
		for _, c := range columns {
			if kind == 'p' {
				c.isNullable = false
				b.table.key = append(b.table.key, c.name)
			}
		}
		name = b.nameOf(name, prefix, columns)
		b.table.constraints[name] = constraint{kind: kind}
		return "constraint " + quote(name) + " " + strings.ToLower(node.Kind) + " (" + columnNames(columns) + ")", nil
	case "CHECK":
		sql, err := b.condition(node.Check)
		if err != nil {
			return "", err
		}
		name = b.nameOf(name, "CK__", columns)
		b.table.constraints[name] = constraint{kind: 'c'}
		return "constraint " + quote(name) + " check (" + sql + ")", nil
	case "FOREIGN KEY":
		return b.foreignKey(node, columns)
	}
	return "", expression.Unsupported("a constraint " + node.Kind)
}

// keyColumns gives the columns of a constraint; error 1911 for one that the table does not have.
func (b *tableBuilder) keyColumns(node *ast.Constraint, of *ast.ColumnDefinition) ([]*column, *fault.Error) {
	if len(node.Columns) == 0 && of != nil {
		return []*column{b.table.find(of.Name)}, nil
	}
	var columns []*column
	for _, key := range node.Columns {
		c := b.table.find(key.Name)
		if c == nil {
			return nil, fault.New(1911, key.Name)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func columnNames(columns []*column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return quoteAll(names)
}

// nameOf names a constraint that the batch does not name: from the table and the columns.
func (b *tableBuilder) nameOf(name, prefix string, columns []*column) string {
	if name != "" && b.table.schema != "pg_temp" {
		return name
	}
	if name != "" {
		return shortened(name)
	}
	name = prefix + shownName(b.table.name)
	for _, c := range columns {
		name += "__" + c.name
	}
	if prefix == "CK__" {
		name += "__" + itoa(len(b.table.constraints)+1)
	}
	return shortened(name)
}

func (b *tableBuilder) foreignKey(node *ast.Constraint, columns []*column) (string, *fault.Error) {
	if b.table.schema == "pg_temp" {
		return "check (true)", nil // SQL Server ignores foreign keys of temporary tables, with a message
	}
	target := b.table
	if !strings.EqualFold(node.References.Object(), b.table.name) {
		found, err := b.translator.relationOf(b.ctx, node.References)
		if err != nil {
			return "", fault.New(1767, b.nameOf(node.Name, "FK__", columns), node.References.String())
		}
		target = found
	}
	var foreign []string
	for _, name := range node.ForeignColumns {
		c := target.find(name)
		if c == nil {
			return "", fault.New(1770, b.nameOf(node.Name, "FK__", columns), name, target.name)
		}
		foreign = append(foreign, c.name)
	}
	if foreign == nil {
		foreign = target.key
	}
	name := b.nameOf(node.Name, "FK__", columns)
	b.table.constraints[name] = constraint{kind: 'f', target: target.schema + "." + target.name, columns: strings.Join(foreign, ", ")}
	sql := "constraint " + quote(name) + " foreign key (" + columnNames(columns) + ") references " + target.sql
	if foreign != nil {
		sql += " (" + quoteAll(foreign) + ")"
	}
	if node.OnDelete != "" {
		sql += " on delete " + strings.ToLower(node.OnDelete)
	}
	if node.OnUpdate != "" {
		sql += " on update " + strings.ToLower(node.OnUpdate)
	}
	return sql, nil
}

// index writes an index. Without a name of its own it takes the table's.
func (b *tableBuilder) index(node *ast.CreateIndex, r *relation) (string, *fault.Error) {
	if node.Kind != "" || strings.Contains(node.Cluster, "COLUMNSTORE") || strings.Contains(node.Cluster, "HASH") {
		return "", expression.Unsupported("an index of this kind")
	}
	var parts []string
	for _, key := range node.Columns {
		c := r.find(key.Name)
		if c == nil {
			return "", fault.New(1911, key.Name)
		}
		part := quote(c.name) + " nulls first"
		if key.Direction == "DESC" {
			part = quote(c.name) + " desc nulls last"
		}
		parts = append(parts, part)
	}
	sql := "create "
	if node.Unique {
		sql += "unique "
	}
	sql += "index " + quote(indexName(r, node.Name)) + " on " + r.sql + " (" + strings.Join(parts, ", ") + ")"
	if node.Include != nil {
		var included []string
		for _, name := range node.Include {
			c := r.find(name)
			if c == nil {
				return "", fault.New(1911, name)
			}
			included = append(included, c.name)
		}
		sql += " include (" + quoteAll(included) + ")"
	}
	if node.Where != nil {
		condition, err := b.condition(node.Where)
		if err != nil {
			return "", err
		}
		sql += " where " + condition
	}
	return sql, nil
}

// indexName gives the name of an index in the database, where names of indexes are those of the schema: SQL Server's are the table's.
func indexName(r *relation, name string) string {
	return shortened(name + "\u00a0" + r.name)
}
