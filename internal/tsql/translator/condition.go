package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// condition translates a condition to SQL.
func (b *builder) condition(node ast.Condition) (string, *fault.Error) {
	sql, err := b.conditionOf(node)
	if err != nil {
		return "", err.At(node.At().Line, "")
	}
	return sql, nil
}

func (b *builder) conditionOf(node ast.Condition) (string, *fault.Error) {
	switch node := node.(type) {
	case *ast.ConditionGroup:
		return b.condition(node.Inner)
	case *ast.Not:
		inner, err := b.condition(node.Operand)
		return "(not " + inner + ")", err
	case *ast.Logical:
		left, err := b.condition(node.Left)
		if err != nil {
			return "", err
		}
		right, err := b.condition(node.Right)
		return "(" + left + " " + strings.ToLower(node.Operator) + " " + right + ")", err
	case *ast.Comparison:
		left, right, err := b.both(node.Left, node.Right)
		if err != nil {
			return "", err
		}
		return b.comparison(node.Operator, left, right)
	case *ast.IsDistinct:
		left, right, err := b.both(node.Left, node.Right)
		if err != nil {
			return "", err
		}
		left, right, err = b.comparable("=", left, right)
		return "(" + left.sql + " is " + not(!node.Not, "distinct from ") + right.sql + ")", err
	case *ast.IsNull:
		e, err := b.expression(node.Operand)
		return "(" + e.sql + " is " + not(node.Not, "null") + ")", err
	case *ast.Between:
		return b.between(node)
	case *ast.In:
		return b.in(node)
	case *ast.Like:
		return b.like(node)
	case *ast.Exists:
		sql, _, err := b.query(node.Query, existing)
		return "exists (" + sql + ")", err
	case *ast.Quantified:
		return b.quantified(node)
	}
	return "", expression.Unsupported(interpreter.Construct(node))
}

// not writes a word with NOT before it.
func not(is bool, word string) string {
	if is {
		return "not " + word
	}
	return word
}

// comparable converts both sides to the type of higher precedence, and identifiers to their order.
func (b *builder) comparable(operator string, left, right sqlExpression) (l, r sqlExpression, err *fault.Error) {
	if err := value.CheckComparable(left.typ, right.typ, operator); err != nil {
		return left, right, err
	}
	t, err := value.Higher(left.typ, right.typ)
	if err != nil {
		return left, right, err
	}
	if t.Kind == value.Decimal || t.Kind.IsMoney() { // PostgreSQL compares numbers of any scale
		return left, right, b.numbers(&left, &right)
	}
	if t.Kind.IsCharacter() {
		t = value.Sized(t.Kind, value.Max)
	}
	if t.Kind.IsTemporal() && left.typ.Kind.IsTemporal() && right.typ.Kind.IsTemporal() && t.Kind != value.DateTimeOffset {
		return left, right, nil
	}
	if left, err = b.convert(left, t, implicit); err != nil {
		return left, right, err
	}
	if right, err = b.convert(right, t, implicit); err != nil {
		return left, right, err
	}
	if t.Kind == value.UniqueIdentifier && operator != "=" && operator != "<>" && operator != "!=" {
		left.sql, right.sql = identifierOrder(left.sql), identifierOrder(right.sql)
	}
	return left, right, nil
}

// numbers makes numbers of what is text or bit beside a decimal.
func (b *builder) numbers(sides ...*sqlExpression) *fault.Error {
	for i, e := range sides {
		if k := e.typ.Kind; k.IsNumber() && k != value.Bit {
			continue
		}
		converted, err := b.convert(*e, value.DecimalType(sides[1-i].typ), implicit)
		if err != nil {
			return err
		}
		*e = converted
	}
	return nil
}

// identifierOrder gives the bytes of an identifier in the order in which SQL Server compares them.
func identifierOrder(sql string) string {
	bytes := "uuid_send(" + sql + ")"
	parts := []string{"substring(" + bytes + " from 11)", "substring(" + bytes + " from 9 for 2)"}
	for _, at := range []string{"8", "7", "6", "5", "4", "3", "2", "1"} {
		parts = append(parts, "substring("+bytes+" from "+at+" for 1)")
	}
	return "(" + strings.Join(parts, " || ") + ")"
}

func (b *builder) comparison(operator string, left, right sqlExpression) (string, *fault.Error) {
	left, right, err := b.comparable(operator, left, right)
	if err != nil {
		return "", err
	}
	switch operator {
	case "!=":
		operator = "<>"
	case "!<":
		operator = ">="
	case "!>":
		operator = "<="
	}
	return "(" + left.sql + " " + operator + " " + right.sql + ")", nil
}

func (b *builder) between(node *ast.Between) (string, *fault.Error) {
	low, err := b.condition(&ast.Comparison{ConditionAt: node.ConditionAt, Operator: ">=", Left: node.Operand, Right: node.Low})
	if err != nil {
		return "", err
	}
	high, err := b.condition(&ast.Comparison{ConditionAt: node.ConditionAt, Operator: "<=", Left: node.Operand, Right: node.High})
	return "(" + not(node.Not, "("+low+" and "+high+")") + ")", err
}

func (b *builder) in(node *ast.In) (string, *fault.Error) {
	left, err := b.expression(node.Operand)
	if err != nil {
		return "", err
	}
	if node.Query == nil {
		var parts []string
		for _, item := range node.List {
			right, err := b.expression(item)
			if err != nil {
				return "", err
			}
			equal, err := b.comparison("=", left, right)
			if err != nil {
				return "", err
			}
			parts = append(parts, equal)
		}
		return "(" + not(node.Not, "("+strings.Join(parts, " or ")+")") + ")", nil
	}
	sql, columns, err := b.derived(node.Query)
	if err != nil {
		return "", err
	}
	if len(columns) != 1 {
		return "", fault.New(116)
	}
	name := b.alias("i")
	left, right, err := b.comparable("=", left, sqlExpression{sql: name + ".c", typ: columns[0].typ})
	if err != nil {
		return "", err
	}
	return "(" + left.sql + " " + not(node.Not, "in") + " (select " + right.sql + " from (" + sql + ") as " + name + " (c)))", nil
}

func (b *builder) quantified(node *ast.Quantified) (string, *fault.Error) {
	left, err := b.expression(node.Left)
	if err != nil {
		return "", err
	}
	sql, columns, err := b.derived(node.Query)
	if err != nil {
		return "", err
	}
	if len(columns) != 1 {
		return "", fault.New(116)
	}
	name := b.alias("i")
	left, right, err := b.comparable(node.Operator, left, sqlExpression{sql: name + ".c", typ: columns[0].typ})
	if err != nil {
		return "", err
	}
	operator := map[string]string{"!=": "<>", "!<": ">=", "!>": "<="}[node.Operator]
	if operator == "" {
		operator = node.Operator
	}
	return "(" + left.sql + " " + operator + " " + strings.ToLower(node.Quantifier) + " (select " + right.sql + " from (" + sql +
		") as " + name + " (c)))", nil
}

// like translates LIKE to a regular expression, which is made in Go of a pattern that reads no rows.
func (b *builder) like(node *ast.Like) (string, *fault.Error) {
	if b.readsRows(node.Pattern) || node.Escape != nil && b.readsRows(node.Escape) {
		return b.likeOfRows(node)
	}
	operand, err := b.expression(node.Operand)
	if err != nil {
		return "", err
	}
	if operand, err = b.convert(operand, varying(operand.typ, value.Sized(value.NVarChar, value.Max)), implicit); err != nil {
		return "", err
	}
	pattern, err := expression.Compile(node.Pattern, goScope{builder: b})
	if err != nil {
		return "", err
	}
	var escape *expression.Expression
	if node.Escape != nil {
		if escape, err = expression.Compile(node.Escape, goScope{builder: b}); err != nil {
			return "", err
		}
	}
	p := b.parameter(textOfGo(func(f *expression.Frame) (value.Value, *fault.Error) { return patternOf(f, pattern, escape) }), "")
	operator := "~*"
	if isExact(node.Operand) || isExact(node.Pattern) {
		operator = "~"
	}
	return "(" + not(node.Not, "("+plain(operand.sql)+" "+operator+" "+plain(p.sql)+")") + ")", nil
}

// textOfGo gives a text that Go computes when the statement runs.
func textOfGo(evaluate func(*expression.Frame) (value.Value, *fault.Error)) *expression.Expression {
	return &expression.Expression{Type: value.Sized(value.NVarChar, value.Max), Evaluate: evaluate}
}

// isExact reports whether COLLATE tells letters apart.
func isExact(node ast.Expression) bool {
	c, is := node.(*ast.Collate)
	name := ""
	if is {
		name = strings.ToUpper(c.Collation)
	}
	return strings.Contains(name, "_CS") || strings.Contains(name, "_BIN")
}

// likeOfRows translates LIKE with a pattern of the row; it has no sets of characters.
func (b *builder) likeOfRows(node *ast.Like) (string, *fault.Error) {
	left, right, err := b.both(node.Operand, node.Pattern)
	if err != nil {
		return "", err
	}
	if node.Escape != nil {
		return "", expression.Unsupported("LIKE with a pattern of the row and ESCAPE")
	}
	pattern := "replace(lower(" + plain(right.sql) + `), '\', '\\')`
	return "(" + not(node.Not, "(lower("+plain(left.sql)+") like "+pattern+")") + ")", nil
}

func patternOf(f *expression.Frame, pattern, escape *expression.Expression) (value.Value, *fault.Error) {
	v, err := pattern.Evaluate(f)
	if err != nil || v.IsNull() {
		return value.Null(value.Sized(value.NVarChar, value.Max)), err
	}
	mark := ""
	if escape != nil {
		e, err := escape.Evaluate(f)
		if err != nil {
			return v, err
		}
		mark = e.Raw()
	}
	return value.NewNVarChar(regularExpression(f.Context.Settings.Text(v), mark)), nil
}

// regularExpression gives a pattern of LIKE as a regular expression of PostgreSQL.
func regularExpression(pattern, escape string) string {
	var out strings.Builder
	out.WriteString("^(?:")
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; {
		case escape != "" && strings.HasPrefix(pattern[i:], escape) && i+len(escape) < len(pattern):
			i += len(escape)
			out.WriteString(escaped(pattern[i]))
			i++
		case c == '%':
			out.WriteString(".*")
			i++
		case c == '_':
			out.WriteString(".")
			i++
		case c == '[' && strings.IndexByte(pattern[i+1:], ']') > 0:
			end := i + 1 + strings.IndexByte(pattern[i+1:], ']')
			out.WriteString(characterSet(pattern[i+1 : end]))
			i = end + 1
		default:
			out.WriteString(escaped(c))
			i++
		}
	}
	out.WriteString(")$")
	return out.String()
}

func escaped(c byte) string {
	if strings.IndexByte(`.*+?()[]{}|^$\`, c) >= 0 {
		return `\` + string(c)
	}
	return string([]byte{c})
}

// characterSet gives the inside of [...] of LIKE as a bracket expression.
func characterSet(inside string) string {
	negation := ""
	if strings.HasPrefix(inside, "^") {
		negation, inside = "^", inside[1:]
	}
	inside = strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(inside)
	if strings.HasPrefix(inside, "^") && negation == "" {
		inside = `\` + inside
	}
	return "[" + negation + inside + "]"
}
