package parser_test

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

func sourceAlias(a ast.Alias) string {
	return when(a.Name != "", "AS ", name(a.Name)) + columns(a.Columns)
}

func tableHints(all []*ast.TableHint, bare bool) string {
	if len(all) == 0 {
		return ""
	}
	value := func(v string) string {
		if v != "" && v[0] >= '0' && v[0] <= '9' {
			return v
		}
		return name(v)
	}
	hints := parens(list(all, func(h *ast.TableHint) string {
		values := list(h.Values, value)
		if len(h.Columns) > 0 {
			values += columns(h.Columns)
		}
		if h.Parens {
			values = parens(values)
		}
		return h.Name + when(h.Equals, "=") + " " + values
	}))
	if bare {
		return " " + hints
	}
	return " WITH " + hints
}

func rows(all [][]ast.Expression) string {
	return "VALUES " + list(all, func(row []ast.Expression) string { return parens(expressions(row)) })
}

func source(s ast.TableSource) string {
	switch n := s.(type) {
	case *ast.TableName:
		return parts(n.Name) + temporal(n.Temporal) + sample(n.Sample) + sourceAlias(n.Alias) + tableHints(n.Hints, n.BareHints)
	case *ast.TableVariable:
		return n.Name + sourceAlias(n.Alias) + tableHints(n.Hints, false)
	case *ast.DerivedTable:
		return parens(query(n.Query)) + sourceAlias(n.Alias)
	case *ast.ValuesTable:
		return parens(rows(n.Rows)) + sourceAlias(n.Alias)
	case *ast.ChangedTable:
		return parens(statement(n.Statement)) + sourceAlias(n.Alias)
	case *ast.FunctionTable:
		schema := ""
		if !n.SchemaTable.IsEmpty() {
			schema = " WITH " + parens(parts(n.SchemaTable))
		}
		if len(n.Schema) > 0 {
			schema = " WITH " + parens(list(n.Schema, func(c *ast.SchemaColumn) string {
				return name(c.Name) + " " + dataType(c.Type) + with("", c.Path) + when(c.AsJSON, "AS JSON")
			}))
		}
		return expression(n.Function) + schema + sourceAlias(n.Alias) + tableHints(n.Hints, false)
	case *ast.RowsetTable:
		result := n.Function + parens(strings.Join(n.Words, " "))
		if !n.Name.IsEmpty() {
			result += "." + parts(n.Name)
		}
		return result + when(len(n.Schema) > 0, "WITH ", strings.Join(n.Schema, " ")) + sourceAlias(n.Alias)
	case *ast.Join:
		kind := n.Kind + word(n.Hint) + " JOIN "
		if strings.HasSuffix(n.Kind, "APPLY") {
			kind = n.Kind + " "
		}
		result := source(n.Left) + " " + kind + source(n.Right)
		if n.On != nil {
			result += " ON " + condition(n.On)
		}
		return result
	case *ast.SourceGroup:
		return parens(source(n.Inner))
	case *ast.Pivot:
		return source(n.Input) + " PIVOT (" + call(n.Aggregate) + " FOR " + parts(n.Column) + " IN " + parens(names(n.Values)) + ")" + sourceAlias(n.Alias)
	case *ast.Unpivot:
		return source(n.Input) + " UNPIVOT (" + name(n.Value) + " FOR " + name(n.Column) + " IN " + parens(names(n.Columns)) + ")" + sourceAlias(n.Alias)
	default:
		panic(fmt.Sprintf("no text for %T", s))
	}
}

func temporal(t *ast.Temporal) string {
	if t == nil {
		return ""
	}
	words := " FOR SYSTEM_TIME " + t.Kind
	switch t.Kind {
	case "FROM":
		return words + " " + expression(t.From) + " TO " + expression(t.To)
	case "BETWEEN":
		return words + " " + expression(t.From) + " AND " + expression(t.To)
	case "CONTAINED IN":
		return words + parens(expression(t.From)+", "+expression(t.To))
	default:
		return words + with("", t.From)
	}
}

func sample(s *ast.Sample) string {
	if s == nil {
		return ""
	}
	result := " TABLESAMPLE" + when(s.System, "SYSTEM") + parens(expression(s.Size)+word(s.Unit))
	if s.Repeatable != nil {
		result += " REPEATABLE" + parens(expression(s.Repeatable))
	}
	return result
}

func withClause(w *ast.With) string {
	if w == nil {
		return ""
	}
	var all []string
	if len(w.Namespaces) > 0 {
		all = append(all, "XMLNAMESPACES "+parens(list(w.Namespaces, func(n *ast.XMLNamespace) string {
			if n.Default {
				return "DEFAULT " + expression(n.URI)
			}
			return expression(n.URI) + " AS " + name(n.Prefix)
		})))
	}
	if w.ChangeContext != nil {
		all = append(all, "CHANGE_TRACKING_CONTEXT "+parens(expression(w.ChangeContext)))
	}
	for _, t := range w.Tables {
		all = append(all, name(t.Name)+columns(t.Columns)+" AS "+parens(query(t.Query)))
	}
	return "WITH " + strings.Join(all, ", ") + " "
}

func queryHints(all []*ast.QueryHint) string {
	if len(all) == 0 {
		return ""
	}
	return " OPTION " + parens(list(all, func(h *ast.QueryHint) string {
		result := h.Words
		switch h.Words {
		case "MAX_GRANT_PERCENT", "MIN_GRANT_PERCENT", "LABEL":
			result += " ="
		case "TABLE HINT":
			result += " (" + parts(h.Table)
			for _, hint := range h.Hints {
				result += ", " + strings.TrimSuffix(strings.TrimPrefix(tableHints([]*ast.TableHint{hint}, true), " ("), ")")
			}
			result += ")"
		}
		result += with("", h.Value)
		if len(h.Items) > 0 {
			result += parens(list(h.Items, func(i *ast.HintItem) string {
				switch {
				case i.Variable == "":
					return expression(i.Value)
				case i.Value == nil:
					return i.Variable + " UNKNOWN"
				default:
					return i.Variable + " = " + expression(i.Value)
				}
			}))
		}
		return result
	}))
}
