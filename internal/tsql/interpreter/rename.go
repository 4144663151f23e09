package interpreter

import (
	"cmp"
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// renameObject is sp_rename. Page: system-stored-procedures/sp-rename-transact-sql.
func renameObject(ctx context.Context, a *activation) *fault.Error {
	s := a.session
	a.returned = 1
	for i, parameter := range []string{"@objname", "@newname"} {
		if a.frame.Variables[i].IsNull() {
			return fault.New(15223, parameter)
		}
	}
	node := &ast.Rename{
		Written: a.frame.Variables[0].Raw(), NewName: a.frame.Variables[1].Raw(), Kind: strings.ToUpper(a.frame.Variables[2].Raw()),
	}
	if node.Kind == "DATABASE" {
		if err := s.rename(ctx, a, &ast.AlterDatabase{Name: node.Written, Action: "MODIFY NAME", NewName: node.NewName}); err != nil {
			return err
		}
		a.returned = 0
		return nil
	}
	name, known := nameIn(node.Written)
	if !known {
		return fault.New(15253, node.Written)
	}
	node.Name = name
	if err := s.renameAny(ctx, a, node); err != nil {
		return err
	}
	s.inform(fault.New(15477))
	a.returned = 0
	return nil
}

// renameAny renames a procedure, whose text is kept here, or has the Translator rename another object.
func (s *Session) renameAny(ctx context.Context, a *activation, node *ast.Rename) *fault.Error {
	isObject := node.Kind == "" || node.Kind == "OBJECT"
	if s.kept == nil || !isObject || len(node.Name.Parts) > 3 {
		return s.rename(ctx, a, node)
	}
	schema, object, err := s.placed(node.Name)
	if err != nil {
		return fault.New(15333, node.Name.Database())
	}
	kept, err := s.kept.Find(ctx, schema, object, "")
	if err != nil {
		return err
	}
	if kept == nil {
		return s.rename(ctx, a, node)
	}
	ofProcedure := *node
	ofProcedure.Kind = "PROCEDURE"
	if err := s.rename(ctx, a, &ofProcedure); err != nil {
		return err
	}
	err = s.external(ctx, a, &keptStatement{change: func(ctx context.Context) *fault.Error {
		return s.kept.Rename(ctx, *kept, node.NewName)
	}})
	if err != nil && err.Number == 229 { // what a role may not alter is not there for it
		return fault.New(15225, node.Written, s.identity.Database, cmp.Or(node.Kind, "(null)"))
	}
	return err
}

// rename runs a statement of the Translator that renames.
func (s *Session) rename(ctx context.Context, a *activation, node ast.Statement) *fault.Error {
	compiled, err := s.translator.Statement(ctx, node, nil)
	if err != nil {
		return err
	}
	return s.external(ctx, a, compiled)
}
