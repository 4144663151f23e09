package expression

import (
	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
	"github.com/parley-broker/parley/internal/tsql/xquery"
)

// Modification compiles modify of a variable or a column of type xml: its new value. Page: xml/modify-method-xml-data-type.
func Modification(node *ast.MethodCall, name string, held *Expression, scope Scope) (*Expression, *fault.Error) {
	c := &compiler{scope: scope}
	switch {
	case held.Type.Kind != value.XML:
		return nil, fault.New(258, held.Type.Kind)
	case node.Method != "modify":
		return nil, fault.New(8137, node.Method, "mutator")
	case len(node.Arguments) != 1:
		return nil, fault.New(174, node.Method, 1)
	}
	written, err := c.literalText(node, 0)
	if err != nil {
		return nil, err
	}
	m, err := xquery.CompileModification(written, c.namespaces())
	if err != nil {
		return nil, err
	}
	bound, err := Bind(m.Names(), scope)
	if err != nil {
		return nil, err
	}
	return &Expression{Type: held.Type, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := held.Evaluate(f)
		if err != nil {
			return v, err
		}
		if v.IsNull() {
			return v, fault.New(5302, "modify()", name)
		}
		text, err := m.Apply(v.Raw(), bound.In(f), bound.xmlOf(f))
		if err != nil {
			return v, err
		}
		return value.TextOf(held.Type, text), nil
	}}, nil
}

// Write compiles column.WRITE(expression, offset, length): a long value with a part of it replaced. NULL as the value cuts it at the
// offset, NULL as the offset appends to it. Page: queries/update-transact-sql.
func Write(node *ast.MethodCall, name string, held *Expression, scope Scope) (*Expression, *fault.Error) {
	t := held.Type
	if t.Length != value.Max || !t.Kind.IsCharacter() && !t.Kind.IsBinary() {
		return nil, fault.New(258, t.Kind)
	}
	if len(node.Arguments) != 3 {
		return nil, fault.New(174, node.Method, 3)
	}
	parts := make([]*Expression, 3)
	for i, to := range []value.Type{t, value.Of(value.BigInt), value.Of(value.BigInt)} {
		e, err := CompileAs(node.Arguments[i], to, scope)
		if err != nil {
			return nil, err
		}
		parts[i] = e
	}
	return &Expression{Type: t, Evaluate: func(f *Frame) (value.Value, *fault.Error) {
		v, err := held.Evaluate(f)
		if err != nil {
			return v, err
		}
		if v.IsNull() {
			return v, fault.New(5302, node.Method, name)
		}
		var given [3]value.Value
		for i, e := range parts {
			if given[i], err = e.Evaluate(f); err != nil {
				return v, err
			}
		}
		return written(v, given)
	}}, nil
}

// written gives a value with its part replaced.
func written(v value.Value, given [3]value.Value) (value.Value, *fault.Error) {
	t, held, put := v.Type(), v.Raw(), given[0].Raw()
	size, cut, valueOf := len(held), func(from, length int) string { return held[from : from+length] }, value.BytesOf
	if t.Kind.IsCharacter() {
		size, valueOf = value.UnitsOf(held), value.TextOf
		cut = func(from, length int) string { return value.CutUnits(held, from, length) }
	}
	offset, length := int64(size), int64(0)
	if !given[1].IsNull() {
		offset, length = given[1].Int64(), given[2].Int64()
		if given[0].IsNull() || given[2].IsNull() {
			length = int64(size)
		}
	}
	switch {
	case offset < 0 || offset > int64(size):
		return v, fault.New(7116, offset)
	case length < 0:
		return v, fault.New(7135, length)
	}
	behind := min(int64(size), offset+length)
	return valueOf(t, cut(0, int(offset))+put+cut(int(behind), size-int(behind))), nil
}
