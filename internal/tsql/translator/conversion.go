package translator

import (
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/calls"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// How a conversion is asked for: by an operator or an assignment, or by CAST and CONVERT.
const (
	implicit = false
	explicit = true
)

func itoa(n int) string { return strconv.Itoa(n) }

// cast translates CAST and CONVERT; the style is a constant.
func (b *builder) cast(operand ast.Expression, to ast.DataType, style ast.Expression) (sqlExpression, *fault.Error) {
	t, err := expression.TypeOf(to, value.Conversion)
	if err != nil {
		return sqlExpression{}, err
	}
	e, err := b.expression(operand)
	if err != nil {
		return e, err
	}
	if style == nil {
		return b.convert(e, t, explicit)
	}
	number, is := style.(*ast.Literal)
	if !is || number.Kind != ast.Integer {
		return e, expression.Unsupported("CONVERT with a style of the row")
	}
	return b.convertStyled(e, t, number.Text)
}

// convert gives an expression of another type.
func (b *builder) convert(e sqlExpression, to value.Type, isExplicit bool) (sqlExpression, *fault.Error) {
	check := value.CheckAssignable
	if isExplicit {
		check = value.CheckCastable
	}
	from := e.typ.Kind
	if err := check(from, to.Kind); err != nil {
		return e, err
	}
	if e.typ == to {
		return e, nil
	}
	if from == value.Unknown {
		return sqlExpression{sql: "(null::" + databaseType(to) + ")", typ: to}, nil
	}
	b.readsUnicode = b.readsUnicode || from.IsUnicode()
	var sql string
	switch {
	case to.Kind.IsCharacter():
		return b.toText(e, to, isExplicit)
	case to.Kind == value.Bit:
		sql = toBit(e)
	case to.Kind.IsNumber():
		sql = toNumber(e, to)
	case to.Kind.IsTemporal():
		sql = toTemporal(e, to)
	case to.Kind == value.UniqueIdentifier && from.IsCharacter():
		sql = "(left(" + plain(e.sql) + ", 36)::uuid)"
	case to.Kind == value.XML && from.IsCharacter():
		sql = "(" + plain(e.sql) + "::xml)"
	case to.Kind == value.XML && from.IsBinary():
		sql = xmlOfBytes(e.sql)
	case to.Kind.IsBinary():
		sql = toBytes(e, to)
	}
	if sql == "" {
		return e, expression.Unsupported("a conversion of " + from.String() + " to " + to.Kind.String() + " in the database")
	}
	return sqlExpression{sql: sql, typ: to}, nil
}

// xmlOfBytes gives the document in bytes: UTF-16, with a mark or told by the zero of its first letter, or UTF-8. Bytes that are no text are
// no document.
func xmlOfBytes(sql string) string {
	text := calls.Text("CAST to xml",
		`case when substr(b, 2, 1) = '\x00' then '\xfffe' || b when substr(b, 1, 1) = '\x00' then '\xfeff' || b else b end`)
	return `(select case when b is not null then coalesce(` + text + `, '<')::xml end
  from (select ` + sql + `::bytea as b) as t)`
}

// toText gives text of a length: what is longer is cut by CAST, and kept for an assignment, which checks it.
func (b *builder) toText(e sqlExpression, to value.Type, isExplicit bool) (sqlExpression, *fault.Error) {
	var sql string
	switch k := e.typ.Kind; {
	case k.IsCharacter():
		isShorter := to.Length != value.Max && (e.typ.Length > to.Length || e.typ.Length == value.Max)
		if !to.Kind.IsFixedLength() && (!isShorter || !isExplicit) {
			return sqlExpression{sql: e.sql, typ: to}, nil
		}
		sql = plain(e.sql)
	case k == value.Bit:
		sql = "(" + e.sql + ")::integer::text"
	case k == value.UniqueIdentifier:
		sql = "upper((" + e.sql + ")::text)"
	case k.IsMoney():
		sql = "round(" + e.sql + ", 2)::text"
	case k.IsApproximate():
		sql = "(" + e.sql + ")::real::text"
	case k == value.DateTime || k == value.SmallDateTime:
		sql = styledDate(e, "0")
	case k == value.Date || k == value.Time || k == value.DateTime2:
		sql = styledDate(e, "121")
	case k.IsBinary() && to.Kind.IsUnicode():
		sql = decodedUTF16(e.sql)
	case k.IsBinary():
		sql = "convert_from(" + e.sql + ", 'WIN1252')"
	default:
		sql = "(" + e.sql + ")::text"
	}
	return sized(sql, to), nil
}

// sized cuts text to a length and pads it where the length is fixed.
func sized(sql string, to value.Type) sqlExpression {
	switch {
	case to.Length == value.Max || to.Length == 0:
	case to.Kind.IsFixedLength():
		sql = "rpad(" + sql + ", " + itoa(int(to.Length)) + ")"
	default:
		sql = "left(" + sql + ", " + itoa(int(to.Length)) + ")"
	}
	return text(sql, to)
}

// decodedUTF16 reads bytes as UTF-16LE: PostgreSQL has no such encoding. An odd byte at the end is a unit, as in SQL Server; half of a
// pair becomes the sign for what cannot be read.
func decodedUTF16(sql string) string {
	const unit = "get_byte(s.b, g.i) + 256 * (case when g.i + 1 < length(s.b) then get_byte(s.b, g.i + 1) else 0 end)"
	const letter = "case when u.v between 55296 and 56319 and u.behind between 56320 and 57343" +
		" then chr(65536 + (u.v - 55296) * 1024 + u.behind - 56320)" +
		" when u.v between 56320 and 57343 and u.before between 55296 and 56319 then ''" +
		" when u.v between 55296 and 57343 then chr(65533) else chr(u.v) end"
	return "(select case when s.b is not null then coalesce((select string_agg(" + letter + ", '' order by u.i)" +
		" from (select w.i, w.v, lead(w.v) over (order by w.i) as behind, lag(w.v) over (order by w.i) as before" +
		" from (select g.i, " + unit + " as v from generate_series(0, length(s.b) - 1, 2) as g (i)) as w) as u), '') end" +
		" from (select " + sql + " as b) as s)"
}

// encodedUTF16 writes text as UTF-16LE, with pairs for what needs them.
func encodedUTF16(sql string) string {
	const unit = "set_byte(set_byte('\\x0000'::bytea, 0, (%) & 255), 1, (%) >> 8)"
	one := strings.ReplaceAll(unit, "%", "u.a")
	high := strings.ReplaceAll(unit, "%", "55296 + ((u.a - 65536) >> 10)")
	low := strings.ReplaceAll(unit, "%", "56320 + ((u.a - 65536) & 1023)")
	return "(select case when s.t is not null then coalesce((select string_agg(case when u.a < 65536 then " + one + " else " + high + " || " +
		low + " end, ''::bytea order by u.n) from (select ascii(x.c) as a, x.n" +
		" from string_to_table(s.t, null) with ordinality as x (c, n)) as u), ''::bytea) end from (select " + sql + " as t) as s)"
}

func toBit(e sqlExpression) string {
	if e.typ.Kind.IsCharacter() {
		return "(case lower(btrim(" + plain(e.sql) + ")) when 'true' then true when 'false' then false else (" +
			numberOfText(e.sql) + ")::integer <> 0 end)"
	}
	if e.typ.Kind.IsNumber() {
		return "(" + e.sql + " <> 0)"
	}
	return ""
}

// numberOfText reads text as a number; the empty text is 0, NULL stays.
func numberOfText(sql string) string { return "regexp_replace(btrim(" + plain(sql) + "), '^$', '0')" }

func toNumber(e sqlExpression, to value.Type) string {
	target := databaseType(to)
	switch k := e.typ.Kind; {
	case k.IsCharacter():
		return "(" + numberOfText(e.sql) + "::" + target + ")"
	case k == value.Bit:
		return "(" + e.sql + "::integer::" + target + ")"
	case k.IsNumber() && to.Kind.IsInteger() && !k.IsInteger() && !k.IsMoney():
		return "(trunc(" + e.sql + ")::" + target + ")"
	case k.IsNumber():
		return "(" + e.sql + "::" + target + ")"
	case k.IsOldTemporal():
		days := "(extract(epoch from " + e.sql + " - timestamp '1900-01-01') / 86400)"
		if to.Kind.IsInteger() {
			return "(round(" + days + ")::" + target + ")"
		}
		return "(" + days + "::" + target + ")"
	case k.IsBinary() && to.Kind.IsInteger():
		width := map[value.Kind]string{value.TinyInt: "8", value.SmallInt: "16", value.Int: "32", value.BigInt: "64"}[to.Kind]
		return "(('x' || lpad(right(encode(" + e.sql + ", 'hex'), " + width + " / 4), 16, '0'))::bit(64)::bigint::" + target + ")"
	}
	return ""
}

func toTemporal(e sqlExpression, to value.Type) string {
	target := databaseType(to)
	switch k := e.typ.Kind; {
	case k.IsCharacter():
		sql := "(coalesce(nullif(" + plain(e.sql) + ", ''), '1900-01-01')::" + target + ")"
		return thirds(sql, to)
	case k == value.Time && to.Kind != value.Time:
		return "(timestamp '1900-01-01' + " + e.sql + ")"
	case k.IsTemporal():
		if to.Kind == value.DateTime && k != value.Date && k != value.SmallDateTime {
			return thirds("("+e.sql+"::timestamp)", to)
		}
		return "(" + e.sql + "::" + target + ")"
	case k.IsNumber() && to.Kind.IsOldTemporal():
		return "(timestamp '1900-01-01' + (" + e.sql + ")::double precision * interval '1 day')"
	}
	return ""
}

// thirds rounds to 1/300 s, as datetime does.
func thirds(sql string, t value.Type) string {
	if t.Kind != value.DateTime {
		return sql
	}
	return "(date_trunc('minute', " + sql + ") + round(round(extract(milliseconds from " + sql + ")::numeric * 0.3) / 0.3)" +
		" * interval '1 millisecond')"
}

func toBytes(e sqlExpression, to value.Type) string {
	var sql string
	switch k := e.typ.Kind; {
	case k.IsBinary():
		sql = e.sql
	case k.IsUnicode():
		sql = encodedUTF16(plain(e.sql))
	case k.IsCharacter():
		sql = "convert_to(" + plain(e.sql) + ", 'WIN1252')"
	case k == value.Int:
		sql = "int4send(" + e.sql + ")"
	case k == value.BigInt:
		sql = "int8send(" + e.sql + ")"
	case k == value.SmallInt:
		sql = "int2send(" + e.sql + ")"
	default:
		return ""
	}
	if to.Length != value.Max {
		sql = "substring(" + sql + " from 1 for " + itoa(int(to.Length)) + ")"
	}
	return "(" + sql + ")"
}

// dateFormats are the styles of CONVERT for dates, as to_char writes them.
var dateFormats = map[string]string{
	"0": "Mon DD YYYY FMHH12:MIAM", "100": "Mon DD YYYY FMHH12:MIAM", "1": "MM/DD/YY", "101": "MM/DD/YYYY", "102": "YYYY.MM.DD",
	"103": "DD/MM/YYYY", "104": "DD.MM.YYYY", "105": "DD-MM-YYYY", "106": "DD Mon YYYY", "107": "Mon DD, YYYY", "8": "HH24:MI:SS",
	"108": "HH24:MI:SS", "110": "MM-DD-YYYY", "111": "YYYY/MM/DD", "12": "YYMMDD", "112": "YYYYMMDD", "114": "HH24:MI:SS:MS",
	"20": "YYYY-MM-DD HH24:MI:SS", "120": "YYYY-MM-DD HH24:MI:SS", "21": "YYYY-MM-DD HH24:MI:SS.MS",
	"121": "YYYY-MM-DD HH24:MI:SS.MS", "25": "YYYY-MM-DD HH24:MI:SS.MS", "23": "YYYY-MM-DD", "126": `YYYY-MM-DD"T"HH24:MI:SS.MS`,
	"127": `YYYY-MM-DD"T"HH24:MI:SS.MS`,
}

// styledDate writes a date as a style of CONVERT says.
func styledDate(e sqlExpression, style string) string {
	format := dateFormats[style]
	switch e.typ.Kind {
	case value.Date:
		if style == "121" || style == "21" || style == "120" || style == "20" {
			format = "YYYY-MM-DD"
		}
	case value.Time:
		return "(" + e.sql + ")::text"
	case value.DateTime2:
		if style == "121" || style == "21" || style == "25" {
			format = "YYYY-MM-DD HH24:MI:SS.US\"0\""
		}
	default:
	}
	if style == "0" || style == "100" { // the day and the hour are padded by blanks
		return "(to_char(" + e.sql + ", 'Mon ') || lpad(to_char(" + e.sql + ", 'FMDD'), 2) || to_char(" + e.sql + ", ' YYYY ')" +
			" || lpad(to_char(" + e.sql + ", 'FMHH12:MIAM'), 7))"
	}
	return "to_char(" + e.sql + ", '" + format + "')"
}

// convertStyled converts with a style of CONVERT: of dates to text and of text to dates, and of bytes to digits.
func (b *builder) convertStyled(e sqlExpression, to value.Type, style string) (sqlExpression, *fault.Error) {
	switch k := e.typ.Kind; {
	case to.Kind.IsCharacter() && k.IsTemporal() && dateFormats[style] != "":
		return sized(styledDate(e, style), to), nil
	case to.Kind.IsCharacter() && k.IsBinary() && (style == "1" || style == "2"):
		prefix := ""
		if style == "1" {
			prefix = "'0x' || "
		}
		return sized("("+prefix+"upper(encode("+e.sql+", 'hex')))", to), nil
	case style == "0" || to.Kind == value.XML || k.IsCharacter() && to.Kind.IsTemporal() || !k.IsTemporal() && to.Kind.IsCharacter():
		return b.convert(e, to, explicit)
	}
	return e, expression.Unsupported("CONVERT of " + e.typ.Kind.String() + " with style " + style + " in the database")
}
