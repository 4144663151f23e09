package interpreter

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// noSuchType is the error of a name that is no type of the system.
const noSuchType = 2715

// typeOf gives a type of the system or of the user. A table type has its definition beside it.
func (c *compiler) typeOf(node ast.DataType) (value.Type, *ast.TableDefinition, *fault.Error) {
	t, err := expression.TypeOf(node, value.Declaration)
	if err == nil || err.Number != noSuchType || len(node.Arguments) > 0 {
		return t, nil, err
	}
	found := c.session.translator.UserType(c.context(), node.Name)
	switch {
	case found == nil:
		return t, nil, fault.New(noSuchType, 1, node.Name.String()).At(node.Line, "")
	case found.Table != nil:
		return value.Of(value.Table), found.Table, nil
	}
	return found.Alias, nil, nil
}

// declaredType gives the type of a variable that is no cursor and has no definition of a table of its own.
func (c *compiler) declaredType(v *ast.VariableDeclaration) (value.Type, *ast.TableDefinition, *fault.Error) {
	if v.Table != nil || v.Cursor || strings.EqualFold(v.Type.Name.Object(), "cursor") {
		return value.Type{}, nil, nil
	}
	return c.typeOf(v.Type)
}

// declareTable notes a parameter that is a table.
func (c *compiler) declareTable(p *ast.Parameter, definition *ast.TableDefinition) {
	key := strings.ToLower(p.Name)
	if c.readOnly == nil {
		c.readOnly = map[string]bool{}
	}
	c.tables[key], c.readOnly[key] = definition, true
}

// makeTables makes the tables of parameters that get no argument: they are empty.
func (c *compiler) makeTables(parameters []*ast.Parameter) {
	for _, p := range parameters {
		if definition := c.tables[strings.ToLower(p.Name)]; definition != nil {
			declared := &ast.VariableDeclaration{Place: p.Place, Name: p.Name, Table: definition}
			c.translated(&ast.Declare{StatementAt: ast.StatementAt{Place: p.Place}, Variables: []*ast.VariableDeclaration{declared}})
		}
	}
}

// unknownTable gives error 1087 for a table variable that is not declared.
func (c *compiler) unknownTable(node ast.Statement) (err *fault.Error) {
	check := func(at ast.Node, name string) {
		if name != "" && c.tables[strings.ToLower(name)] == nil && err == nil {
			err = fault.New(1087, name).At(at.At().Line, "")
		}
	}
	ast.Walk(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.TableVariable:
			check(node, node.Name)
		case *ast.Target:
			check(node, node.Variable)
		case *ast.Output:
			check(node, node.Variable)
		}
		return err == nil
	})
	return err
}

// refusesChange gives error 10700 for a statement that changes a parameter.
func (c *compiler) refusesChange(node ast.Statement) *fault.Error {
	var target ast.Target
	var outputs []*ast.Output
	switch node := node.(type) {
	case *ast.Insert:
		target, outputs = node.Target, node.Output
	case *ast.Update:
		target, outputs = node.Target, node.Output
	case *ast.Merge:
		target, outputs = node.Target, node.Output
	case *ast.Delete:
		target, outputs = node.Target, node.Output
	}
	names := []string{target.Variable}
	for _, o := range outputs {
		names = append(names, o.Variable)
	}
	for _, name := range names {
		if c.readOnly[strings.ToLower(name)] {
			return fault.New(10700, name)
		}
	}
	return nil
}

// isTable reports whether a parameter is a table.
func (p *program) isTable(at int) bool { return p.variables[at].Kind == value.Table }
