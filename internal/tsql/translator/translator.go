package translator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Translator compiles statements with tables for one session.
type Translator struct {
	connection *connection.Connection
	relations  map[string]*relation // found so far, until something is defined or rolled back
	isPrepared bool                 // the schema dbo and the collation are there
	database   string               // that the session is in; empty where it is not known
	hasBroker  bool                 // it has the schema of the broker
	generation int                  // of definitions: what was translated before one is translated anew

	scopes    []*scope // the batch first, then the modules that run
	tables    int      // temporary tables so far, for their names
	variables []*tableObject
	kept      []keptTable // rows of table variables during a rollback
	cursors   map[string]*cursor
	fetched   int64 // @@FETCH_STATUS
	recursion int   // levels of recursive common tables of the statement that is translated
	lastID    value.Value
	insertsID string               // the table with IDENTITY_INSERT ON
	firing    map[string]*relation // inserted and deleted of the trigger that runs
	firingOn  map[uint32]bool      // tables whose triggers run: they do not fire themselves again
	depth     int                  // of triggers that run
	insteadOn map[uint32]bool      // tables and views whose INSTEAD OF triggers run
	changed   *firing
	// far are names behind synonyms of the database that the session came from for one statement; nextFar those of one that is to go.
	far, nextFar map[string]ast.Name
	host         Host
}

// New gives a Translator on a connection.
func New(c *connection.Connection) *Translator {
	t := &Translator{
		connection: c, cursors: map[string]*cursor{}, recursion: defaultRecursion, firingOn: map[uint32]bool{},
		insteadOn: map[uint32]bool{},
		lastID:    value.Null(identityType),
	}
	t.scopes = []*scope{newScope()}
	t.forget()
	return t
}

// forget drops what is known of the database.
func (t *Translator) forget() {
	t.relations = map[string]*relation{}
	t.generation++
}

// collationQuery makes the schema dbo and the collation of text where they are missing.
const collationQuery = `do $parley$
begin
  if to_regnamespace('dbo') is null then
    create schema dbo;
  end if;
  if not exists (select from pg_catalog.pg_collation
      where collname = 'SQL_Latin1_General_CP1_CI_AS' and collnamespace = 'dbo'::regnamespace) then
    create collation dbo."SQL_Latin1_General_CP1_CI_AS" (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
  end if;
exception when duplicate_schema or duplicate_object or unique_violation then
  null; -- another session made them meanwhile
end $parley$`

// prepare makes what each statement with tables needs, and finds out in which database the session is.
func (t *Translator) prepare(ctx context.Context) *fault.Error {
	if t.isPrepared {
		return nil
	}
	const sql = `select ` + ownDatabase + `, to_regnamespace('parley') is not null, exists (
  select from pg_catalog.pg_collation
  where collname = 'SQL_Latin1_General_CP1_CI_AS' and collnamespace = to_regnamespace('dbo')
) from set_config('parley.tsql', 'on', false)`
	hasCollation := false
	err := t.rows(ctx, sql, nil, func(row []string) { t.database, t.hasBroker, hasCollation = row[0], row[1] == "t", row[2] == "t" })
	if err != nil {
		return err
	}
	if !hasCollation {
		if err := t.connection.Alone(ctx, collationQuery); err != nil {
			return t.fault(err, "CREATE SCHEMA", nil)
		}
	}
	t.isPrepared = true
	return nil
}

// isCurrent reports whether the session is in a database of this name.
func (t *Translator) isCurrent(ctx context.Context, database string) bool {
	return t.prepare(ctx) == nil && strings.EqualFold(t.database, database)
}

// Statement compiles a statement; error 40510 names one that the Translator does not know.
func (t *Translator) Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (interpreter.Statement, *fault.Error) {
	s := &again{translator: t, node: node, scope: scope}
	return s, s.compile(ctx)
}

func (t *Translator) statement(ctx context.Context, node ast.Statement, scope expression.Scope) (interpreter.Statement, *fault.Error) {
	t.recursion = recursionOf(node)
	switch node := node.(type) {
	case *ast.Select:
		if specification, is := node.Query.Body.(*ast.Specification); is && specification.Into != nil {
			return t.selectInto(node, specification, scope)
		}
		return t.selects(ctx, node, scope)
	case *ast.Insert:
		return t.insert(ctx, node, scope)
	case *ast.Update:
		return t.update(ctx, node, scope)
	case *ast.Delete:
		return t.delete(ctx, node, scope)
	case *ast.Merge:
		return t.merge(ctx, node, scope)
	case *ast.Truncate:
		return t.truncate(ctx, node)
	case *ast.Declare:
		return t.declare(ctx, node, scope)
	}
	return t.definition(ctx, node, scope)
}

// definitionFrame is the frame of constants that definitions keep.
func (*Translator) definitionFrame() *expression.Frame {
	return &expression.Frame{Context: &function.Context{Settings: value.Defaults(), Now: time.Now()}}
}

// fault gives the error of SQL Server for one of the database. The target names what a key or a missing value is a part of.
func (t *Translator) fault(err error, verb string, target *relation) *fault.Error {
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		return connection.Fault(err, verb)
	}
	if refused.Code == outdatedState && target != nil {
		return outdated(target)
	}
	if strings.Contains(refused.Message, mergedMark) {
		return fault.New(8672)
	}
	if strings.Contains(refused.Message, missedMark) {
		return missed
	}
	if _, rest, is := strings.Cut(refused.Message, recursionMark); is {
		levels, _, _ := strings.Cut(rest, " ")
		return fault.New(530, levels)
	}
	if found := t.ofConstraint(refused, verb, target); found != nil {
		return found
	}
	if found := ofConversion(refused); found != nil {
		return found
	}
	found, _ := connection.FaultOf(err, verb)
	return found
}

// ofConstraint gives the errors of keys, checks, lengths and missing values.
func (t *Translator) ofConstraint(e *pgconn.PgError, verb string, target *relation) *fault.Error {
	table := e.SchemaName + "." + e.TableName
	if strings.HasPrefix(e.SchemaName, "pg_temp") || strings.HasPrefix(e.SchemaName, "pg_toast_temp") {
		table = "dbo." + shownName(e.TableName)
	}
	var c constraint
	if target != nil {
		c = target.constraints[e.ConstraintName]
	}
	switch e.Code {
	case "23505":
		values := keyValues(e.Detail)
		if verb == "CREATE INDEX" {
			return fault.New(1505, table, shownName(e.ConstraintName), values)
		}
		switch c.kind {
		case 'p':
			return fault.New(2627, "PRIMARY KEY", e.ConstraintName, table, values)
		case 'u':
			return fault.New(2627, "UNIQUE KEY", e.ConstraintName, table, values)
		}
		if target == nil {
			return nil
		}
		return fault.New(2601, table, shownName(e.ConstraintName), values)
	case "2BP01":
		if word, name := dropped(e.Message); strings.HasPrefix(verb, "DROP ") && word != "" {
			return fault.New(3729, strings.ToLower(verb), name, dependent(e.Detail))
		}
	case "23502":
		prefix := t.database
		if strings.HasPrefix(e.TableName, "#") || strings.HasPrefix(e.TableName, "@") {
			prefix = "tempdb"
		}
		return fault.New(515, e.ColumnName, prefix+"."+table, verb)
	case "23514":
		if column, is := strings.CutPrefix(e.ConstraintName, lengthPrefix); is {
			return fault.New(2628, t.database+"."+table, column, "").InState(1)
		}
		if strings.HasPrefix(e.ConstraintName, rangePrefix) {
			return fault.New(8115, "expression", "tinyint")
		}
		column := c.columns // of a check of one column; one of several names none
		if strings.Contains(column, ", ") {
			column = ""
		}
		return t.conflict(verb, "CHECK", e.ConstraintName, table, column)
	case "23503":
		isOwn := target != nil && target.schema+"."+target.name == e.SchemaName+"."+e.TableName
		if key, is := keyOfAdded(e.Detail, e.SchemaName); is && verb == "ALTER TABLE" {
			return t.conflict(verb, "FOREIGN KEY", e.ConstraintName, key, "")
		}
		if verb == "INSERT" || (verb == "UPDATE" || verb == "MERGE") && c.target != "" && isOwn {
			return t.conflict(verb, "FOREIGN KEY", e.ConstraintName, c.target, c.columns)
		}
		return t.conflict(verb, "REFERENCE", e.ConstraintName, table, "")
	}
	return nil
}

// keyOfAdded gives the table to which a foreign key refers that the rows of its own table break.
func keyOfAdded(detail, schema string) (table string, is bool) {
	_, rest, is := strings.Cut(detail, " is not present in table \"")
	return schema + "." + strings.TrimSuffix(rest, "\"."), is
}

// conflict is error 547.
func (t *Translator) conflict(verb, kind, name, table, column string) *fault.Error {
	if column == "" {
		return fault.New(547, verb, kind, name, t.database, table, "", "", "")
	}
	return fault.New(547, verb, kind, name, t.database, table, ", column '", column, "'")
}

// dropped gives the kind and the name in a message such as: cannot drop schema sales because other objects depend on it.
func dropped(message string) (word, name string) {
	rest, is := strings.CutPrefix(message, "cannot drop ")
	if !is {
		return "", ""
	}
	rest, _, _ = strings.Cut(rest, " because ")
	word, name, _ = strings.Cut(rest, " ")
	return word, strings.ReplaceAll(strings.ReplaceAll(name, `"`, ""), "()", "")
}

// dependent gives the name of the first object in a detail such as: table sales.t depends on schema sales.
func dependent(detail string) string {
	first, _, _ := strings.Cut(detail, " depends on ")
	words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(first, `"`, ""), "()", ""))
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func keyValues(detail string) string {
	_, rest, found := strings.Cut(detail, ")=(")
	if end := strings.LastIndex(rest, ")"); found && end >= 0 {
		return "(" + rest[:end] + ")"
	}
	return ""
}

// ofConversion gives the errors of text that is no value of another type.
func ofConversion(e *pgconn.PgError) *fault.Error {
	switch e.Code {
	case "22P02":
		kind, text, found := strings.Cut(strings.TrimPrefix(e.Message, "invalid input syntax for type "), ": ")
		if !found {
			return nil
		}
		text = strings.Trim(text, `"`)
		switch kind {
		case "uuid":
			return fault.New(8169)
		case "integer", "bigint", "smallint":
			return fault.New(245, "varchar", text, map[string]string{"integer": "int"}[kind]+strings.TrimPrefix(kind, "integer"))
		}
		return fault.New(8114, "varchar", kind)
	case "22007", "22008":
		return fault.New(241)
	case "2200H":
		_, name, _ := strings.Cut(e.Message, `"`)
		name, _, _ = strings.Cut(name, `"`)
		return fault.New(11728, name)
	}
	return nil
}
