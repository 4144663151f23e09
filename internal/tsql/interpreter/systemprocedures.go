package interpreter

import (
	_ "embed" // the texts of the procedures
	"strings"
	"sync"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/parser"
)

//go:embed systemprocedures.sql
var systemTexts string

//go:embed systemhelp.sql
var helpTexts string

// systemProcedures are procedures of the system by their lower name. They are written in T-SQL, so a session runs them as those of the
// user, with the rights of its role.
var systemProcedures = sync.OnceValue(func() map[string]*ast.Procedure {
	all := map[string]*ast.Procedure{}
	for text := range strings.SplitSeq(systemTexts+"\nGO\n"+helpTexts, "\nGO\n") {
		batch, err := parser.Parse(text, parser.Options{})
		if err != nil {
			panic("interpreter: a procedure of the system: " + err.Error())
		}
		procedure, is := batch.Statements[0].(*ast.Procedure)
		if !is {
			panic("interpreter: no procedure of the system: " + text)
		}
		all[strings.ToLower(procedure.Name.Object())] = procedure
	}
	return all
})

// isSystemProcedure reports whether a name may be one of the system: those hide procedures of the user, as in SQL Server.
func isSystemProcedure(name ast.Name) bool {
	schema := strings.ToLower(name.Schema())
	isThere := name.Database() == "" || strings.EqualFold(name.Database(), "master")
	return name.Server() == "" && isThere && (schema == "" || schema == "sys" || schema == defaultSchema)
}

// system gives a procedure of the system, nil where there is none of the name.
func (s *Session) system(name ast.Name) (*module, *fault.Error) {
	if !isSystemProcedure(name) {
		return nil, nil //nolint:nilnil // no such procedure is no error here
	}
	lower := strings.ToLower(name.Object())
	node, known := systemProcedures()[lower]
	if !known {
		return nil, nil //nolint:nilnil // no such procedure is no error here
	}
	key := "sys." + lower
	if s.modules[key] == nil {
		compiled, err := s.compile(node.Name.Object(), node.Parameters, node.Body)
		if err != nil {
			return nil, err
		}
		runsInGo(compiled, lower)
		s.modules[key] = &module{node: node, compiled: compiled}
	}
	return s.modules[key], nil
}

// missing gives error 2812, or for a procedure of the system that Parley does not have one that says why. The batch goes on behind both.
func missing(name ast.Name) *fault.Error {
	if row := check.Find("procedure " + name.Object()); row.Family != "" && isSystemProcedure(name) {
		err := fault.New(40517, row.Name).Because(row.Reason)
		err.Reach = fault.Statement
		return err
	}
	return fault.New(2812, name.String())
}
