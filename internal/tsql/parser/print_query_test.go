package parser_test

import (
	"fmt"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

func not(is bool) string { return when(is, "NOT") }

func condition(c ast.Condition) string {
	switch n := c.(type) {
	case *ast.Logical:
		return condition(n.Left) + " " + n.Operator + " " + condition(n.Right)
	case *ast.Not:
		return "NOT " + condition(n.Operand)
	case *ast.ConditionGroup:
		return parens(condition(n.Inner))
	case *ast.Comparison:
		return expression(n.Left) + " " + n.Operator + " " + expression(n.Right)
	case *ast.Quantified:
		return expression(n.Left) + " " + n.Operator + " " + n.Quantifier + parens(query(n.Query))
	case *ast.IsDistinct:
		return expression(n.Left) + " IS" + not(n.Not) + " DISTINCT FROM " + expression(n.Right)
	case *ast.IsNull:
		return expression(n.Operand) + " IS" + not(n.Not) + " NULL"
	case *ast.Between:
		return expression(n.Operand) + not(n.Not) + " BETWEEN " + expression(n.Low) + " AND " + expression(n.High)
	case *ast.In:
		inner := expressions(n.List)
		if n.Query != nil {
			inner = query(n.Query)
		}
		return expression(n.Operand) + not(n.Not) + " IN " + parens(inner)
	case *ast.Like:
		return expression(n.Operand) + not(n.Not) + " LIKE " + expression(n.Pattern) + with("ESCAPE ", n.Escape)
	case *ast.Exists:
		return "EXISTS " + parens(query(n.Query))
	case *ast.UpdatedColumn:
		return "UPDATE" + parens(name(n.Column))
	case *ast.FullText:
		searched := parens(expressions(n.Columns))
		if n.Property != nil {
			searched = "PROPERTY(" + expressions(n.Columns) + ", " + expression(n.Property) + ")"
		}
		return n.Function + "(" + searched + ", " + expression(n.Search) + when(n.Language != nil, ", LANGUAGE") + with("", n.Language) + ")"
	case *ast.CurrentOf:
		return "CURRENT OF " + cursor(n.Cursor)
	default:
		panic(fmt.Sprintf("no text for %T", c))
	}
}

func cursor(c ast.CursorName) string {
	if c.Variable != "" {
		return when(c.Global, "GLOBAL ") + c.Variable
	}
	return when(c.Global, "GLOBAL ") + name(c.Name)
}

func where(c ast.Condition) string {
	if c == nil {
		return ""
	}
	return " WHERE " + condition(c)
}

func query(q *ast.Query) string {
	result := body(q.Body) + orderBy(q.OrderBy)
	if q.Offset != nil {
		result += " OFFSET " + expression(q.Offset) + " ROWS"
	}
	if q.Fetch != nil {
		result += " FETCH NEXT " + expression(q.Fetch) + " ROWS ONLY"
	}
	if f := q.For; f != nil {
		result += " FOR " + f.Kind + word(f.Mode)
		if f.ElementName != nil {
			result += parens(expression(f.ElementName))
		}
		for _, o := range f.Options {
			result += ", " + o.Name
			if o.Value != nil {
				result += parens(expression(o.Value))
			}
		}
	}
	return result
}

func body(b ast.QueryBody) string {
	switch n := b.(type) {
	case *ast.QueryGroup:
		return parens(query(n.Query))
	case *ast.SetOperation:
		return body(n.Left) + " " + n.Operator + " " + body(n.Right)
	case *ast.Specification:
		return specification(n)
	default:
		panic(fmt.Sprintf("no text for %T", b))
	}
}

func top(t *ast.Top) string {
	if t == nil {
		return ""
	}
	count := expression(t.Count)
	if t.Parens {
		count = parens(count)
	}
	return " TOP " + count + when(t.Percent, "PERCENT") + when(t.WithTies, "WITH TIES")
}

func resultColumn(n *ast.ResultColumn) string {
	return expression(n.Value) + when(n.HasAlias, "AS ", alias(n.Alias))
}

// alias writes an empty name as a string, because brackets hold no empty name that SQL Server takes.
func alias(a string) string {
	if a == "" {
		return "''"
	}
	return name(a)
}

func items(all []ast.SelectItem) string {
	return list(all, func(i ast.SelectItem) string {
		switch n := i.(type) {
		case *ast.ResultColumn:
			return resultColumn(n)
		case *ast.AssignedColumn:
			return n.Variable + " " + n.Operator + " " + expression(n.Value)
		default:
			panic(fmt.Sprintf("no text for %T", i))
		}
	})
}

func specification(n *ast.Specification) string {
	result := "SELECT" + word(n.Quantifier) + top(n.Top) + " " + items(n.Items)
	if n.Into != nil {
		result += " INTO " + parts(n.Into.Table) + when(n.Into.Filegroup != "", "ON ", name(n.Into.Filegroup))
	}
	result += from(n.From) + where(n.Where)
	if g := n.GroupBy; g != nil {
		result += " GROUP BY" + when(g.All, "ALL") + " " + list(g.Items, groupItem) + when(g.With != "", "WITH ", g.With)
	}
	if n.Having != nil {
		result += " HAVING " + condition(n.Having)
	}
	if len(n.Windows) > 0 {
		result += " WINDOW " + list(n.Windows, func(w *ast.NamedWindow) string { return name(w.Name) + " AS " + window(w.Window) })
	}
	return result
}

func from(all []ast.TableSource) string { return when(len(all) > 0, "FROM ", list(all, source)) }

func groupItem(g *ast.GroupItem) string {
	switch g.Kind {
	case "":
		return expression(g.Value)
	case "LIST":
		return parens(list(g.Items, groupItem))
	default:
		return g.Kind + " " + parens(list(g.Items, groupItem))
	}
}
