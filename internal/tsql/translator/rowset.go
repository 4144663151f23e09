package translator

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
	"github.com/parley-broker/parley/internal/tsql/xquery"
)

func droppedName(parsed *ast.Batch) []string {
	if len(parsed.Statements) != 1 {
		return nil
	}
	node, is := parsed.Statements[0].(*ast.Drop)
	if !is || len(node.Names) != 1 {
		return nil
	}
	return node.Names[0].Parts
}

// functionTable translates a function in FROM: nodes of xml, STRING_SPLIT, a function of the user.
func (b *builder) functionTable(node *ast.FunctionTable) (string, *fault.Error) {
	if method, is := node.Function.(*ast.MethodCall); is && method.Method == "nodes" {
		return b.nodes(method, node.Alias)
	}
	call, is := node.Function.(*ast.Call)
	switch {
	case is && len(call.Name.Parts) == 1 && strings.EqualFold(call.Name.Object(), "STRING_SPLIT"):
		return b.stringSplit(call, node.Alias)
	case is && len(call.Name.Parts) == 1 && strings.EqualFold(call.Name.Object(), "GENERATE_SERIES"):
		return b.series(call, node.Alias)
	case is && len(call.Name.Parts) == 1 && strings.EqualFold(call.Name.Object(), "OPENJSON"):
		return b.openJSON(call, node)
	case is && isTextOfHandle(call):
		return b.textOfHandle(call, node.Alias)
	case is && len(call.Name.Parts) > 1:
		return b.userTable(call, node.Alias)
	}
	return "", expression.Unsupported(interpreter.Construct(node.Function))
}

// stringSplit translates STRING_SPLIT.
func (b *builder) stringSplit(call *ast.Call, alias ast.Alias) (string, *fault.Error) {
	hasPlace := false
	if len(call.Arguments) == 3 {
		flag, is := call.Arguments[2].(*ast.Literal)
		if !is {
			return "", fault.New(8748)
		}
		hasPlace = flag.Text == "1"
	} else if len(call.Arguments) != 2 {
		return "", fault.New(189, "string_split", 2, 3)
	}
	whole, separator, err := b.both(call.Arguments[0], call.Arguments[1])
	if err != nil {
		return "", err
	}
	part := text("u.part", longest(whole.typ))
	columns, place := []sourceColumn{{name: "value", typ: part.typ}}, ""
	if hasPlace {
		columns, place = append(columns, sourceColumn{name: "ordinal", typ: value.Of(value.BigInt)}), ", u.place"
	}
	sql := "(select " + part.sql + place + " from string_to_table(" + plain(whole.sql) + ", " + plain(separator.sql) +
		") with ordinality as u (part, place) order by u.place)"
	return b.named(sql, columns, alias)
}

// series translates GENERATE_SERIES: its numbers have the type of its arguments, which must be the same.
func (b *builder) series(call *ast.Call, alias ast.Alias) (string, *fault.Error) {
	if len(call.Arguments) < 2 || len(call.Arguments) > 3 {
		return "", fault.New(189, "generate_series", 2, 3)
	}
	var t value.Type
	var bounds []string
	for i, argument := range call.Arguments {
		e, err := b.expression(argument)
		if err != nil {
			return "", err
		}
		if k := e.typ.Kind; !k.IsInteger() && k != value.Decimal {
			return "", fault.New(8116, k, i+1, "generate_series")
		}
		if i == 0 {
			t = e.typ
		} else if e.typ.Kind != t.Kind {
			return "", fault.New(5373)
		}
		if e.typ.Scale > t.Scale || e.typ.Precision > t.Precision {
			t = value.Numeric(max(int(t.Precision), int(e.typ.Precision)), max(int(t.Scale), int(e.typ.Scale)))
		}
		bounds = append(bounds, "("+e.sql+")::numeric")
	}
	step := "(case when " + bounds[0] + " > " + bounds[1] + " then -1 else 1 end)"
	if len(bounds) == 3 {
		step = bounds[2]
	}
	sql := "(select g.n::" + databaseType(t) + " from generate_series(" + bounds[0] + ", " + bounds[1] + ", " + step + ") as g (n))"
	return b.named(sql, []sourceColumn{{name: "value", typ: t}}, alias)
}

// nodes translates nodes() of xml. Of a value that reads no rows Go finds the nodes; of a column the database does.
func (b *builder) nodes(node *ast.MethodCall, alias ast.Alias) (string, *fault.Error) {
	if len(node.Arguments) != 1 {
		return "", fault.New(174, "nodes", 1)
	}
	written, err := literalText(node.Arguments[0])
	if err != nil {
		return "", fault.New(8172, 1, "nodes")
	}
	query, err := xquery.Compile("nodes", written, b.Namespaces())
	if err != nil {
		return "", err
	}
	columns := []sourceColumn{{name: "nodes", typ: value.Of(value.XML), isNode: true}}
	if b.readsRows(node.Target) {
		sql, err := b.nodesOfRow(node, query)
		if err != nil {
			return "", err
		}
		return b.named(sql, columns, alias)
	}
	target, err := expression.Compile(node.Target, goScope{builder: b})
	if err != nil {
		return "", err
	}
	if target.Type.Kind != value.XML {
		return "", fault.New(258, target.Type.Kind)
	}
	bound, err := expression.Bind(query.Names(), goScope{builder: b})
	if err != nil {
		return "", err
	}
	found := b.parameter(&expression.Expression{
		Type: value.Sized(value.NVarChar, value.Max), Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
			return found(f, query, target, bound)
		},
	}, "")
	sql := "(select u.node::xml from json_array_elements_text(" + plain(found.sql) + "::json)" +
		" with ordinality as u (node, place) order by u.place)"
	return b.named(sql, columns, alias)
}

// found gives the nodes of a value as a list of JSON.
func found(f *expression.Frame, query *xquery.Query, target *expression.Expression, bound expression.Binding) (value.Value, *fault.Error) {
	v, err := target.Evaluate(f)
	if err != nil || v.IsNull() {
		return value.NewNVarChar("[]"), err
	}
	root, err := xquery.Parse(v.Raw())
	if err != nil {
		return v, err
	}
	nodes, err := query.Nodes(root, bound.In(f))
	if err != nil {
		return v, err
	}
	list, failed := json.Marshal(nodes)
	if failed != nil || nodes == nil {
		list = []byte("[]")
	}
	return value.NewNVarChar(string(list)), nil
}

// nodesOfRow finds the nodes of a column by a path of XPath 1.0.
func (b *builder) nodesOfRow(node *ast.MethodCall, query *xquery.Query) (string, *fault.Error) {
	target, err := b.expression(node.Target)
	if err != nil {
		return "", err
	}
	if target.typ.Kind != value.XML {
		return "", fault.New(258, target.typ.Kind)
	}
	path, namespaces, ok := query.Path()
	if !ok {
		return "", expression.Unsupported(".nodes() of a column with sql:variable or a default namespace")
	}
	if target.isNode { // the path begins at the first element
		switch rest := strings.TrimPrefix(path, "./"); {
		case path == ".":
			path = "/*"
		case strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "("):
			return "", expression.Unsupported(".nodes() of nodes with this path")
		default:
			path = "/*/" + rest
		}
	}
	prefixes := make([]string, 0, len(namespaces))
	for prefix := range namespaces {
		prefixes = append(prefixes, prefix)
	}
	slices.Sort(prefixes)
	arguments := b.textParameter(path) + ", " + target.sql
	var pairs []string
	for _, prefix := range prefixes {
		pairs = append(pairs, "array["+b.textParameter(prefix)+", "+b.textParameter(namespaces[prefix])+"]")
	}
	if pairs != nil {
		arguments += ", array[" + strings.Join(pairs, ", ") + "]"
	}
	return "(select u.node from unnest(xpath(" + arguments + ")) with ordinality as u (node, place) order by u.place)", nil
}

// textParameter makes a parameter of a text that the statement has.
func (b *builder) textParameter(written string) string {
	e, _ := expression.Compile(&ast.Literal{Kind: ast.NationalString, Text: written}, goScope{builder: b})
	return plain(b.parameter(e, "literal "+written).sql)
}

// method translates a method of xml of a row: none has a form in SQL.
func (*builder) method(node *ast.MethodCall) (sqlExpression, *fault.Error) {
	return sqlExpression{}, expression.Unsupported(interpreter.Construct(node) + " of rows in the database")
}
