package interpreter

import (
	"context"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// systemBodies are those of procedures of the system that run in Go. systemprocedures.sql has their parameters, in the same order.
var systemBodies = map[string]func(context.Context, *activation) *fault.Error{
	"sp_getapplock": getApplicationLock, "sp_releaseapplock": releaseApplicationLock, "sp_set_session_context": setSessionContext,
	"sp_rename": renameObject,
}

// runsInGo gives a program the body of a procedure that runs in Go.
func runsInGo(p *program, name string) {
	body := systemBodies[name]
	if body == nil {
		return
	}
	p.instructions = []instruction{{line: 1, try: outside, catch: outside, run: func(ctx context.Context, a *activation) (int, *fault.Error) {
		return ended, body(ctx, a)
	}}}
}

// The results of sp_getapplock.
const (
	lockGranted    = 0
	lockWaitedFor  = 1
	lockTimedOut   = -1
	lockBadRequest = -999
	lockPauseMost  = 100 * time.Millisecond
)

// lockQuestion asks the Translator to lock or to free a resource; it is no function that a batch can call.
func (a *activation) lockQuestion(ctx context.Context, name string, arguments ...value.Value) (int64, *fault.Error) {
	f, known := a.session.translator.Function(name)
	if !known {
		return 0, expression.Unsupported(a.program.name)
	}
	_ = ctx
	v, err := f.Call(&function.Context{Settings: &a.session.settings}, value.Of(value.Int), arguments)
	if err != nil || v.IsNull() {
		return 0, err
	}
	return v.Int64(), nil
}

// ownerOf gives the function of a lock for its owner: a transaction, which must be open, or the session.
func (a *activation) ownerOf(owner value.Value, ofTransaction, ofSession string) (string, bool) {
	if strings.EqualFold(owner.Raw(), "Session") {
		return ofSession, true
	}
	return ofTransaction, strings.EqualFold(owner.Raw(), "Transaction") && a.session.depth > 0
}

func getApplicationLock(ctx context.Context, a *activation) *fault.Error {
	resource, mode, owner, timeout := a.frame.Variables[0], a.frame.Variables[1], a.frame.Variables[2], a.frame.Variables[3]
	suffix := ""
	switch strings.ToLower(mode.Raw()) {
	case "exclusive", "update", "intentexclusive":
	case "shared", "intentshared":
		suffix = " SHARED"
	default:
		a.returned = lockBadRequest
		return nil
	}
	name, isOwned := a.ownerOf(owner, "LOCK OF A TRANSACTION"+suffix, "LOCK OF A SESSION"+suffix)
	if !isOwned {
		a.returned = lockBadRequest
		return nil
	}
	limit := a.session.options.lockTimeout
	if !timeout.IsNull() {
		limit = timeout.Int64()
	}
	began, pause := time.Now(), time.Millisecond
	for a.returned = lockGranted; ; a.returned = lockWaitedFor {
		got, err := a.lockQuestion(ctx, name, resource)
		if err != nil || got == 1 {
			return err
		}
		if limit >= 0 && time.Since(began) >= time.Duration(limit)*time.Millisecond {
			a.returned = lockTimedOut
			return nil
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, lockPauseMost)
		case <-ctx.Done():
			return a.session.stop(ctx.Err())
		}
	}
}

// releaseApplicationLock frees the lock of a session. That of a transaction stays until the transaction ends, as PostgreSQL keeps it.
func releaseApplicationLock(ctx context.Context, a *activation) *fault.Error {
	name, isOwned := a.ownerOf(a.frame.Variables[1], "", "FREE A LOCK")
	switch {
	case !isOwned:
		a.returned = lockBadRequest
		return nil
	case name == "":
		a.session.inform(&fault.Error{State: 1, Message: "sp_releaseapplock has no effect: the lock stays until its transaction ends."})
		return nil
	}
	freed, err := a.lockQuestion(ctx, name, a.frame.Variables[0])
	if err == nil && freed != 1 {
		a.returned = lockBadRequest
		return fault.New(1223, a.frame.Variables[0].Raw())
	}
	return err
}

func setSessionContext(_ context.Context, a *activation) *fault.Error {
	s, key := a.session, strings.ToLower(a.frame.Variables[0].Raw())
	if s.sessionContext == nil {
		s.sessionContext = map[string]contextValue{}
	}
	if s.sessionContext[key].isReadOnly {
		return fault.New(15664, a.frame.Variables[0].Raw())
	}
	s.sessionContext[key] = contextValue{v: a.frame.Variables[1], isReadOnly: a.frame.Variables[2].Bool()}
	return nil
}

// A contextValue is one of sp_set_session_context.
type contextValue struct {
	v          value.Value
	isReadOnly bool
}

// sessionContextFunction is SESSION_CONTEXT(key): NULL where there is no value.
func (s *Session) sessionContextFunction() *function.Function {
	return &function.Function{
		Name: "SESSION_CONTEXT", Parameters: "t", IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return value.Of(value.Variant), nil },
		Call: func(_ *function.Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
			kept, known := s.sessionContext[strings.ToLower(a[0].Raw())]
			if !known {
				return value.Null(result), nil
			}
			return kept.v, nil
		},
	}
}
