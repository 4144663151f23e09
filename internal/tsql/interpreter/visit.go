package interpreter

import (
	"context"
	"maps"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// visit runs something in another database and comes back. It takes no part in a transaction.
func (s *Session) visit(ctx context.Context, database string, run func() *fault.Error) *fault.Error {
	var back func(context.Context)
	own := s.identity.Database
	err := s.onConnection(func(c Connection) (err error) {
		database, back, err = c.Visit(ctx, database)
		return err
	})
	if err != nil {
		return err
	}
	s.moved(database)
	err = run()
	if s.depth > 0 && s.broken == nil { // a transaction that it began cannot stay
		s.rollback(ctx)
	}
	back(context.WithoutCancel(ctx))
	s.moved(own)
	return err
}

// moved notes in which database the session is.
func (s *Session) moved(database string) {
	s.identity.Database = database
	s.translator.Moved()
	maps.DeleteFunc(s.modules, func(name string, _ *module) bool { return !isTemporaryName(name) })
}

// isElsewhere reports whether a name stands in another database than the session. Views of the system in master, and tempdb, do not.
func (s *Session) isElsewhere(name ast.Name) bool {
	database := name.Database()
	isSystem := strings.EqualFold(name.Schema(), "sys") || strings.EqualFold(name.Schema(), "INFORMATION_SCHEMA")
	return database != "" && s.connection != nil && s.identity.Database != "" && !strings.EqualFold(database, s.identity.Database) &&
		!strings.EqualFold(database, "tempdb") && (!strings.EqualFold(database, "master") || !isSystem)
}

// callNamed finds a procedure by its name or by a synonym, perhaps in another database, and calls it there.
func (s *Session) callNamed(ctx context.Context, name ast.Name, call func(*module) *fault.Error) *fault.Error {
	return s.callBehind(ctx, name, "", call)
}

// callBehind is callNamed of the name behind a synonym, which is empty for a name that the batch wrote.
func (s *Session) callBehind(ctx context.Context, name ast.Name, synonym string, call func(*module) *fault.Error) *fault.Error {
	if system, _ := s.system(name); system == nil && name.Server() == "" && s.isElsewhere(name) {
		return s.visit(ctx, name.Database(), func() *fault.Error { return s.callHere(ctx, name, synonym, call) })
	}
	return s.callHere(ctx, name, synonym, call)
}

// callHere calls a procedure of the database in which the session is.
func (s *Session) callHere(ctx context.Context, name ast.Name, synonym string, call func(*module) *fault.Error) *fault.Error {
	m, err := s.find(ctx, name)
	switch {
	case err == nil:
		return call(m)
	case err.Number != 2812 || isTemporary(name):
		return err
	case synonym != "":
		return fault.New(5313, synonym)
	}
	base, failed := s.translator.Synonym(ctx, name)
	if failed != nil || base.IsEmpty() {
		if failed == nil {
			failed = err
		}
		return failed
	}
	return s.callBehind(ctx, base, name.String(), call)
}

// tablesOf gives the tables of a statement by their names, where all have one and one of them names its database; nil otherwise.
func tablesOf(node ast.Statement) []ast.Name {
	var names []ast.Name
	hasDatabase, isMixed := false, false
	add := func(name ast.Name) {
		if !name.IsEmpty() {
			names, hasDatabase = append(names, name), hasDatabase || name.Database() != ""
		}
	}
	ast.Walk(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.TableName:
			add(node.Name)
		case *ast.Target:
			add(node.Name)
			isMixed = isMixed || node.Variable != ""
		case *ast.TableVariable:
			isMixed = true
		}
		return true
	})
	if isMixed || !hasDatabase {
		return nil
	}
	return names
}

// elsewhere gives the one other database in which all tables of a statement stand; empty where there is none, or more than one.
func (s *Session) elsewhere(tables []ast.Name) string {
	found := ""
	for _, name := range tables {
		if name.Server() != "" || !s.isElsewhere(name) || found != "" && !strings.EqualFold(found, name.Database()) {
			return ""
		}
		found = name.Database()
	}
	return found
}
