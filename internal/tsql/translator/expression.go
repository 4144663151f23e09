package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// readsRows reports whether an expression needs PostgreSQL: it has a column, a query, an aggregate, or a function that differs from
// row to row.
func (b *builder) readsRows(node ast.Node) bool {
	found := false
	ast.Walk(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ColumnReference, *ast.Query, *ast.Star, *ast.PseudoColumn, *ast.NextValue:
			found = true
		case *ast.Variable:
			_, isArgument := b.inline[strings.ToLower(node.Name)]
			found = found || isArgument
		case *ast.Niladic:
			found = found || b.isDefinition && standing[node.Name].sql != ""
		case *ast.Call:
			name := strings.ToUpper(node.Name.Object())
			found = found || b.isDefinition && standing[name].sql != "" || node.Over != nil || isAggregate(name) || len(node.Name.Parts) > 1 ||
				windowNames[name] != "" || name == "NEWID" || name == "NEWSEQUENTIALID"
		}
		return !found
	})
	return found
}

// constant makes a parameter of an expression that reads no rows.
func (b *builder) constant(node ast.Expression) (sqlExpression, *fault.Error) {
	e, err := expression.Compile(node, goScope{builder: b})
	if err != nil {
		return sqlExpression{}, err
	}
	return b.parameter(e, constantKey(node)), nil
}

// constantKey names what is the same wherever it stands in a statement: a literal or a variable.
func constantKey(node ast.Expression) string {
	switch node := node.(type) {
	case *ast.Literal:
		return "literal " + node.Text
	case *ast.Variable:
		return "variable " + strings.ToLower(node.Name)
	case *ast.Parenthesis:
		return constantKey(node.Inner)
	}
	return ""
}

// expression translates an expression to SQL.
func (b *builder) expression(node ast.Expression) (sqlExpression, *fault.Error) {
	if !b.readsRows(node) {
		return b.constant(node)
	}
	e, err := b.ofRows(node)
	if err != nil && err.Number == unsupported {
		e, err = b.computedAhead(node, err)
	}
	if err != nil {
		return e, err.At(node.At().Line, "")
	}
	return e, nil
}

func (b *builder) ofRows(node ast.Expression) (sqlExpression, *fault.Error) {
	switch node := node.(type) {
	case *ast.ColumnReference:
		return b.resolve(node.Name)
	case *ast.PseudoColumn:
		return b.pseudoColumn(node)
	case *ast.Variable:
		return b.inline[strings.ToLower(node.Name)], nil
	case *ast.Parenthesis:
		return b.expression(node.Inner)
	case *ast.Unary:
		return b.unary(node)
	case *ast.Arithmetic:
		left, right, err := b.both(node.Left, node.Right)
		if err == nil && right.typ.Kind == value.Decimal {
			left, err = b.exactLiteral(node.Left, left)
		}
		if err == nil && left.typ.Kind == value.Decimal {
			right, err = b.exactLiteral(node.Right, right)
		}
		if err != nil {
			return left, err
		}
		return b.operation(node.Operator, left, right)
	case *ast.Collate:
		return b.collated(node)
	case *ast.Subquery:
		return b.scalar(node.Query)
	case *ast.SimpleCase, *ast.SearchedCase, *ast.Iif:
		return b.cases(node)
	case *ast.Cast:
		return b.cast(node.Operand, node.Type, nil)
	case *ast.Convert:
		return b.cast(node.Operand, node.Type, node.Style)
	case *ast.Call:
		return b.call(node)
	case *ast.Niladic:
		return standing[node.Name], nil
	case *ast.Trim:
		return b.trim(node)
	case *ast.MethodCall:
		return b.method(node)
	case *ast.NextValue:
		return b.nextValue(node)
	}
	return sqlExpression{}, expression.Unsupported(interpreter.Construct(node))
}

// exactLiteral makes a whole constant beside a decimal as precise as it is written, as the evaluation in Go does.
func (b *builder) exactLiteral(node ast.Expression, e sqlExpression) (sqlExpression, *fault.Error) {
	sign := ""
	if unary, is := node.(*ast.Unary); is && unary.Operator == "-" {
		sign, node = "-", unary.Operand
	}
	literal, is := node.(*ast.Literal)
	if !is || literal.Kind != ast.Integer || e.typ.Kind != value.Int {
		return e, nil
	}
	exact, err := b.constant(&ast.Literal{ExpressionAt: literal.ExpressionAt, Kind: ast.Decimal, Text: literal.Text})
	if sign != "" && err == nil {
		exact.sql = "(-" + exact.sql + ")"
	}
	return exact, err
}

func (b *builder) both(left, right ast.Expression) (l, r sqlExpression, err *fault.Error) {
	if l, err = b.expression(left); err != nil {
		return l, r, err
	}
	r, err = b.expression(right)
	return l, r, err
}

func (b *builder) unary(node *ast.Unary) (sqlExpression, *fault.Error) {
	e, err := b.expression(node.Operand)
	if err != nil || node.Operator == "+" {
		return e, err
	}
	if !e.typ.Kind.IsNumber() {
		return e, fault.New(8117, e.typ.Kind, "minus")
	}
	return sqlExpression{sql: "(" + node.Operator + e.sql + ")", typ: e.typ}, nil
}

// collated gives text the order of its bytes where the collation tells letters apart.
func (b *builder) collated(node *ast.Collate) (sqlExpression, *fault.Error) {
	e, err := b.expression(node.Operand)
	if err != nil {
		return e, err
	}
	name := strings.ToUpper(node.Collation)
	if strings.Contains(name, "_CS") || strings.Contains(name, "_BIN") {
		e.sql = "(" + e.sql + ` collate "C")`
	} else {
		e.sql = "(" + e.sql + " collate " + collation + ")"
	}
	return e, nil
}

// operation translates an operator; both sides are converted to the type of higher precedence.
func (b *builder) operation(operator string, left, right sqlExpression) (sqlExpression, *fault.Error) {
	if operator == "||" {
		operator = "+"
	}
	if len(operator) != 1 {
		return left, expression.Unsupported(operator)
	}
	t, err := value.OperationType(operator[0], left.typ, right.typ)
	if err != nil {
		return left, err
	}
	switch k := t.Kind; {
	case k.IsCharacter():
		return b.concatenation(left, right, t)
	case k.IsBinary():
		return sqlExpression{sql: "(" + left.sql + " || " + right.sql + ")", typ: t}, nil
	case k.IsTemporal():
		return b.shifted(operator, left, right, t)
	}
	to := t
	if t.Kind == value.Decimal { // each side keeps its own scale
		to = value.Type{}
	}
	if left, err = b.operand(left, right, to); err != nil {
		return left, err
	}
	if right, err = b.operand(right, left, to); err != nil {
		return right, err
	}
	if operator == "^" {
		operator = "#"
	}
	sql := "(" + left.sql + " " + operator + " " + right.sql + ")"
	switch {
	case t.Kind == value.Decimal && operator == "/":
		// A quotient is cut; it is computed with more digits than it keeps.
		sql = "trunc((" + left.sql + ")::numeric(1000,38) / " + right.sql + ", " + itoa(int(t.Scale)) + ")"
	case t.Kind == value.Decimal, t.Kind.IsMoney():
		sql = "(" + sql + "::" + databaseType(t) + ")"
	case t.Kind == value.TinyInt || t.Kind == value.SmallInt || t.Kind == value.Real:
		sql = "(" + sql + "::" + databaseType(t) + ")"
	}
	return sqlExpression{sql: sql, typ: t}, nil
}

// operand converts one side of an operator; without a type, to the decimal that holds it.
func (b *builder) operand(e, other sqlExpression, to value.Type) (sqlExpression, *fault.Error) {
	if to.Kind == value.Unknown {
		switch {
		case e.typ.Kind == value.Decimal:
			return e, nil
		case e.typ.Kind.IsExactNumber():
			to = value.DecimalType(e.typ)
		default:
			to = value.DecimalType(other.typ)
		}
	}
	return b.convert(e, to, implicit)
}

func (b *builder) concatenation(left, right sqlExpression, t value.Type) (sqlExpression, *fault.Error) {
	var sides [2]string
	for i, e := range []sqlExpression{left, right} {
		converted, err := b.convert(e, varying(e.typ, t), implicit)
		if err != nil {
			return e, err
		}
		sides[i] = plain(converted.sql)
	}
	return text("("+sides[0]+" || "+sides[1]+")", t), nil
}

// varying gives text its own length, and other types one that holds them, of the family of the result.
func varying(t, result value.Type) value.Type {
	if t.Kind.IsCharacter() {
		return t
	}
	return value.Sized(result.Kind, value.MaxBytes)
}

// plain makes PostgreSQL's text of bpchar, with the blanks at its end, which a cast would cut.
func plain(sql string) string { return "textin(bpcharout(" + sql + "))" }

// text makes an expression of T-SQL of PostgreSQL's text.
func text(sql string, t value.Type) sqlExpression {
	return sqlExpression{sql: "((" + sql + ")::bpchar collate " + collation + ")", typ: t}
}

// shifted adds days to datetime, or gives the difference of two as a datetime.
func (b *builder) shifted(operator string, left, right sqlExpression, t value.Type) (sqlExpression, *fault.Error) {
	if left.typ.Kind.IsTemporal() && right.typ.Kind.IsTemporal() {
		sql := "(timestamp '1900-01-01' + (" + left.sql + " - " + right.sql + "))"
		if operator == "+" {
			sql = "(" + left.sql + " + (" + right.sql + " - timestamp '1900-01-01'))"
		}
		return sqlExpression{sql: sql, typ: t}, nil
	}
	if right.typ.Kind.IsTemporal() {
		left, right = right, left
	}
	days, err := b.convert(right, value.Of(value.Float), implicit)
	if err != nil {
		return days, err
	}
	return sqlExpression{sql: "(" + left.sql + " " + operator + " " + days.sql + " * interval '1 day')", typ: t}, nil
}

// scalar translates a query in the place of a value.
func (b *builder) scalar(q *ast.Query) (sqlExpression, *fault.Error) {
	if q.For != nil {
		return b.forQuery(q)
	}
	sql, columns, err := b.derived(q)
	if err != nil {
		return sqlExpression{}, err
	}
	if len(columns) != 1 {
		return sqlExpression{}, fault.New(116)
	}
	return sqlExpression{sql: "(" + sql + ")", typ: columns[0].typ}, nil
}

// cases translates CASE and IIF: the results take the highest type.
func (b *builder) cases(node ast.Expression) (sqlExpression, *fault.Error) {
	var conditions []string
	var results []ast.Expression
	var otherwise ast.Expression
	add := func(c ast.Condition, result ast.Expression) *fault.Error {
		sql, err := b.condition(c)
		conditions, results = append(conditions, sql), append(results, result)
		return err
	}
	switch node := node.(type) {
	case *ast.SimpleCase:
		for _, w := range node.Whens {
			if err := add(&ast.Comparison{Operator: "=", Left: node.Input, Right: w.Value}, w.Result); err != nil {
				return sqlExpression{}, err
			}
		}
		otherwise = node.Else
	case *ast.SearchedCase:
		for _, w := range node.Whens {
			if err := add(w.Condition, w.Result); err != nil {
				return sqlExpression{}, err
			}
		}
		otherwise = node.Else
	case *ast.Iif:
		if err := add(node.Condition, node.True); err != nil {
			return sqlExpression{}, err
		}
		otherwise = node.False
	}
	if otherwise != nil {
		results = append(results, otherwise)
	}
	values, t, err := b.highest(results)
	if err != nil {
		return sqlExpression{}, err
	}
	var sql strings.Builder
	sql.WriteString("(case")
	for i, c := range conditions {
		sql.WriteString(" when " + c + " then " + values[i].sql)
	}
	if otherwise != nil {
		sql.WriteString(" else " + values[len(values)-1].sql)
	}
	sql.WriteString(" end)")
	return sqlExpression{sql: sql.String(), typ: t}, nil
}

// highest converts expressions to the highest of their types.
func (b *builder) highest(nodes []ast.Expression) ([]sqlExpression, value.Type, *fault.Error) {
	var t value.Type
	values := make([]sqlExpression, len(nodes))
	for i, node := range nodes {
		e, err := b.expression(node)
		if err != nil {
			return nil, t, err
		}
		if values[i] = e; i == 0 {
			t = e.typ
		} else if t, err = value.Higher(t, e.typ); err != nil {
			return nil, t, err
		}
	}
	t = shown(t)
	for i, e := range values {
		converted, err := b.convert(e, t, implicit)
		if err != nil {
			return nil, t, err
		}
		values[i] = converted
	}
	return values, t, nil
}
