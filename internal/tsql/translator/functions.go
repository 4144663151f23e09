package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A form is how PostgreSQL writes a function of T-SQL: the arguments, already of their types, stand for $1, $2 and so on.
type form struct {
	parameters string // a letter each: t text, i int, f float, d datetime or another date, a as it is
	sql        string // t arguments are PostgreSQL's text
	result     string // t text like the first argument, m text of 8000 bytes, or the name of a type; 1 the type of the first
}

var forms = map[string]form{
	"LEN":       {"t", "length(rtrim($1, ' '))", "int"},
	"LOWER":     {"t", "lower($1)", "t"},
	"UPPER":     {"t", "upper($1)", "t"},
	"LTRIM":     {"t", "ltrim($1, ' ')", "t"},
	"RTRIM":     {"t", "rtrim($1, ' ')", "t"},
	"TRIM":      {"t", "btrim($1, ' ')", "t"},
	"REVERSE":   {"t", "reverse($1)", "t"},
	"LEFT":      {"ti", "left($1, greatest($2, 0))", "t"},
	"RIGHT":     {"ti", "right($1, greatest($2, 0))", "t"},
	"SUBSTRING": {"tii", "substring($1 from $2 for greatest($3, 0))", "t"},
	"REPLACE": {
		"ttt", "regexp_replace($1, regexp_replace($2, '([.*+?()\\[\\]{}|^$\\\\])', '\\\\\\1', 'g'), replace($3, '\\', '\\\\'), 'gi')",
		"m",
	},
	"STUFF":           {"tiit", "overlay($1 placing $4 from $2 for $3)", "m"},
	"CHARINDEX":       {"tt", "(case when $1 = '' then 0 else position(lower($1) in lower($2)) end)", "int"},
	"REPLICATE":       {"ti", "repeat($1, greatest($2, 0))", "m"},
	"SPACE":           {"i", "repeat(' ', $1)", "m"},
	"ASCII":           {"t", "ascii($1)", "int"},
	"UNICODE":         {"t", "ascii($1)", "int"},
	"NCHAR":           {"i", "chr($1)", "m"},
	"CHAR":            {"i", "chr($1)", "m"},
	"QUOTENAME":       {"t", "('[' || replace($1, ']', ']]') || ']')", "m"},
	"ABS":             {"a", "abs($1)", "1"},
	"SIGN":            {"a", "sign($1)", "1"},
	"CEILING":         {"a", "ceil($1)", "1"},
	"FLOOR":           {"a", "floor($1)", "1"},
	"ROUND":           {"ai", "round($1::numeric, $2)", "1"},
	"POWER":           {"af", "power($1, $2)", "1"},
	"SQRT":            {"f", "sqrt($1)", "float"},
	"SQUARE":          {"f", "($1 * $1)", "float"},
	"EXP":             {"f", "exp($1)", "float"},
	"LOG":             {"f", "ln($1)", "float"},
	"LOG10":           {"f", "log($1)", "float"},
	"YEAR":            {"d", "extract(year from $1)::integer", "int"},
	"MONTH":           {"d", "extract(month from $1)::integer", "int"},
	"DAY":             {"d", "extract(day from $1)::integer", "int"},
	"EOMONTH":         {"d", "(date_trunc('month', $1) + interval '1 month' - interval '1 day')::date", "date"},
	"NEWID":           {"", "gen_random_uuid()", "uniqueidentifier"},
	"NEWSEQUENTIALID": {"", "gen_random_uuid()", "uniqueidentifier"},
	"ISNUMERIC":       {"t", "($1 ~ '^\\s*[-+]?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d+)?\\s*$')::integer", "int"},
	"ISDATE":          {"t", "($1 ~ '^\\d{4}-?\\d{2}-?\\d{2}')::integer", "int"},
}

// standing are the functions of the time and of the user as a definition keeps them; elsewhere they are evaluated in Go.
var standing = map[string]sqlExpression{
	"GETDATE":           {sql: thirds("statement_timestamp()::timestamp", value.Of(value.DateTime)), typ: value.Of(value.DateTime)},
	"CURRENT_TIMESTAMP": {sql: thirds("statement_timestamp()::timestamp", value.Of(value.DateTime)), typ: value.Of(value.DateTime)},
	"GETUTCDATE": {
		sql: thirds("(statement_timestamp() at time zone 'UTC')", value.Of(value.DateTime)), typ: value.Of(value.DateTime),
	},
	"SYSDATETIME":       {sql: "(statement_timestamp()::timestamp)", typ: value.Of(value.DateTime2)},
	"SYSUTCDATETIME":    {sql: "(statement_timestamp() at time zone 'UTC')", typ: value.Of(value.DateTime2)},
	"SYSDATETIMEOFFSET": {sql: "statement_timestamp()", typ: value.Of(value.DateTimeOffset)},
	"SYSTEM_USER":       {sql: "(session_user::text::bpchar)", typ: value.Sized(value.NVarChar, 128)},
	"SUSER_SNAME":       {sql: "(session_user::text::bpchar)", typ: value.Sized(value.NVarChar, 128)},
	"SUSER_NAME":        {sql: "(session_user::text::bpchar)", typ: value.Sized(value.NVarChar, 128)},
	"CURRENT_USER":      {sql: "(current_user::text::bpchar)", typ: value.Sized(value.NVarChar, 128)},
	"USER_NAME":         {sql: "(current_user::text::bpchar)", typ: value.Sized(value.NVarChar, 128)},
	"DB_NAME":           {sql: "(" + ownDatabase + "::bpchar)", typ: value.Sized(value.NVarChar, 128)},
}

// call translates a call: an aggregate, a window, a function with a form here, a function of the user.
func (b *builder) call(node *ast.Call) (sqlExpression, *fault.Error) {
	name := strings.ToUpper(node.Name.Object())
	if len(node.Name.Parts) > 1 {
		return b.userFunction(node)
	}
	if node.Over != nil || isAggregate(name) || windowNames[name] != "" {
		return b.aggregate(node, name)
	}
	switch name {
	case "COALESCE":
		values, t, err := b.highest(node.Arguments)
		if err != nil {
			return sqlExpression{}, err
		}
		return sqlExpression{sql: "coalesce(" + joined(values) + ")", typ: t}, nil
	case "ISNULL":
		return b.isNull(node)
	case "NULLIF":
		return b.nullIf(node)
	case "CONCAT":
		return b.concat(node.Arguments)
	case "DATALENGTH":
		return b.dataLength(node)
	case "SUBSTRING":
		if e, isBinary, err := b.substringOfBytes(node); isBinary || err != nil {
			return e, err
		}
	case "DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATEPART", "DATENAME":
		return b.dated(node, name)
	}
	if kept, is := standing[name]; is && len(node.Arguments) == 0 {
		return kept, nil
	}
	if e, is, err := b.catalogCall(node, name); is {
		return e, err
	}
	f, known := forms[name]
	if !known {
		return sqlExpression{}, unknownFunction(node, b.scope)
	}
	return b.formed(node, f)
}

// unknownFunction gives error 195 for a function that is none, 40517 for one that has no form for rows.
func unknownFunction(node *ast.Call, scope expression.Scope) *fault.Error {
	name := node.Name.Object()
	_, isBuiltIn := function.Lookup(name)
	if _, isKnown := scope.Function(strings.ToUpper(name)); isBuiltIn || isKnown {
		return expression.Unsupported(strings.ToUpper(name) + "() of rows in the database")
	}
	return fault.New(195, name, "built-in function name")
}

func joined(values []sqlExpression) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.sql
	}
	return strings.Join(texts, ", ")
}

func (b *builder) formed(node *ast.Call, f form) (sqlExpression, *fault.Error) {
	if len(node.Arguments) != len(f.parameters) {
		return sqlExpression{}, expression.Unsupported(interpreter.Construct(node) + " with these arguments of rows")
	}
	sql, first := f.sql, value.Type{}
	replaced := make([]string, 0, 2*len(node.Arguments))
	for i, argument := range node.Arguments {
		e, err := b.expression(argument)
		if err != nil {
			return e, err
		}
		if i == 0 {
			first = e.typ
		}
		if e, err = b.argument(e, f.parameters[i]); err != nil {
			return e, err
		}
		replaced = append(replaced, "$"+itoa(i+1), "("+e.sql+")")
	}
	// The arguments have parameters too: they are put in at once.
	sql = strings.NewReplacer(replaced...).Replace(sql)
	switch f.result {
	case "t":
		return text(sql, variable(first)), nil
	case "m":
		return text(sql, longest(first)), nil
	case "1":
		if !first.Kind.IsNumber() {
			first = value.Of(value.Float)
		}
		return sqlExpression{sql: "(" + sql + "::" + databaseType(first) + ")", typ: first}, nil
	}
	t, _ := value.Named(f.result, value.Declaration)
	return sqlExpression{sql: "(" + sql + ")", typ: t}, nil
}

// argument converts an argument to what its letter says.
func (b *builder) argument(e sqlExpression, letter byte) (sqlExpression, *fault.Error) {
	var err *fault.Error
	switch letter {
	case 't':
		if !e.typ.Kind.IsCharacter() {
			if e, err = b.convert(e, value.Sized(value.VarChar, value.MaxBytes), implicit); err != nil {
				return e, err
			}
		}
		e.sql = plain(e.sql)
	case 'i':
		return b.convert(e, value.Of(value.Int), implicit)
	case 'f':
		return b.convert(e, value.Of(value.Float), implicit)
	case 'd':
		if !e.typ.Kind.IsTemporal() {
			return b.convert(e, value.Of(value.DateTime), implicit)
		}
	}
	return e, nil
}

// variable gives the type of text of variable length.
func variable(t value.Type) value.Type {
	switch t.Kind {
	case value.NChar, value.NVarChar:
		return value.Type{Kind: value.NVarChar, Length: t.Length}
	case value.NText:
		return value.Sized(value.NVarChar, value.Max)
	case value.Char, value.VarChar:
		return value.Type{Kind: value.VarChar, Length: t.Length}
	default:
		return value.Sized(value.VarChar, value.MaxBytes)
	}
}

func longest(t value.Type) value.Type {
	t = variable(t)
	if t.Length == value.Max {
		return t
	}
	return value.Sized(t.Kind, value.MaxBytes)
}

func (b *builder) isNull(node *ast.Call) (sqlExpression, *fault.Error) {
	if len(node.Arguments) != 2 {
		return sqlExpression{}, fault.New(174, "isnull", 2)
	}
	first, second, err := b.both(node.Arguments[0], node.Arguments[1])
	if err != nil {
		return first, err
	}
	t := first.typ
	if t.Kind == value.Unknown {
		t = second.typ
	}
	if second, err = b.convert(second, t, explicit); err != nil {
		return first, err
	}
	return sqlExpression{sql: "coalesce(" + first.sql + ", " + second.sql + ")", typ: t}, nil
}

func (b *builder) nullIf(node *ast.Call) (sqlExpression, *fault.Error) {
	if len(node.Arguments) != 2 {
		return sqlExpression{}, fault.New(174, "nullif", 2)
	}
	first, second, err := b.both(node.Arguments[0], node.Arguments[1])
	if err != nil {
		return first, err
	}
	equal, err := b.comparison("=", first, second)
	return sqlExpression{sql: "(case when " + equal + " then null else " + first.sql + " end)", typ: first.typ}, err
}

// concat puts texts together; NULL is the empty text.
func (b *builder) concat(nodes []ast.Expression) (sqlExpression, *fault.Error) {
	var parts []string
	t := value.Sized(value.VarChar, value.MaxBytes)
	for _, node := range nodes {
		e, err := b.expression(node)
		if err != nil {
			return e, err
		}
		if e.typ.Kind.IsUnicode() {
			t = value.Sized(value.NVarChar, value.MaxUnicode)
		}
		if e, err = b.convert(e, varying(e.typ, t), explicit); err != nil {
			return e, err
		}
		parts = append(parts, plain(e.sql))
	}
	return text("concat("+strings.Join(parts, ", ")+")", t), nil
}

func (b *builder) dataLength(node *ast.Call) (sqlExpression, *fault.Error) {
	if len(node.Arguments) != 1 {
		return sqlExpression{}, fault.New(174, "datalength", 1)
	}
	e, err := b.expression(node.Arguments[0])
	if err != nil {
		return e, err
	}
	var sql string
	switch k := e.typ.Kind; {
	case k.IsUnicode():
		sql = "(2 * length(" + plain(e.sql) + "))"
	case k.IsCharacter():
		sql = "length(" + plain(e.sql) + ")"
	case k.IsBinary():
		sql = "length(" + e.sql + ")"
	case k == value.XML:
		sql = "(2 * length((" + e.sql + ")::text))"
	default:
		return e, expression.Unsupported("DATALENGTH() of " + k.String() + " in the database")
	}
	return sqlExpression{sql: sql, typ: value.Of(value.Int)}, nil
}

// substringOfBytes gives SUBSTRING of a binary value, whose places are bytes; false for one of text.
func (b *builder) substringOfBytes(node *ast.Call) (e sqlExpression, isBinary bool, err *fault.Error) {
	if len(node.Arguments) != 3 {
		return e, false, nil
	}
	if e, err = b.expression(node.Arguments[0]); err != nil || !e.typ.Kind.IsBinary() {
		return e, false, err
	}
	var places [2]sqlExpression
	for i, argument := range node.Arguments[1:] {
		place, err := b.expression(argument)
		if err != nil {
			return e, true, err
		}
		if places[i], err = b.convert(place, value.Of(value.Int), implicit); err != nil {
			return e, true, err
		}
	}
	e.sql = "substring(" + e.sql + " from " + places[0].sql + " for greatest(" + places[1].sql + ", 0))"
	e.typ = value.Type{Kind: value.VarBinary, Length: e.typ.Length}
	return e, true, nil
}

func (b *builder) trim(node *ast.Trim) (sqlExpression, *fault.Error) {
	operand, characters, err := b.both(node.Operand, node.Characters)
	if err != nil {
		return operand, err
	}
	name := map[string]string{"LEADING": "ltrim", "TRAILING": "rtrim"}[strings.ToUpper(node.Side)]
	if name == "" {
		name = "btrim"
	}
	return text(name+"("+plain(operand.sql)+", "+plain(characters.sql)+")", variable(operand.typ)), nil
}
