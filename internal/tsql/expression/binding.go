package expression

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
	"github.com/parley-broker/parley/internal/tsql/xquery"
)

// A Binding has what the names of sql:variable and sql:column in an XQuery stand for. Page: xml/binding-relational-data-inside-xml-data.
type Binding map[string]*Expression

// Bind compiles the names: those that begin with @ are variables, others columns of the row.
func Bind(names []string, scope Scope) (Binding, *fault.Error) {
	b := Binding{}
	for _, name := range names {
		var node ast.Expression = &ast.Variable{Name: name}
		if !strings.HasPrefix(name, "@") {
			node = &ast.ColumnReference{Name: ast.Name{Parts: strings.Split(name, ".")}}
		}
		e, err := Compile(node, scope)
		if err != nil {
			return nil, err
		}
		b[name] = e
	}
	return b, nil
}

// In gives the values as literals of a path.
func (b Binding) In(f *Frame) xquery.Variables {
	return func(name string) (string, *fault.Error) {
		v, err := b[name].Evaluate(f)
		if err != nil {
			return "", err
		}
		text := f.Context.Settings.Text(v)
		switch {
		case v.IsNull():
			return "(//*[false()])", nil
		case v.Kind().IsExactNumber():
			return text, nil
		case !strings.Contains(text, "'"):
			return "'" + text + "'", nil
		case !strings.Contains(text, "\""):
			return "\"" + text + "\"", nil
		}
		return "concat('" + strings.ReplaceAll(text, "'", "', \"'\", '") + "')", nil
	}
}

// xmlOf gives the nodes of a name of type xml; false for another type.
func (b Binding) xmlOf(f *Frame) func(name string) (string, bool, *fault.Error) {
	return func(name string) (string, bool, *fault.Error) {
		if b[name].Type.Kind != value.XML {
			return "", false, nil
		}
		v, err := b[name].Evaluate(f)
		return v.Raw(), true, err
	}
}
