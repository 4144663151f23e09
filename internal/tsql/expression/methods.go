package expression

import (
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
	"github.com/parley-broker/parley/internal/tsql/xquery"
)

// A document is the xml that was read last: a batch asks the same value several times.
type document struct {
	text string
	root *xquery.Node
}

// documentOf gives the tree of a value of xml.
func (f *Frame) documentOf(v value.Value) (*xquery.Node, *fault.Error) {
	if f.document.root != nil && f.document.text == v.Raw() {
		return f.document.root, nil
	}
	root, err := xquery.Parse(v.Raw())
	if err != nil {
		return nil, err
	}
	f.document = document{v.Raw(), root}
	return root, nil
}

// method compiles value, query and exist of the type xml. Names of methods have a letter case. Sets of nodes are left to the scope.
func (c *compiler) method(node *ast.MethodCall) (*Expression, *fault.Error) {
	if node.Method == "nodes" {
		return c.scope.External(node)
	}
	target, err := c.expression(node.Target)
	if err != nil {
		return nil, err
	}
	if target.Type.Kind != value.XML {
		return nil, fault.New(258, target.Type.Kind)
	}
	result, err := c.methodType(node)
	if err != nil {
		return nil, err
	}
	written, err := c.literalText(node, 0)
	if err != nil {
		return nil, err
	}
	query, err := xquery.Compile(node.Method, written, c.namespaces())
	if err != nil {
		return nil, err
	}
	bound, err := Bind(query.Names(), c.scope)
	if err != nil {
		return nil, err
	}
	return &Expression{Type: result, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := target.Evaluate(f)
		if err != nil || v.IsNull() {
			return value.Null(result), err
		}
		root, err := f.documentOf(v)
		if err != nil {
			return value.Value{}, err
		}
		if target.IsNode {
			root = root.Element()
		}
		return answer(f, node.Method, query, root, result, bound.In(f))
	}}, nil
}

// namespaces are those of WITH XMLNAMESPACES, where the scope has any.
func (c *compiler) namespaces() map[string]string {
	if s, has := c.scope.(interface{ Namespaces() map[string]string }); has {
		return s.Namespaces()
	}
	return nil
}

// methodType gives the type of a method's result; value takes it from its second argument.
func (c *compiler) methodType(node *ast.MethodCall) (value.Type, *fault.Error) {
	expected := 1
	var result value.Type
	switch node.Method {
	case "query":
		result = value.Of(value.XML)
	case "exist":
		result = value.Of(value.Bit)
	case "value":
		expected = 2
	case "modify":
		return result, fault.New(8137, node.Method, "non-mutator")
	default:
		return result, Unsupported("." + node.Method + "()")
	}
	if len(node.Arguments) != expected {
		return result, fault.New(174, node.Method, expected)
	}
	if expected == 1 {
		return result, nil
	}
	written, err := c.literalText(node, 1)
	if err != nil {
		return result, err
	}
	return typeOfText(written)
}

// literalText gives an argument that must be a literal; error 8172 where it is none.
func (c *compiler) literalText(node *ast.MethodCall, at int) (string, *fault.Error) {
	literal, is := node.Arguments[at].(*ast.Literal)
	if !is || literal.Kind != ast.String && literal.Kind != ast.NationalString {
		return "", fault.New(8172, at+1, node.Method)
	}
	return literal.Text, nil
}

// typeOfText reads a type such as nvarchar(100).
func typeOfText(written string) (value.Type, *fault.Error) {
	name, rest, hasAttributes := strings.Cut(strings.TrimSpace(written), "(")
	var attributes []int
	if hasAttributes {
		for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(rest), ")"), ",") {
			part = strings.TrimSpace(part)
			n, err := strconv.Atoi(part)
			switch {
			case strings.EqualFold(part, "max"):
				n = value.Max
			case err != nil:
				return value.Type{}, fault.New(102, part)
			}
			attributes = append(attributes, n)
		}
	}
	return value.Named(strings.TrimSpace(name), value.Declaration, attributes...)
}

func answer(f *Frame, method string, q *xquery.Query, root *xquery.Node, result value.Type, variables xquery.Variables) (
	value.Value, *fault.Error,
) {
	switch method {
	case "exist":
		found, err := q.Exists(root, variables)
		return value.NewBit(found), err
	case "query":
		text, err := q.XML(root, variables)
		return value.TextOf(result, text), err
	}
	text, found, err := q.Value(root, variables)
	if err != nil || !found {
		return value.Null(result), err
	}
	return f.Context.Settings.Cast(value.NewNVarChar(text), result)
}
