package parser_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// The printer writes a tree back as T-SQL: names in brackets, keywords in their full form, a semicolon behind each
// statement. It stands on the tree alone, so what the parser drops is missing in its text.

func name(text string) string { return "[" + strings.ReplaceAll(text, "]", "]]") + "]" }

func parts(n ast.Name) string {
	var all []string
	for _, part := range n.Parts {
		if part == "" {
			all = append(all, "")
		} else {
			all = append(all, name(part))
		}
	}
	return strings.Join(all, ".")
}

func list[T any](all []T, write func(T) string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, write(one))
	}
	return strings.Join(texts, ", ")
}

func names(all []string) string { return list(all, name) }

func parens(text string) string { return "(" + text + ")" }

func columns(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return parens(names(all))
}

// when gives a text with a blank before it, if the condition holds.
func when(condition bool, texts ...string) string {
	if !condition {
		return ""
	}
	return " " + strings.Join(texts, "")
}

func word(text string) string { return when(text != "", text) }

func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func isNil(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// with gives words and an expression, if there is one.
func with(words string, e ast.Expression) string {
	if isNil(e) {
		return ""
	}
	return " " + words + expression(e)
}

func named(n ast.Named) string {
	switch {
	case n.Variable != "":
		return n.Variable
	case n.IsString:
		return when(n.National, "N")[:len(when(n.National, "N"))] + text(n.Name.Parts[0])
	default:
		return parts(n.Name)
	}
}

var wordsOnly = regexp.MustCompile(`^[a-z]+( [a-z]+)+$`)

func dataType(t ast.DataType) string {
	result := parts(t.Name)
	if len(t.Name.Parts) == 1 && (wordsOnly.MatchString(t.Name.Parts[0]) || t.Name.Parts[0] == "cursor") {
		result = t.Name.Parts[0]
	}
	switch {
	case t.Max:
		result += "(max)"
	case len(t.Arguments) > 0:
		result += parens(list(t.Arguments, func(n int) string { return fmt.Sprint(n) }))
	case !t.Collection.IsEmpty():
		result += parens(word(t.Facet) + " " + parts(t.Collection))
	}
	return result
}

func option(o *ast.Option) string {
	return o.Name + when(o.Equals, "=") + with("", o.Value) + when(o.Unit != "" && o.Unit != ",", o.Unit) + when(o.Parens, options(o.List)) + when(o.Unit == ",", ",")
}

func options(all []*ast.Option) string { return parens(list(all, option)) }

func withOptions(all []*ast.Option) string { return when(len(all) > 0, "WITH ", options(all)) }

func expressions(all []ast.Expression) string { return list(all, expression) }

func orderBy(all []*ast.OrderItem) string {
	return when(len(all) > 0, "ORDER BY ", list(all, func(i *ast.OrderItem) string { return expression(i.Value) + word(i.Direction) }))
}

func literal(n *ast.Literal) string {
	switch n.Kind {
	case ast.String:
		return text(n.Text)
	case ast.NationalString:
		return "N" + text(n.Text)
	case ast.Binary:
		return "0x" + n.Text
	case ast.Money:
		return "$" + n.Text
	case ast.Null:
		return "NULL"
	case ast.Default:
		return "DEFAULT"
	default:
		return n.Text
	}
}

func window(w *ast.Window) string {
	if w == nil {
		return ""
	}
	if w.Bare {
		return name(w.Name)
	}
	result := ""
	if w.Name != "" {
		result = name(w.Name)
	}
	result += when(len(w.PartitionBy) > 0, "PARTITION BY ", expressions(w.PartitionBy)) + orderBy(w.OrderBy)
	if f := w.Frame; f != nil {
		bound := func(b ast.FrameBound) string { return with("", b.Count) + " " + b.Kind }
		if f.To != nil {
			result += " " + f.Unit + " BETWEEN" + bound(f.From) + " AND" + bound(*f.To)
		} else {
			result += " " + f.Unit + bound(f.From)
		}
	}
	return parens(result)
}

func over(w *ast.Window) string { return when(w != nil, "OVER ", window(w)) }

func tried(try bool) string {
	if try {
		return "TRY_"
	}
	return ""
}

func call(n *ast.Call) string {
	function := parts(n.Name)
	if at := slices.Index(n.Name.Parts, "$PARTITION"); at >= 0 && at < len(n.Name.Parts)-1 {
		function = "$PARTITION." + parts(ast.Name{Parts: n.Name.Parts[at+1:]})
		if at > 0 {
			function = parts(ast.Name{Parts: n.Name.Parts[:at]}) + "." + function
		}
	}
	result := function + parens(word(n.Quantifier)+" "+expressions(n.Arguments))
	result += when(n.WithinGroup != nil, "WITHIN GROUP (", orderBy(n.WithinGroup), ")")
	return result + word(n.Nulls) + over(n.Over)
}

func expression(e ast.Expression) string {
	switch n := e.(type) {
	case *ast.Literal:
		return literal(n)
	case *ast.Variable:
		return n.Name
	case *ast.SystemVariable:
		return n.Name
	case *ast.Keyword:
		return n.Word
	case *ast.ColumnReference:
		return parts(n.Name)
	case *ast.PseudoColumn:
		if n.Qualifier.IsEmpty() {
			return n.Name
		}
		return parts(n.Qualifier) + "." + n.Name
	case *ast.Star:
		if n.Qualifier.IsEmpty() {
			return "*"
		}
		return parts(n.Qualifier) + ".*"
	case *ast.Unary:
		return n.Operator + " " + expression(n.Operand)
	case *ast.Arithmetic:
		return expression(n.Left) + " " + n.Operator + " " + expression(n.Right)
	case *ast.Parenthesis:
		return parens(expression(n.Inner))
	case *ast.Collate:
		return expression(n.Operand) + " COLLATE " + name(n.Collation)
	case *ast.AtTimeZone:
		return expression(n.Operand) + " AT TIME ZONE " + expression(n.Zone)
	case *ast.Subquery:
		return parens(query(n.Query))
	case *ast.SimpleCase:
		result := "CASE " + expression(n.Input)
		for _, w := range n.Whens {
			result += " WHEN " + expression(w.Value) + " THEN " + expression(w.Result)
		}
		return result + with("ELSE ", n.Else) + " END"
	case *ast.SearchedCase:
		result := "CASE"
		for _, w := range n.Whens {
			result += " WHEN " + condition(w.Condition) + " THEN " + expression(w.Result)
		}
		return result + with("ELSE ", n.Else) + " END"
	case *ast.Iif:
		return "IIF(" + condition(n.Condition) + ", " + expression(n.True) + ", " + expression(n.False) + ")"
	default:
		return function(e)
	}
}

func function(e ast.Expression) string {
	switch n := e.(type) {
	case *ast.Call:
		return call(n)
	case *ast.Niladic:
		return n.Name
	case *ast.DatePart:
		return name(n.Name)
	case *ast.Cast:
		return tried(n.Try) + "CAST(" + expression(n.Operand) + " AS " + dataType(n.Type) + ")"
	case *ast.Convert:
		result := tried(n.Try) + "CONVERT(" + dataType(n.Type) + ", " + expression(n.Operand)
		if n.Style != nil {
			result += ", " + expression(n.Style)
		}
		return result + ")"
	case *ast.Parse:
		return tried(n.Try) + "PARSE(" + expression(n.Operand) + " AS " + dataType(n.Type) + with("USING ", n.Culture) + ")"
	case *ast.Trim:
		return "TRIM(" + n.Side + " " + expression(n.Characters) + " FROM " + expression(n.Operand) + ")"
	case *ast.NextValue:
		return "NEXT VALUE FOR " + parts(n.Sequence) + over(n.Over)
	case *ast.IdentityColumn:
		if n.Seed == nil {
			return "IDENTITY(" + dataType(n.Type) + ")"
		}
		return "IDENTITY(" + dataType(n.Type) + ", " + expression(n.Seed) + ", " + expression(n.Increment) + ")"
	case *ast.MethodCall:
		return expression(n.Target) + "." + name(n.Method) + parens(expressions(n.Arguments))
	case *ast.PropertyAccess:
		return expression(n.Target) + "." + name(n.Property)
	case *ast.StaticCall:
		if n.IsProperty {
			return parts(n.Type) + "::" + name(n.Method)
		}
		return parts(n.Type) + "::" + name(n.Method) + parens(expressions(n.Arguments))
	case *ast.JSONObject:
		var pairs []string
		for i := range n.Keys {
			pairs = append(pairs, expression(n.Keys[i])+": "+expression(n.Values[i]))
		}
		return "JSON_OBJECT(" + strings.Join(pairs, ", ") + word(n.Nulls) + ")"
	case *ast.JSONArray:
		return "JSON_ARRAY(" + expressions(n.Values) + word(n.Nulls) + ")"
	case *ast.OdbcEscape:
		return "{" + n.Kind + " " + expression(n.Value) + "}"
	default:
		panic(fmt.Sprintf("no text for %T", e))
	}
}
