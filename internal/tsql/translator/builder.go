package translator

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A builder translates one statement. Its parameters are expressions that are evaluated in Go when the statement runs.
type builder struct {
	translator *Translator
	ctx        context.Context //nolint:containedctx // a builder lives no longer than one translation
	scope      expression.Scope
	parameters []*expression.Expression
	places     map[string]int // of parameters that are the same constant or the same variable
	// isDefinition says that SQL is kept by the database, where there are no parameters: constants are written by literal.
	isDefinition bool
	names        *names
	tables       []tableSlot
	nextAlias    int
	namespaces   []*ast.XMLNamespace
	inline       map[string]sqlExpression // arguments of the table function that is translated, by the parameter's lower name
	beside       []sight                  // the sources of FROM whose rows the part that is translated sees, the nearest last
	common       *ast.With                // the common tables in sight
	computes     bool                     // Go computes ahead what has no form in SQL
	computed     map[string]sqlExpression // what it computes ahead, by its shape and the values that it reads
	fallsBack    bool                     // a query whose list has no form in SQL goes through Go
	// stands is the source of FROM that UPDATE or DELETE changes the table behind, standsFor writes it.
	stands       ast.TableSource
	standsFor    func() (string, *fault.Error)
	keyCells     []string                 // the key of each row of the query in FROM, where the statement changes the table behind it
	callsModules bool                     // a result calls a function of the user: the rows are read before it
	recursive    *commonTable             // whose query is translated next, and may read itself
	grouped      map[string]bool          // what GROUP BY of the specification that is translated lists; nil without one
	all          []*source                // of all parts, for the names in errors
	isCut        bool                     // SET ROWCOUNT limits the rows that the statement changes
	readsUnicode bool                     // a conversion reads nvarchar as another type
	faults       func(error) *fault.Error // gives errors that a part of another Translator can cause
	action       *sqlExpression           // $action in OUTPUT of MERGE
	dropsNulls   bool                     // an aggregate may leave NULL out, of which the statement warns
	isQuiet      bool                     // the aggregate that is translated leaves rows out on purpose: PIVOT
}

// A tableSlot is a table variable that the SQL names by a mark: each activation has its own table.
type tableSlot struct {
	slot int
	mark string
}

// names are the sources of rows that a part of a query sees, and those of the queries around it.
type names struct {
	outer   *names
	sources []*source
	common  []*commonTable
}

// A source is a table or a query of FROM.
type source struct {
	alias   string
	columns []sourceColumn
	table   *relation // nil for a query
	reading string    // how it is called in SQL
	// isUnqualified says that its columns are found without its name too; false for inserted and deleted.
	isHidden bool
}

type sourceColumn struct {
	name   string
	typ    value.Type
	sql    string
	isNode bool // of nodes()
}

// A sqlExpression is an expression of PostgreSQL with its type in T-SQL.
type sqlExpression struct {
	sql string
	typ value.Type
	// isConstant says that it reads no rows.
	isConstant bool
	isNode     bool
}

func (t *Translator) builder(ctx context.Context, scope expression.Scope) *builder {
	return &builder{translator: t, ctx: ctx, scope: scope, places: map[string]int{}}
}

// alias gives a name that no other part of the statement has.
func (b *builder) alias(stem string) string {
	b.nextAlias++
	return fmt.Sprintf("%s_%d", stem, b.nextAlias)
}

// parameter gives the place of an expression of Go.
func (b *builder) parameter(e *expression.Expression, key string) sqlExpression {
	if b.isDefinition {
		return b.literal(e)
	}
	key += " " + e.Type.String()
	place, known := b.places[key]
	if !known || key[0] == ' ' {
		b.parameters = append(b.parameters, e)
		place = len(b.parameters)
		b.places[key] = place
	}
	return sqlExpression{sql: b.typed("$"+strconv.Itoa(place), e.Type), typ: e.Type, isConstant: true}
}

// typed gives a parameter or a literal its type of PostgreSQL.
func (*builder) typed(sql string, t value.Type) string {
	written := databaseType(t)
	if written == "bpchar" {
		return "(" + sql + "::bpchar collate " + collation + ")"
	}
	return "(" + sql + "::" + written + ")"
}

// literal writes a constant into SQL that the database keeps. Nothing but a constant of a definition comes here.
func (b *builder) literal(e *expression.Expression) sqlExpression {
	v, is := e.Constant()
	if !is {
		found, err := e.Evaluate(b.translator.definitionFrame())
		if err != nil {
			return sqlExpression{sql: "null", typ: e.Type}
		}
		v = found
	}
	text := encode(value.Defaults(), v)
	if text == nil {
		return sqlExpression{sql: "(null::" + databaseType(e.Type) + ")", typ: e.Type, isConstant: true}
	}
	return sqlExpression{sql: b.typed(quoteText(string(text)), e.Type), typ: e.Type, isConstant: true}
}

// quoteText writes a text as a constant of PostgreSQL, whatever standard_conforming_strings is.
func quoteText(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(text, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// goScope is the scope of expressions that are evaluated in Go for a statement: its variables and functions are the batch's.
type goScope struct {
	*builder
	leaves *[]sqlExpression
}

// Variable gives a variable of the batch.
func (s goScope) Variable(name string) (int, value.Type, bool) { return s.scope.Variable(name) }

// Function gives a function of the session.
func (s goScope) Function(name string) (*function.Function, bool) {
	f, known := s.scope.Function(name)
	if known && asksCatalog(name) {
		s.callsModules = true // it asks the database, which is busy while rows come
	}
	return f, known
}

// External gives what only PostgreSQL knows as a column of the row that it sends.
func (s goScope) External(node ast.Expression) (*expression.Expression, *fault.Error) {
	if s.leaves == nil {
		return nil, expression.Unsupported(interpreter.Construct(node))
	}
	if q, is := node.(*ast.Subquery); is && q.Query.For != nil {
		return s.document(q.Query)
	}
	if call, is := node.(*ast.Call); is && len(call.Name.Parts) > 1 {
		return s.called(call, s)
	}
	e, err := s.expression(node)
	if err != nil {
		return nil, err
	}
	return s.leaf(e), nil
}

// leaf gives an expression that reads the row.
func (s goScope) leaf(e sqlExpression) *expression.Expression {
	at := -1
	for i, known := range *s.leaves {
		if known == e {
			at = i
		}
	}
	if at < 0 {
		at = len(*s.leaves)
		*s.leaves = append(*s.leaves, e)
	}
	return &expression.Expression{
		Type: e.typ, IsNode: e.isNode, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) { return f.Row[at], nil },
	}
}

// Namespaces gives those of WITH XMLNAMESPACES by their prefix.
func (b *builder) Namespaces() map[string]string {
	if b.namespaces == nil {
		return nil
	}
	spaces := map[string]string{}
	for _, n := range b.namespaces {
		if uri, err := literalText(n.URI); err == nil {
			spaces[n.Prefix] = uri
		}
	}
	return spaces
}

// ExternalCondition gives a condition that only PostgreSQL knows.
func (s goScope) ExternalCondition(node ast.Condition) (*expression.Condition, *fault.Error) {
	if s.leaves == nil {
		return nil, expression.Unsupported(interpreter.Construct(node))
	}
	sql, err := s.condition(node)
	if err != nil {
		return nil, err
	}
	e := s.leaf(sqlExpression{sql: sql, typ: value.Of(value.Bit)})
	return isTrue(e), nil
}

// isTrue gives the condition that an expression of type bit is 1; NULL is unknown.
func isTrue(e *expression.Expression) *expression.Condition {
	return &expression.Condition{Evaluate: func(f *expression.Frame) (expression.Truth, *fault.Error) {
		v, err := e.Evaluate(f)
		switch {
		case err != nil || v.IsNull():
			return expression.Unknown, err
		case v.Bool():
			return expression.True, nil
		}
		return expression.False, nil
	}}
}

// values evaluates the parameters of a run.
func (b *builder) values(f *expression.Frame) ([][]byte, *fault.Error) {
	values := make([][]byte, len(b.parameters))
	for i, p := range b.parameters {
		v, err := p.Evaluate(f)
		if err != nil {
			return nil, err
		}
		values[i] = encode(f.Context.Settings, v)
	}
	return values, nil
}

// text puts the names of the table variables of an activation into SQL.
func (b *builder) text(ctx context.Context, sql string, f *expression.Frame) (string, *fault.Error) {
	for _, t := range b.tables {
		v, err := b.translator.variableTable(ctx, f, t.slot)
		if err != nil {
			return "", err
		}
		sql = strings.ReplaceAll(sql, t.mark, quote(v.name))
	}
	return sql, nil
}

// textType is the number of PostgreSQL's type text.
const textType = 25

// types gives a type to parameters that a part left behind which was dropped; those in use have theirs from their cast.
func (b *builder) types(sql string) []uint32 {
	types := make([]uint32, len(b.parameters))
	for i := range types {
		if !strings.Contains(sql, "$"+strconv.Itoa(i+1)+"::") {
			types[i] = textType
		}
	}
	return types
}

// notGrouped gives error 8120 for a column outside of aggregates that GROUP BY does not have; nil for another error.
func (b *builder) notGrouped(err error) *fault.Error {
	refused, is := errors.AsType[*pgconn.PgError](err)
	if !is || refused.Code != "42803" {
		return nil
	}
	_, quoted, _ := strings.Cut(refused.Message, `"`)
	written, _, _ := strings.Cut(quoted, `"`)
	reading, column, _ := strings.Cut(written, ".")
	for _, s := range b.all {
		if s.reading != quote(reading) && s.reading != reading {
			continue
		}
		for _, c := range s.columns {
			if c.name == column || strings.HasSuffix(c.sql, "."+column) {
				return fault.New(8120, s.alias, c.name)
			}
		}
	}
	return nil
}

// execute runs the SQL with its parameters.
func (b *builder) execute(ctx context.Context, sql, verb string, target *relation, f *expression.Frame, row func([][]byte) *fault.Error,
) (int64, *fault.Error) {
	if err := b.translator.prepare(ctx); err != nil {
		return 0, err
	}
	values, err := b.values(f)
	if err != nil {
		return 0, err
	}
	if sql, err = b.text(ctx, sql, f); err != nil {
		return 0, err
	}
	var refused *fault.Error
	tag, failed := b.translator.connection.Run(ctx, connection.Statement{
		SQL: sql, Parameters: values, Types: b.types(sql), Row: func(_ []pgconn.FieldDescription, cells [][]byte) error {
			if refused == nil && row != nil {
				refused = row(cells)
			}
			return nil
		},
	})
	if failed != nil && b.faults != nil {
		if found := b.faults(failed); found != nil {
			return 0, found
		}
	}
	if failed != nil {
		found := b.notGrouped(failed)
		if found == nil {
			found = b.translator.fault(failed, verb, target)
		}
		if b.readsUnicode && (found.Number == 245 || found.Number == 8114) {
			found.Message = strings.Replace(found.Message, " varchar ", " nvarchar ", 1)
		}
		return 0, found
	}
	return tag.RowsAffected(), refused
}
