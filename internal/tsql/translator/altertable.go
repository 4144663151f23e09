package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// alterTable compiles ALTER TABLE.
func (t *Translator) alterTable(node *ast.AlterTable) interpreter.Statement {
	return t.defines("ALTER TABLE", func(ctx context.Context) ([]string, *fault.Error) {
		r, err := t.relationOf(ctx, node.Name)
		if err != nil {
			return nil, fault.New(4902, node.Name.String())
		}
		b := t.tableBuilder(ctx, r)
		switch node.Action {
		case "ADD":
			return b.added(node.Added, node.Check == "NOCHECK")
		case "ALTER COLUMN":
			return b.altered(node)
		case "DROP":
			return b.dropped(node.Drops)
		case "CHECK CONSTRAINT", "NOCHECK CONSTRAINT":
			return b.checked(node)
		case "ENABLE TRIGGER", "DISABLE TRIGGER":
			return t.switched(ctx, r, node.Names, node.All, strings.HasPrefix(node.Action, "ENABLE"))
		case "REBUILD", "SET":
			return nil, nil
		}
		return nil, expression.Unsupported("ALTER TABLE " + node.Action)
	})
}

// added writes ADD of columns and constraints.
func (b *tableBuilder) added(definition *ast.TableDefinition, unchecked bool) ([]string, *fault.Error) {
	for i, node := range definition.Columns {
		c, err := b.columnOf(node, len(b.table.columns)+i+1)
		if err != nil {
			return nil, err
		}
		if b.table.find(c.name) != nil {
			return nil, fault.New(2705, c.name, b.table.name)
		}
		b.table.columns = append(b.table.columns, c)
	}
	b.names = &names{sources: []*source{b.own()}}
	var actions []string
	for _, node := range definition.Columns {
		line, err := b.column(node, b.table.find(node.Name))
		if err != nil {
			return nil, err
		}
		b.lines = []string{line}
		for _, clause := range node.Clauses {
			if err := b.columnClause(node, clause); err != nil {
				return nil, err
			}
		}
		last := len(b.lines) - 1
		actions = append(actions, "add column "+b.lines[last])
		for _, line := range b.lines[:last] {
			actions = append(actions, "add "+line)
		}
	}
	for _, node := range definition.Constraints {
		if node.Kind == "DEFAULT" {
			action, err := b.addedDefault(node)
			if err != nil {
				return nil, err
			}
			actions = append(actions, action)
			continue
		}
		line, err := b.constraint(node, nil)
		if err != nil {
			return nil, err
		}
		if unchecked && (node.Kind == "CHECK" || node.Kind == "FOREIGN KEY") {
			line += " not valid"
		}
		actions = append(actions, "add "+line)
	}
	return append([]string{"alter table " + b.table.sql + " " + strings.Join(actions, ", ")}, b.after...), nil
}

// addedDefault writes ADD DEFAULT of a column that has none.
func (b *tableBuilder) addedDefault(node *ast.Constraint) (string, *fault.Error) {
	c := b.table.find(node.ForColumn)
	switch {
	case c == nil:
		return "", fault.New(1752, node.ForColumn, b.table.name)
	case c.hasDefault:
		return "", fault.New(1781)
	}
	sql, err := b.defaultOf(node, c)
	if err != nil {
		return "", err
	}
	c.named = node.Name
	b.after = append(b.after, c.described(b.table.sql))
	return "alter column " + quote(c.name) + " set default " + sql, nil
}

// altered writes ALTER COLUMN to another type or nullability.
func (b *tableBuilder) altered(node *ast.AlterTable) ([]string, *fault.Error) {
	if node.Change != "" {
		return nil, expression.Unsupported("ALTER COLUMN " + node.Change)
	}
	old := b.table.find(node.Column.Name)
	if old == nil {
		return nil, fault.New(4924, "ALTER TABLE ALTER COLUMN", node.Column.Name, b.table.name)
	}
	changed, err := b.columnOf(node.Column, old.number)
	if err != nil {
		return nil, err
	}
	changed.name, changed.named = old.name, old.named
	e, err := b.convert(sqlExpression{sql: quote(old.name), typ: old.typ}, changed.typ, implicit)
	if err != nil {
		return nil, err
	}
	name := quote(old.name)
	table := "alter table " + b.table.sql + " "
	collate := ""
	if databaseType(changed.typ) == "bpchar" {
		collate = " collate " + collation
	}
	statements := []string{
		table + "drop constraint if exists " + quote(shortened(lengthPrefix+old.name)),
		table + "drop constraint if exists " + quote(shortened(rangePrefix+old.name)),
		table + "alter column " + name + " type " + databaseType(changed.typ) + collate + " using " + e.sql,
		changed.described(b.table.sql),
	}
	if check := checkOf(changed); check != "" {
		statements = append(statements, table+"add"+check)
	}
	if changed.isNullable {
		return append(statements, table+"alter column "+name+" drop not null"), nil
	}
	return append(statements, table+"alter column "+name+" set not null"), nil
}

// dropped writes DROP of columns and constraints.
func (b *tableBuilder) dropped(drops []*ast.TableDrop) ([]string, *fault.Error) {
	var statements []string
	for _, d := range drops {
		for _, name := range d.Names {
			sql, err := b.droppedOne(d, name)
			if err != nil {
				return nil, err
			}
			if sql != "" {
				statements = append(statements, "alter table "+b.table.sql+" "+sql)
			}
		}
	}
	return statements, nil
}

func (b *tableBuilder) droppedOne(d *ast.TableDrop, name string) (string, *fault.Error) {
	if d.Kind == "COLUMN" {
		c := b.table.find(name)
		switch {
		case c != nil:
			return "drop column " + quote(c.name), nil
		case d.IfExists:
			return "", nil
		}
		return "", fault.New(4924, "ALTER TABLE DROP COLUMN", name, b.table.name)
	}
	for known := range b.table.constraints {
		if strings.EqualFold(known, name) {
			return "drop constraint " + quote(known), nil
		}
	}
	for _, c := range b.table.columns {
		if c.hasDefault && strings.EqualFold(c.defaultName(b.table.name), name) {
			return "alter column " + quote(c.name) + " drop default", nil
		}
	}
	if d.IfExists {
		return "", nil
	}
	return "", fault.New(3728, name)
}
