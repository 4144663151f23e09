package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// definition compiles the statements that define objects with rows, and what else belongs to tables.
func (t *Translator) definition(ctx context.Context, node ast.Statement, s expression.Scope) (interpreter.Statement, *fault.Error) {
	switch node := node.(type) {
	case *ast.CreateTable:
		return t.createTable(ctx, node)
	case *ast.AlterTable:
		return t.alterTable(node), nil
	case *ast.CreateIndex:
		return t.createIndex(node), nil
	case *ast.AlterIndex, *ast.CreateStatistics, *ast.UpdateStatistics:
		return nothing(), nil
	case *ast.CreateSchema:
		return t.createSchema(node)
	case *ast.CreateType:
		return t.createType(node)
	case *ast.Sequence:
		return t.sequence(node)
	case *ast.Synonym:
		return t.createSynonym(node)
	case *ast.View:
		return t.createView(node), nil
	case *ast.Function:
		return t.createFunction(node), nil
	case *ast.Trigger:
		return t.createTrigger(node)
	case *ast.SwitchTrigger:
		return t.switchTrigger(node)
	case *ast.Drop:
		return t.drop(node)
	case *ast.Rename:
		return t.rename(node), nil
	case *ast.SetIdentityInsert:
		return t.identityInsert(node), nil
	case *ast.CheckIdentity:
		return t.checkIdentity(node, s)
	case *ast.DeclareCursor, *ast.SetVariable, *ast.OpenCursor, *ast.Fetch, *ast.CloseCursor, *ast.Deallocate:
		return t.cursorStatement(ctx, node, s)
	}
	return nil, fault.New(40510, interpreter.Construct(node))
}

// defines gives a statement that changes what the database has.
func (t *Translator) defines(verb string, run func(ctx context.Context) ([]string, *fault.Error)) interpreter.Statement {
	return &definitionStatement{run: func(ctx context.Context, _ *expression.Frame) *fault.Error {
		defer t.forget()
		statements, err := run(ctx)
		if err != nil {
			return err
		}
		return t.run(ctx, verb, statements...)
	}}
}

// nothing is a statement of physical storage: it has no effect.
func nothing() interpreter.Statement {
	return &definitionStatement{run: func(context.Context, *expression.Frame) *fault.Error { return nil }}
}

func (t *Translator) createIndex(node *ast.CreateIndex) interpreter.Statement {
	if strings.HasSuffix(node.Kind, "XML") {
		return nothing()
	}
	return t.defines("CREATE INDEX", func(ctx context.Context) ([]string, *fault.Error) {
		r, err := t.relationOf(ctx, node.Table)
		if err != nil {
			return nil, fault.New(1088, node.Table.String())
		}
		b := t.tableBuilder(ctx, r)
		b.names = &names{sources: []*source{b.own()}}
		sql, err := b.index(node, r)
		return []string{sql}, err
	})
}

func (t *Translator) createSchema(node *ast.CreateSchema) (interpreter.Statement, *fault.Error) {
	if node.Name == "" { // AUTHORIZATION alone makes no schema
		return nothing(), nil
	}
	return t.defines("CREATE SCHEMA", func(context.Context) ([]string, *fault.Error) {
		sql := "create schema " + quote(node.Name)
		if node.Owner != "" && !strings.EqualFold(node.Owner, "dbo") {
			sql += " authorization " + quote(node.Owner)
		}
		return []string{sql}, nil
	}), nil
}

func (t *Translator) truncate(_ context.Context, node *ast.Truncate) (interpreter.Statement, *fault.Error) {
	return t.defines("TRUNCATE TABLE", func(ctx context.Context) ([]string, *fault.Error) {
		r, err := t.relationOf(ctx, node.Table)
		if err != nil {
			return nil, fault.New(4701, node.Table.Object())
		}
		return []string{"truncate table " + r.sql + " restart identity"}, nil
	}), nil
}

func (t *Translator) identityInsert(node *ast.SetIdentityInsert) interpreter.Statement {
	return &definitionStatement{run: func(ctx context.Context, _ *expression.Frame) *fault.Error {
		r, err := t.relationOf(ctx, node.Table)
		if err != nil {
			return fault.New(1088, node.Table.String())
		}
		switch {
		case !node.On && t.insertsID == r.sql:
			t.insertsID = ""
		case node.On && r.identity() == nil:
			return fault.New(8106, node.Table.String())
		case node.On && t.insertsID != "" && t.insertsID != r.sql:
			return fault.New(8107, t.insertsID, node.Table.String())
		case node.On:
			t.insertsID = r.sql
		}
		t.forget()
		return nil
	}}
}

// drop compiles DROP of what has rows; other kinds are not the Translator's.
func (t *Translator) drop(node *ast.Drop) (interpreter.Statement, *fault.Error) {
	switch node.Kind {
	case "TABLE", "VIEW":
		return t.defines("DROP "+node.Kind, func(ctx context.Context) ([]string, *fault.Error) { return t.dropRelations(ctx, node) }), nil
	case "INDEX":
		return t.defines("DROP INDEX", func(ctx context.Context) ([]string, *fault.Error) { return t.dropIndexes(ctx, node) }), nil
	case "SCHEMA":
		return t.defines("DROP SCHEMA", func(ctx context.Context) ([]string, *fault.Error) {
			name := node.Names[0].Object()
			found, err := t.schemaOf(ctx, name)
			switch {
			case err != nil && node.IfExists:
				return nil, nil
			case err != nil:
				return nil, fault.New(15151, "drop", "schema", name)
			}
			return []string{"drop schema " + quote(found)}, nil
		}), nil
	case "TRIGGER":
		if node.On == "" {
			return t.defines("DROP TRIGGER", func(ctx context.Context) ([]string, *fault.Error) { return t.dropTriggers(ctx, node) }), nil
		}
	case "STATISTICS":
		return nothing(), nil
	case "TYPE":
		return t.defines("DROP TYPE", func(ctx context.Context) ([]string, *fault.Error) { return t.dropTypes(ctx, node) }), nil
	case "SEQUENCE":
		return t.defines("DROP SEQUENCE", func(ctx context.Context) ([]string, *fault.Error) { return t.dropSequences(ctx, node) }), nil
	case "SYNONYM":
		return t.defines("DROP SYNONYM", func(ctx context.Context) ([]string, *fault.Error) { return t.dropSynonyms(ctx, node) }), nil
	case "FUNCTION":
		return t.defines("DROP FUNCTION", func(ctx context.Context) ([]string, *fault.Error) { return t.dropFunctions(ctx, node) }), nil
	}
	return nil, fault.New(40510, "DROP "+node.Kind)
}

// dropEach gives what drops each object that a DROP names. One that find does not find is missing, and passed by with IF EXISTS.
func dropEach(
	node *ast.Drop, find func(ast.Name) (statement string, found bool, err *fault.Error), missing func(ast.Name) *fault.Error,
) (statements []string, err *fault.Error) {
	for _, name := range node.Names {
		statement, found, err := find(name)
		switch {
		case err != nil:
			return nil, err
		case found:
			statements = append(statements, statement)
		case !node.IfExists:
			return nil, missing(name)
		}
	}
	return statements, nil
}

// dropRelations writes DROP TABLE and DROP VIEW. Error 3701 where there is none, 3726 where a foreign key refers to it.
func (t *Translator) dropRelations(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	var statements []string
	dropped := map[string]bool{}
	for _, name := range node.Names {
		r, err := t.relationOf(ctx, name)
		isMissing := err != nil || (r.kind == 'v') != (node.Kind == "VIEW")
		if isMissing && node.IfExists {
			continue
		}
		if isMissing {
			return nil, fault.New(3701, "drop", strings.ToLower(node.Kind), name.String())
		}
		for _, c := range r.constraints {
			if c.kind == 'f' && c.target == r.schema+"."+r.name && !t.isOwn(ctx, r, dropped) {
				return nil, fault.New(3726, name.String())
			}
		}
		dropped[itoa(int(r.oid))] = true
		statements = append(statements, "drop "+strings.ToLower(node.Kind)+" "+r.sql)
		if strings.HasPrefix(name.Object(), "#") {
			delete(t.scope().temporary, strings.ToLower(name.Object()))
		}
	}
	return statements, nil
}

// isOwn reports whether all foreign keys to a table are its own, or those of tables that are dropped before it.
func (t *Translator) isOwn(ctx context.Context, r *relation, dropped map[string]bool) bool {
	own := true
	_ = t.rows(ctx, `select conrelid::text from pg_catalog.pg_constraint
where contype = 'f' and confrelid = $1::text::oid and conrelid <> confrelid`, []string{itoa(int(r.oid))}, func(row []string) {
		own = own && dropped[row[0]]
	})
	return own
}

func (t *Translator) dropIndexes(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	type pair struct {
		name  string
		table ast.Name
	}
	var pairs []pair
	for _, i := range node.Indexes {
		pairs = append(pairs, pair{i.Name, i.Table})
	}
	if pairs == nil {
		for _, name := range node.Names {
			table := node.OnName
			if table.IsEmpty() {
				table = ast.Name{Parts: name.Parts[:len(name.Parts)-1]}
			}
			pairs = append(pairs, pair{name.Object(), table})
		}
	}
	var statements []string
	for _, p := range pairs {
		r, err := t.relationOf(ctx, p.table)
		if err != nil {
			return nil, err
		}
		found := ""
		err = t.rows(ctx, `select quote_ident(n.nspname) || '.' || quote_ident(c.relname) from pg_catalog.pg_index as i
join pg_catalog.pg_class as c on c.oid = i.indexrelid join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where i.indrelid = $1::text::oid and lower(c.relname) = lower($2::text)`,
			[]string{itoa(int(r.oid)), indexName(r, p.name)}, func(row []string) { found = row[0] })
		switch {
		case err != nil:
			return nil, err
		case found == "" && node.IfExists:
			continue
		case found == "":
			return nil, fault.New(3701, "drop", "index", p.table.String()+"."+p.name)
		}
		statements = append(statements, "drop index "+found)
	}
	return statements, nil
}
