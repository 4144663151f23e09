package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// impersonation is whose rights the session has. The database has the last word: the login must be a member of the role, and so must
// whoever wrote EXECUTE AS.
type impersonation struct {
	role  string   // that the session acts as; empty for the one that it began as
	taken []acting // by EXECUTE AS, the latest last
	floor int      // REVERT takes back none below: those are of callers
}

// acting has the role and the user that one EXECUTE AS replaced.
type acting struct{ role, user string }

// actAs goes on as a role. The author wrote that; empty for the role of the session.
func (s *Session) actAs(ctx context.Context, name, author string) *fault.Error {
	if s.connection == nil {
		return fault.New(40510, "EXECUTE AS")
	}
	role := ""
	err := s.onConnection(func(c Connection) (err error) {
		role, err = c.RoleToActAs(ctx, name, author, true)
		return err
	})
	if err != nil {
		return err
	}
	s.taken = append(s.taken, acting{role: s.role, user: s.identity.User})
	s.goOnAs(role, role)
	return nil
}

func (s *Session) goOnAs(role, user string) {
	s.role, s.identity.User = role, user
	s.connection.ActAs(role)
}

// actsAgain takes EXECUTE AS back until as many are left.
func (s *Session) actsAgain(left int) {
	for len(s.taken) > left {
		last := s.taken[len(s.taken)-1]
		s.taken = s.taken[:len(s.taken)-1]
		if last.role != s.role {
			s.goOnAs(last.role, last.user)
		}
	}
}

// callAs calls a module as the role that its EXECUTE AS names.
func (s *Session) callAs(ctx context.Context, m *module, call func() *fault.Error) *fault.Error {
	if m.as == "" {
		return call()
	}
	before := len(s.taken)
	if err := s.actAs(ctx, m.as, m.author); err != nil {
		return err
	}
	defer s.actsAgain(before)
	return call()
}

// executeAs compiles EXECUTE AS USER and EXECUTE AS LOGIN: a login and its user are one role.
func (c *compiler) executeAs(node *ast.ExecuteAs) *fault.Error {
	switch {
	case node.NoRevert:
		return expression.Unsupported("EXECUTE AS WITH NO REVERT")
	case node.CookieFor != "":
		return expression.Unsupported("EXECUTE AS WITH COOKIE")
	case node.Name == nil && node.Kind != "CALLER":
		return fault.New(102, node.Kind)
	}
	name, err := c.roleName(node.Name)
	if err != nil {
		return err
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		s := a.session
		if node.Name == nil { // CALLER: REVERT has one to take back
			s.taken = append(s.taken, acting{role: s.role, user: s.identity.User})
			s.succeeded(0)
			return nil
		}
		role, err := name(ctx, a)
		if err != nil {
			return err
		}
		if err := s.actAs(ctx, role, ""); err != nil {
			return err
		}
		s.succeeded(0)
		return nil
	})
	return nil
}

// roleName gives the name of a role that is written or that a variable holds; empty where there is none.
func (c *compiler) roleName(node ast.Expression) (func(context.Context, *activation) (string, *fault.Error), *fault.Error) {
	if node == nil {
		return func(context.Context, *activation) (string, *fault.Error) { return "", nil }, nil
	}
	name, err := expression.CompileAs(node, sysname, c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, a *activation) (string, *fault.Error) {
		v, err := name.Evaluate(a.frameOf(ctx))
		if err != nil {
			return "", err
		}
		if v.IsNull() || v.Raw() == "" {
			return "", fault.New(15517, "")
		}
		return a.session.settings.Text(v), nil
	}, nil
}

// revert compiles REVERT, which does nothing where EXECUTE AS did not come before.
func (c *compiler) revert(node *ast.Revert) *fault.Error {
	if node.Cookie != "" {
		return expression.Unsupported("REVERT WITH COOKIE")
	}
	c.simply(node, func(_ context.Context, a *activation) *fault.Error {
		s := a.session
		s.actsAgain(max(len(s.taken)-1, s.floor))
		s.succeeded(0)
		return nil
	})
	return nil
}
