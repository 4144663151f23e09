package interpreter

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// The limits of RAISERROR and THROW.
const (
	userMessage    = 50000
	firstMessage   = 13000 // the least number that RAISERROR takes
	ofMessage      = -1    // the severity that means the message's own
	maxSubstitutes = 20
	maxMessage     = 2047  // characters of a message of RAISERROR
	ellipsis       = "..." // of a longer one
	sysadminFrom   = 19    // severities that only an administrator may raise, WITH LOG
)

func asFault(err error) (*fault.Error, bool) {
	var found *fault.Error
	ok := errors.As(err, &found)
	return found, ok
}

// printed compiles PRINT: text of at most 8000 bytes.
func (c *compiler) print(node *ast.Print) *fault.Error {
	if hasSubquery(node.Value) {
		return fault.New(1046).At(node.Line, "")
	}
	return c.whenReached(node, func(c *compiler) *fault.Error { return c.printNow(node) }, node.Value)
}

// hasSubquery reports whether an expression reads a query where SQL Server takes scalar expressions alone.
func hasSubquery(node ast.Expression) bool {
	found := false
	ast.Walk(node, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.Subquery, *ast.Exists:
			found = true
		}
		return !found
	})
	return found
}

func (c *compiler) printNow(node *ast.Print) *fault.Error {
	text, err := expression.Compile(node.Value, c)
	if err != nil {
		return err
	}
	limit := value.MaxBytes
	if text.Type.Kind.IsUnicode() {
		limit = value.MaxUnicode
	}
	if err := value.CheckAssignable(text.Type.Kind, value.NVarChar); err != nil {
		return err
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		v, err := text.Evaluate(a.frameOf(ctx))
		if err != nil {
			return err
		}
		a.session.succeeded(0)
		printed := value.CutUnits(a.session.settings.Text(v), 0, limit)
		if v.IsNull() {
			printed = " "
		}
		a.session.send(&fault.Error{State: 1, Message: printed, Line: node.Line, Procedure: a.program.name})
		return nil
	})
	return nil
}

// throw compiles THROW. Without arguments it raises the caught error again, as it was.
func (c *compiler) throw(node *ast.Throw) *fault.Error {
	if node.Number == nil {
		if c.catch == outside {
			return fault.New(10704)
		}
		c.simply(node, func(_ context.Context, a *activation) *fault.Error {
			again := *a.session.caughtError()
			if again.Reach == fault.Statement {
				again.Reach = fault.Abort
			}
			again.KeepsTransaction = false
			return &again
		})
		return nil
	}
	var parts [3]*expression.Expression
	for i, p := range []struct {
		node ast.Expression
		to   value.Type
	}{{node.Number, value.Of(value.Int)}, {node.Message, value.Sized(value.NVarChar, 2048)}, {node.State, value.Of(value.Int)}} {
		compiled, err := expression.CompileAs(p.node, p.to, c)
		if err != nil {
			return err
		}
		parts[i] = compiled
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		var values [3]value.Value
		for i, p := range parts {
			v, err := p.Evaluate(a.frameOf(ctx))
			if err != nil {
				return err
			}
			values[i] = v
		}
		number := values[0].Int64()
		if number < userMessage {
			return fault.New(35100, number)
		}
		return &fault.Error{
			Number: int(number), Severity: 16, State: int(max(min(values[2].Int64(), 255), 0)), Message: values[1].Raw(),
			Reach: fault.Abort,
		}
	})
	return nil
}

// raiseError compiles RAISERROR.
func (c *compiler) raiseError(node *ast.RaiseError) *fault.Error {
	if node.Severity == nil || node.State == nil {
		return expression.Unsupported("RAISERROR number 'text'")
	}
	if len(node.Arguments) > maxSubstitutes {
		return fault.New(2747, maxSubstitutes)
	}
	parts := make([]*expression.Expression, 0, 3+len(node.Arguments))
	for i, n := range append([]ast.Expression{node.Message, node.Severity, node.State}, node.Arguments...) {
		compiled, err := expression.Compile(n, c)
		if err != nil {
			return err
		}
		if k := compiled.Type.Kind; i > 2 && !isSubstitute(k) {
			return fault.New(2748, k, i+1)
		}
		parts = append(parts, compiled)
	}
	has := func(option string) bool { return slices.Contains(node.Options, option) }
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		values := make([]value.Value, len(parts))
		for i, p := range parts {
			v, err := p.Evaluate(a.frameOf(ctx))
			if err != nil {
				return err
			}
			values[i] = v
		}
		e, err := a.session.raised(values, has("LOG"))
		if err != nil || !e.IsInformational() {
			return cmp.Or(err, e)
		}
		a.session.send(e.At(node.Line, a.program.name))
		a.session.succeeded(0)
		if has("SETERROR") {
			a.session.lastError = e.Number
		}
		if has("NOWAIT") {
			if lost := a.session.sink.Flush(); lost != nil {
				return a.session.stop(lost)
			}
		}
		return nil
	})
	return nil
}

// isSubstitute reports whether a value of a kind may fill a place of a message.
func isSubstitute(k value.Kind) bool {
	return k == value.TinyInt || k == value.SmallInt || k == value.Int || k == value.BigInt || k == value.Unknown ||
		k >= value.Binary && k <= value.NVarChar
}

// raised makes the error or the message of RAISERROR. Severities to 10 inform; 20 and more, and 19, need WITH LOG.
func (s *Session) raised(values []value.Value, logs bool) (e, refused *fault.Error) {
	severity, err := s.settings.Assign(values[1], value.Of(value.Int))
	if err != nil {
		return nil, err
	}
	state, err := s.settings.Assign(values[2], value.Of(value.Int))
	if err != nil {
		return nil, err
	}
	e = &fault.Error{
		Number: userMessage, Severity: int(min(max(severity.Int64(), 0), 25)), State: int(state.Int64()), KeepsTransaction: true,
	}
	switch {
	case e.State < 0:
		e.State = 1
	case e.State > 255:
		e.State = 255
	}
	if e.Severity >= sysadminFrom && !logs {
		return nil, fault.New(2754, sysadminFrom-1)
	}
	text, substitutes := s.settings.Text(values[0]), function.Substitutes(values[3:])
	if k := values[0].Kind(); k.IsInteger() {
		number := int(values[0].Int64())
		found, own, known := fault.Text(number)
		switch {
		case number == userMessage || number < firstMessage:
			return nil, fault.New(2732, number, firstMessage, 1<<31-1)
		case !known:
			return nil, fault.New(18054, number, e.Severity, e.State)
		}
		e.Number, text = number, found
		if severity.Int64() == ofMessage {
			e.Severity = own
		}
	} else if bad := fault.BadDirective(text); bad != "" {
		return nil, fault.New(2787, bad)
	} else if place := fault.BadSubstitute(text, substitutes...); place > 0 {
		return nil, fault.New(2786, place)
	}
	e.Message = fault.Format(text, substitutes...)
	if value.UnitsOf(e.Message) > maxMessage {
		e.Message = value.CutUnits(e.Message, 0, maxMessage-len(ellipsis)) + ellipsis
	}
	return e, nil
}
