package translator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// The names of checks that Parley adds: of the length of text and bytes, and of the range of tinyint.
const (
	lengthPrefix = "length of "
	rangePrefix  = "range of "
)

func (t *Translator) createTable(_ context.Context, node *ast.CreateTable) (interpreter.Statement, *fault.Error) {
	if node.AsFile || node.AsKind != "" {
		return nil, expression.Unsupported("CREATE TABLE AS " + node.AsKind)
	}
	return &definitionStatement{run: func(ctx context.Context, _ *expression.Frame) *fault.Error {
		r, err := t.target(ctx, node.Name)
		if err != nil {
			return err
		}
		made, statements, err := t.tableOf(ctx, r, node.Definition, false)
		if err != nil {
			return err
		}
		defer t.forget()
		if err := t.run(ctx, "CREATE TABLE", statements...); err != nil {
			if err.Number == 2714 {
				return fault.New(2714, node.Name.Object())
			}
			return err
		}
		t.keepTemporary(node.Name, made)
		return nil
	}}, nil
}

// keepTemporary notes a #table that was made in this scope.
func (t *Translator) keepTemporary(name ast.Name, r *relation) {
	if strings.HasPrefix(name.Object(), "#") {
		t.scope().temporary[strings.ToLower(name.Object())] = r.name
	}
}

// target names a table that is to be made. A schema is found without regard to case; the one of the session is dbo.
func (t *Translator) target(ctx context.Context, name ast.Name) (*relation, *fault.Error) {
	if database := name.Database(); database != "" && !t.isCurrent(ctx, database) && !strings.EqualFold(database, "tempdb") {
		return nil, expression.Unsupported("a table of another database")
	}
	object := name.Object()
	if strings.HasPrefix(object, "#") {
		if strings.HasPrefix(object, "##") {
			return nil, expression.Unsupported("a global temporary table")
		}
		named, err := t.nameTemporary(object)
		if err != nil {
			return nil, err
		}
		return &relation{schema: "pg_temp", name: named, sql: "pg_temp." + quote(named)}, nil
	}
	if len(object) > maxName {
		return nil, fault.New(103, "identifier", object[:20], maxName)
	}
	schema, err := t.schemaOf(ctx, name.Schema())
	if err != nil {
		return nil, err
	}
	existing, err := t.lookUp(ctx, schema, object)
	if err != nil {
		return nil, err
	}
	if existing != nil {
		return nil, fault.New(2714, object)
	}
	return &relation{schema: schema, name: object, sql: quote(schema) + "." + quote(object)}, nil
}

// maxName is the length of names in PostgreSQL, in bytes.
const maxName = 63

// schemaOf gives a schema as the database spells it; error 2760 where there is none.
func (t *Translator) schemaOf(ctx context.Context, name string) (string, *fault.Error) {
	if name == "" || strings.EqualFold(name, "dbo") {
		return "dbo", nil
	}
	found := ""
	err := t.rows(ctx, `select s.nspname from pg_catalog.pg_namespace as s where s.oid = `+connection.SchemaNamed("$1::text"), []string{name},
		func(row []string) { found = row[0] })
	if err == nil && found == "" {
		err = fault.New(2760, name)
	}
	return found, err
}

// A tableBuilder writes the statements that make a table.
type tableBuilder struct {
	*builder
	table    *relation
	lines    []string
	before   []string
	after    []string
	isHidden bool // a table variable
}

// tableBuilder gives one for the definitions of a table, in which no variable is known.
func (t *Translator) tableBuilder(ctx context.Context, table *relation) *tableBuilder {
	b := &tableBuilder{builder: t.builder(ctx, noVariables{t}), table: table}
	b.isDefinition = true
	return b
}

// tableOf gives the shape of a table and the statements that make it.
func (t *Translator) tableOf(
	ctx context.Context, r *relation, definition *ast.TableDefinition, isVariable bool,
) (*relation, []string, *fault.Error) {
	b := t.tableBuilder(ctx, r)
	b.isHidden = isVariable
	r.kind, r.constraints = 'r', map[string]constraint{}
	for i, node := range definition.Columns {
		c, err := b.columnOf(node, i+1)
		if err != nil {
			return nil, nil, err.At(node.Line, "")
		}
		if r.find(c.name) != nil {
			return nil, nil, fault.New(2705, c.name, shownName(r.name)).At(node.Line, "")
		}
		r.columns = append(r.columns, c)
	}
	b.names = &names{sources: []*source{b.own()}}
	for _, node := range definition.Columns {
		line, err := b.column(node, r.find(node.Name))
		if err != nil {
			return nil, nil, err.At(node.Line, "")
		}
		b.lines = append(b.lines, line)
		for _, clause := range node.Clauses {
			if err := b.columnClause(node, clause); err != nil {
				return nil, nil, err.At(clause.Line, "")
			}
		}
	}
	for _, node := range definition.Constraints {
		line, err := b.constraint(node, nil)
		if err != nil {
			return nil, nil, err.At(node.Line, "")
		}
		b.lines = append(b.lines, line)
	}
	for _, node := range definition.Indexes {
		sql, err := b.index(node, r)
		if err != nil {
			return nil, nil, err
		}
		b.after = append(b.after, sql)
	}
	temporary := ""
	if r.schema == "pg_temp" {
		temporary = "temporary "
	}
	create := "create " + temporary + "table " + r.sql + " (" + strings.Join(b.lines, ", ") + ")"
	return r, slices.Concat(b.before, []string{create}, b.after), nil
}

// own makes the columns of the table visible without a qualifier of SQL, as a CHECK writes them.
func (b *tableBuilder) own() *source {
	s := &source{alias: b.table.name, table: b.table}
	for _, c := range b.table.columns {
		s.columns = append(s.columns, sourceColumn{name: c.name, typ: c.typ, sql: quote(c.name)})
	}
	return s
}

// columnOf gives a column its type.
func (b *tableBuilder) columnOf(node *ast.ColumnDefinition, number int) (*column, *fault.Error) {
	c := &column{table: b.table, name: node.Name, number: number, isNullable: true}
	if len(node.Name) > maxName {
		return nil, fault.New(103, "identifier", node.Name[:20], maxName)
	}
	switch {
	case node.Computed != nil:
		c.isComputed = true
		b.names = &names{sources: []*source{b.own()}}
		e, err := b.expression(node.Computed)
		if err != nil {
			return nil, err
		}
		c.typ = e.typ
		return c, nil
	case !node.HasType:
		c.typ = value.Of(value.RowVersion)
	default:
		typ, isNotNull, err := b.translator.columnType(b.ctx, node.Type)
		switch {
		case err != nil && err.Number == 350:
			return nil, fault.New(350, node.Name)
		case err != nil:
			return nil, err
		}
		c.typ, c.isNullable = typ, !isNotNull
	}
	if c.typ.Kind == value.Variant || c.typ.Kind >= value.Table {
		return nil, expression.Unsupported("a column of type " + c.typ.Kind.String())
	}
	for _, clause := range node.Clauses {
		switch clause.Kind {
		case "NULL":
			c.isNullable = true
		case "NOT NULL":
			c.isNullable = false
		case "IDENTITY":
			c.isIdentity, c.isNullable = true, false
		case "CONSTRAINT":
			c.isNullable = c.isNullable && clause.Constraint.Kind != "PRIMARY KEY"
			c.hasDefault = c.hasDefault || clause.Constraint.Kind == "DEFAULT"
		}
	}
	return c, nil
}

// column writes the line of a column, and the comment with its type.
func (b *tableBuilder) column(node *ast.ColumnDefinition, c *column) (string, *fault.Error) {
	line := quote(c.name) + " " + databaseType(c.typ)
	if databaseType(c.typ) == "bpchar" {
		line += " collate " + collation
	}
	b.after = append(b.after, c.described(b.table.sql))
	if node.Computed != nil {
		e, err := b.expression(node.Computed)
		return line + " generated always as (" + e.sql + ") stored", err
	}
	if c.typ.Kind == value.RowVersion {
		b.before = append(b.before, rowVersions...)
		return line + " not null default " + nextRowVersion, nil
	}
	if !c.isNullable {
		line += " not null"
	}
	return line + checkOf(c), nil
}

// checkOf writes the check of a column's length or range.
func checkOf(c *column) string {
	var name, condition string
	switch k := c.typ.Kind; {
	case k == value.TinyInt:
		name, condition = rangePrefix+c.name, quote(c.name)+" between 0 and 255"
	case c.typ.Length > 0 && k.IsCharacter():
		name, condition = lengthPrefix+c.name, "char_length("+quote(c.name)+") <= "+itoa(int(c.typ.Length))
	case c.typ.Length > 0 && k.IsBinary():
		name, condition = lengthPrefix+c.name, "length("+quote(c.name)+") <= "+itoa(int(c.typ.Length))
	default:
		return ""
	}
	return " constraint " + quote(shortened(name)) + " check (" + condition + ")"
}

// shortened keeps a name within PostgreSQL's length, and different from others of the same beginning.
func shortened(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:maxName-9], "") + " " + hex.EncodeToString(sum[:4])
}

// columnClause writes a clause behind the type into the last line, or beside it.
func (b *tableBuilder) columnClause(node *ast.ColumnDefinition, clause *ast.ColumnClause) *fault.Error {
	last := &b.lines[len(b.lines)-1]
	switch clause.Kind {
	case "NULL", "NOT NULL", "ROWGUIDCOL", "SPARSE", "PERSISTED", "NOT FOR REPLICATION":
	case "COLLATE":
		name := strings.ToUpper(clause.Name)
		if strings.Contains(name, "_CS") || strings.Contains(name, "_BIN") {
			*last = strings.Replace(*last, "collate "+collation, `collate "C"`, 1)
		}
	case "IDENTITY":
		seed, step := "1", "1"
		for text, e := range map[*string]ast.Expression{&seed: clause.Seed, &step: clause.Increment} {
			if e == nil {
				continue
			}
			compiled, err := expression.CompileAs(e, value.Of(value.BigInt), b.scope)
			if err != nil {
				return err
			}
			v, err := compiled.Evaluate(b.translator.definitionFrame())
			if err != nil {
				return err
			}
			*text = string(encode(value.Defaults(), v))
		}
		limits := ""
		if strings.HasPrefix(step, "-") {
			limits = " minvalue -9223372036854775808 maxvalue " + seed
		} else if strings.HasPrefix(seed, "-") || seed == "0" {
			limits = " minvalue " + seed
		}
		if !strings.Contains(*last, " integer") && !strings.Contains(*last, " bigint") && !strings.Contains(*last, " smallint") {
			return expression.Unsupported("IDENTITY of a decimal column")
		}
		*last += " generated by default as identity (start with " + seed + " increment by " + step + limits + " cache 1)"
	case "CONSTRAINT":
		if clause.Constraint.Kind == "DEFAULT" {
			return b.columnDefault(clause.Constraint, node.Name, last)
		}
		line, err := b.constraint(clause.Constraint, node)
		if err != nil {
			return err
		}
		b.lines = append(b.lines, line)
		// The clauses that follow belong to the column still.
		n := len(b.lines)
		b.lines[n-1], b.lines[n-2] = b.lines[n-2], b.lines[n-1]
	case "INDEX":
		clause.Index.Columns = append(clause.Index.Columns, &ast.KeyColumn{Name: node.Name})
		sql, err := b.index(clause.Index, b.table)
		if err != nil {
			return err
		}
		b.after = append(b.after, sql)
	default:
		return expression.Unsupported(clause.Kind + " of a column")
	}
	return nil
}

// columnDefault writes DEFAULT: its value has the type of the column.
func (b *tableBuilder) columnDefault(node *ast.Constraint, name string, last *string) *fault.Error {
	c := b.table.find(name)
	sql, err := b.defaultOf(node, c)
	if err != nil {
		return err
	}
	*last += " default " + sql
	if node.Name != "" {
		c.named = node.Name
		b.after = append(b.after, c.described(b.table.sql))
	}
	return nil
}

// defaultOf writes a default; the time and new identifiers are computed for each row.
func (b *tableBuilder) defaultOf(node *ast.Constraint, c *column) (string, *fault.Error) {
	e, err := b.expression(node.Default)
	if err != nil {
		return "", err
	}
	e, err = b.convert(e, c.typ, implicit)
	return e.sql, err
}

// noVariables is the scope of definitions: it has no variables.
type noVariables struct{ translator *Translator }

// Variable finds none.
func (noVariables) Variable(string) (int, value.Type, bool) { return 0, value.Type{}, false }

// Function gives the functions that the Translator keeps.
func (n noVariables) Function(name string) (*function.Function, bool) {
	return n.translator.Function(name)
}

// External refuses what is no constant.
func (noVariables) External(node ast.Expression) (*expression.Expression, *fault.Error) {
	return nil, expression.Unsupported(interpreter.Construct(node))
}

// ExternalCondition refuses what is no constant.
func (noVariables) ExternalCondition(node ast.Condition) (*expression.Condition, *fault.Error) {
	return nil, expression.Unsupported(interpreter.Construct(node))
}

// Table finds none.
func (noVariables) Table(string) (int, *ast.TableDefinition, bool) { return 0, nil, false }
