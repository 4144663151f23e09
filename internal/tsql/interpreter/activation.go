package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// An activation is a program that runs: a batch, or a call of a module.
type activation struct {
	session  *Session
	program  *program
	caller   *activation
	frame    expression.Frame
	at       int            // the instruction that runs
	caught   []*fault.Error // by region, the error in whose CATCH the program is
	returned int64
	result   value.Value // of a scalar function
}

func (s *Session) activate(p *program) *activation {
	a := &activation{session: s, program: p, caller: s.current, caught: make([]*fault.Error, len(p.regions))}
	a.frame = expression.Frame{Variables: make([]value.Value, len(p.variables)), Context: &s.context, Warn: s.inform}
	for i, t := range p.variables {
		a.frame.Variables[i] = value.Null(t)
	}
	return a
}

// frameOf gives the frame of the activation for one evaluation.
func (a *activation) frameOf(ctx context.Context) *expression.Frame {
	a.frame.Outside = ctx
	return &a.frame
}

// isProtected reports whether a TRY surrounds the instruction that runs, in this activation or in a caller.
func (a *activation) isProtected() bool {
	for ; a != nil; a = a.caller {
		if a.instruction().try != outside {
			return true
		}
	}
	return false
}

func (a *activation) instruction() *instruction { return &a.program.instructions[a.at] }

// caughtError gives the error in whose CATCH the session is, the innermost first.
func (s *Session) caughtError() *fault.Error {
	for a := s.current; a != nil; a = a.caller {
		for r := a.instruction().catch; r != outside; r = a.program.regions[r].outerCatch {
			if a.caught[r] != nil {
				return a.caught[r]
			}
		}
	}
	return nil
}

// run runs a program to its end. The error is one that a caller's TRY catches; errOver says that the batch has ended.
func (s *Session) run(ctx context.Context, a *activation) *fault.Error {
	s.current = a
	defer func() { s.current = a.caller }()
	instructions := a.program.instructions
	for at := 0; ; {
		if ctx.Err() != nil {
			return s.cut(ctx)
		}
		to, err := s.step(ctx, a, at)
		if err != nil {
			if s.isOver() {
				return err
			}
			to, err = s.handle(ctx, a, err)
			if err != nil {
				return err
			}
			at = a.at // an error may have come late
		}
		switch {
		case to == next && at < len(instructions):
			at++
		case to == ended, to == next:
			at = len(instructions)
			if len(s.pending) == 0 {
				return nil
			}
		default:
			at = to
		}
		if at >= len(instructions) && len(s.pending) == 0 {
			return nil
		}
	}
}

// step runs one instruction, behind the statements that it does not let wait. Behind the last one it sends what waits.
func (s *Session) step(ctx context.Context, a *activation, at int) (to int, err *fault.Error) {
	instructions := a.program.instructions
	isBehind := at >= len(instructions)
	if len(s.pending) > 0 && (isBehind || !instructions[at].isQuiet && !instructions[at].joins || s.isOverdue()) {
		if err := s.settle(ctx); err != nil {
			return next, s.fromLate(ctx, a, err)
		}
	}
	if isBehind {
		return ended, nil
	}
	a.at = at
	if s.options.noExec && !instructions[at].setsNoExec {
		return next, nil
	}
	s.context.Now = s.clock()
	to, err = instructions[at].run(ctx, a)
	if err != nil && err.Deferred == 0 && len(s.pending) > 0 && !s.isOver() {
		// The error of this instruction comes behind those of statements that wait, which may take the program elsewhere.
		if late := s.settle(ctx); late != nil {
			err = late
		}
	}
	if err != nil {
		return next, s.fromLate(ctx, a, err)
	}
	s.sent()
	return to, nil
}

// fromLate gives an error as that of its own statement.
func (s *Session) fromLate(ctx context.Context, a *activation, err *fault.Error) *fault.Error {
	if err.Deferred == 0 || s.isOver() {
		return err
	}
	return s.rewind(ctx, a, err)
}

// handle decides what an error ends. It gives the instruction to go on with, or the error itself for a caller's TRY.
func (s *Session) handle(ctx context.Context, a *activation, err *fault.Error) (to int, thrown *fault.Error) {
	if ctx.Err() != nil && err.Severity < 20 {
		return 0, s.cut(ctx) // the error is that of the statement which was cancelled
	}
	i := a.instruction()
	isFresh := s.thrown != err
	err = err.At(i.line, a.program.name)
	if isFresh && err.Procedure == "" && a.program.name != "" {
		named := *err
		named.Procedure = a.program.name
		err = &named
	}
	s.lastError = err.Number
	s.rowCount = 0
	isWrite := s.isWrite
	s.isWrite = false
	if isFresh {
		s.failures++
	}
	// An error of names and types is one of compiling its statement, which the TRY around it does not catch.
	isCatchable := err.Severity < 20 && (!isFresh || err.Reach != fault.Scope && err.Reach != fault.Compile)
	switch {
	case i.try != outside && isCatchable:
		if isFresh {
			s.doom(err)
		}
		a.caught[i.try] = err
		s.thrown = nil
		return a.program.regions[i.try].start, nil
	case a.caller.isProtected() && err.Severity < 20:
		if isFresh {
			s.doom(err)
		}
		s.thrown = err
		return 0, err
	}
	s.isWrite = isWrite
	return s.uncaught(ctx, a, err)
}

// doom makes the transaction one that can only be rolled back, where the error is of that kind.
func (s *Session) doom(err *fault.Error) {
	if s.depth > 0 && (err.Reach == fault.Batch || s.options.xactAbort && !err.KeepsTransaction) {
		s.isDoomed = true
	}
}

// uncaught reports an error and does what its reach says.
func (s *Session) uncaught(ctx context.Context, a *activation, err *fault.Error) (to int, thrown *fault.Error) {
	isWrite := s.isWrite
	s.isWrite = false
	s.send(err)
	a.returned = -int64(max(err.Severity-10, 1))
	rollsBack := s.options.xactAbort && !err.KeepsTransaction
	if err.Severity >= 20 || err.Reach != fault.Statement || rollsBack {
		s.ending = err
	}
	switch {
	case err.Severity >= 20:
		s.rollback(ctx)
		return 0, s.stop(errClosed)
	case err.Reach == fault.Batch, rollsBack:
		s.rollback(ctx)
		return 0, s.stop(nil)
	case err.Reach == fault.Abort:
		return 0, s.stop(nil)
	case err.Reach == fault.Scope, err.Reach == fault.Compile:
		return ended, nil
	}
	if isWrite {
		s.send(fault.New(3621))
	}
	return next, nil
}
