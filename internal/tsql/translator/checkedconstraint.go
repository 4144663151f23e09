package translator

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// disabledPrefix begins the comment of a constraint that NOCHECK has turned off. PostgreSQL cannot turn off a constraint, so one that is
// always true keeps its name, and its comment has the definition.
const disabledPrefix = "disabled: "

// isDisabledKey says that the constraint k is a foreign key that is turned off.
const isDisabledKey = "coalesce(starts_with(pg_catalog.obj_description(k.oid, 'pg_constraint'), '" + disabledPrefix +
	"FOREIGN KEY'), false)"

// isDisabled says that the constraint k is turned off.
const isDisabled = "coalesce(starts_with(pg_catalog.obj_description(k.oid, 'pg_constraint'), '" + disabledPrefix + "'), false)"

const checkedQuery = `select k.conname, k.contype::text, pg_catalog.pg_get_constraintdef(k.oid),
  coalesce(pg_catalog.obj_description(k.oid, 'pg_constraint'), '')
from pg_catalog.pg_constraint as k
where k.conrelid = $1::text::regclass and k.conname !~ '^(length|range) of ' order by k.oid`

// A checkedConstraint is a constraint of a table with its definition, that of one that is turned off as it was.
type checkedConstraint struct {
	name, kind, definition string
	isDisabled             bool
}

// checked turns foreign keys and checks off and on. They are asked for the rows that are there by WITH CHECK alone.
func (b *tableBuilder) checked(node *ast.AlterTable) ([]string, *fault.Error) {
	var known []checkedConstraint
	err := b.translator.rows(b.ctx, checkedQuery, []string{b.table.sql}, func(row []string) {
		c := checkedConstraint{name: row[0], kind: row[1], definition: strings.TrimSuffix(row[2], " NOT VALID")}
		if definition, is := strings.CutPrefix(row[3], disabledPrefix); is {
			c.definition, c.isDisabled = definition, true
		}
		known = append(known, c)
	})
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(known), func(c checkedConstraint) bool { return c.kind != "c" && c.kind != "f" })
	if !node.All {
		if chosen, err = named(known, node.Names); err != nil {
			return nil, err
		}
	}
	var statements []string
	for _, c := range chosen {
		statements = append(statements, b.checkedOne(c, node)...)
	}
	return statements, nil
}

// named finds constraints by their names.
func named(known []checkedConstraint, names []string) (chosen []checkedConstraint, err *fault.Error) {
	for _, name := range names {
		i := slices.IndexFunc(known, func(c checkedConstraint) bool { return strings.EqualFold(c.name, name) })
		switch {
		case i < 0:
			return nil, fault.New(4917, name)
		case known[i].kind != "c" && known[i].kind != "f":
			return nil, fault.New(11415, name)
		}
		chosen = append(chosen, known[i])
	}
	return chosen, nil
}

// checkedOne turns one constraint off or on.
func (b *tableBuilder) checkedOne(c checkedConstraint, node *ast.AlterTable) []string {
	table, name := "alter table "+b.table.sql+" ", quote(c.name)
	isOn, asks := node.Action == "CHECK CONSTRAINT", node.Check == "CHECK"
	switch {
	case isOn && c.isDisabled:
		sql := table + "drop constraint " + name + ", add constraint " + name + " " + c.definition
		if !asks {
			sql += " not valid"
		}
		return []string{sql}
	case isOn && asks:
		return []string{table + "validate constraint " + name}
	case isOn || c.isDisabled:
		return nil
	}
	return []string{
		table + "drop constraint " + name + ", add constraint " + name + " check (true) not valid",
		"comment on constraint " + name + " on " + b.table.sql + " is " + quoteText(disabledPrefix+c.definition),
	}
}
