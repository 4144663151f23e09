package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// A firing statement runs triggers: outside of a transaction it gets one, so that an error in a trigger undoes the change.
type firing interface {
	Fires() bool
}

// Fired is a trigger that a change fires.
type Fired struct {
	Name    string
	Body    []ast.Statement
	Options []*ast.ModuleOption
	Author  string // the owner of the table
	Rows    int64  // that the statement changed
}

// Fire runs the body of a trigger: one level deeper, with XACT_ABORT ON, as the role of its EXECUTE AS. Error 3609 where it ends the
// transaction.
func (s *Session) Fire(ctx context.Context, t Fired) *fault.Error {
	if s.nesting() >= maxNesting {
		return fault.New(217, maxNesting)
	}
	compiled, err := s.compile(t.Name, nil, t.Body)
	if err != nil {
		return err
	}
	m := &module{as: actsAs(t.Options, t.Author), author: t.Author}
	return s.callAs(ctx, m, func() *fault.Error {
		s.succeeded(t.Rows) // @@ROWCOUNT at the start of the body
		return s.fire(ctx, compiled)
	})
}

func (s *Session) fire(ctx context.Context, compiled *program) *fault.Error {
	saved, savedSettings, isWrite := s.options, s.settings, s.isWrite
	s.options.xactAbort, s.isWrite = true, false
	if !s.firesAlone { // the transaction of the statement alone counts as the trigger's
		s.depth++
	}
	floor := s.floor
	s.floor = len(s.taken)
	s.translator.Enter()
	err := s.run(ctx, s.activate(compiled))
	s.translator.Leave(context.WithoutCancel(ctx))
	s.actsAgain(s.floor)
	s.floor = floor
	s.options, s.settings, s.isWrite = saved, savedSettings, isWrite
	switch {
	case err != nil:
		return err
	case s.depth == 0:
		return fault.New(3609)
	}
	if !s.firesAlone {
		s.depth--
	}
	return nil
}

// firingAlone runs a statement with triggers in a transaction of its own.
func (s *Session) firingAlone(ctx context.Context, a *activation, compiled Statement) *fault.Error {
	if err := s.begin(ctx, ""); err != nil {
		return err
	}
	s.isWrite, s.firesAlone = changesRows(compiled), true
	sink := &resultSink{Sink: s.sink}
	rows, counts, err := compiled.Run(ctx, a.frameOf(ctx), sink)
	s.firesAlone = false
	if err != nil {
		s.rollback(ctx)
		return err
	}
	s.isWrite = false
	if s.depth > 0 {
		if err := s.commit(ctx, ""); err != nil {
			return err
		}
	}
	s.succeeded(rows)
	return s.done(counts, rows, sink.hasRows)
}
