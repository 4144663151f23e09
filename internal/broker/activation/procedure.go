package activation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/daemon"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// procedures makes readers that are sessions: CALL procedure(), outside of a transaction, so that the procedure begins and ends
// its own, under the role that the queue says.
//
// Through a pooler in transaction mode nothing can be set for a session, so there a procedure for another role than the
// login's runs inside one transaction, and cannot commit by itself.
type procedures struct {
	config   Config
	sessions *sessions
	term     *daemon.Term
}

// NewReader refuses what cannot run at all.
func (p *procedures) NewReader(q Queue, number int) (Reader, error) {
	switch {
	case q.Procedure == "":
		return nil, &stateError{state: "42883", text: "the activation procedure does not exist"}
	case q.ExecuteAs == "":
		return nil, &stateError{state: "42704", text: "the role to execute as does not exist"}
	}
	return &procedureReader{procedures: p, queue: q, number: number}, nil
}

type procedureReader struct {
	*procedures
	queue  Queue
	number int
	pid    atomic.Uint32
}

// PID gives the process id of the reader's session, 0 before it has one.
func (r *procedureReader) PID() uint32 { return r.pid.Load() }

// Run calls the procedure. When ctx ends the procedure may go on for the time of grace; then it is cancelled.
func (r *procedureReader) Run(ctx context.Context) error {
	s, err := r.sessions.take(ctx, r.queue)
	if err != nil {
		if ctx.Err() != nil {
			return errNotStarted
		}
		return err
	}
	if ctx.Err() != nil || !r.term.IsFresh() {
		r.sessions.give(s)
		return errNotStarted
	}
	working, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stopped := context.AfterFunc(ctx, func() {
		grace := time.NewTimer(r.config.GraceTime)
		defer grace.Stop()
		select {
		case <-grace.C:
			cut()
		case <-working.Done():
		}
	})
	defer stopped()

	r.pid.Store(s.pid)
	s.queue = r.queue.Name
	if err = s.begin(working, r.config, r.term.Number, r.queue); err == nil {
		err = s.call(working, r.config, r.queue)
	}
	switch {
	case errors.Is(err, errNotStarted):
	case sqlState(err) == idleSessionEnded:
		err = errNotStarted // we were paused on the way to the call
	case err != nil:
		r.reportPoison(err)
	}
	if s.conn.IsClosed() || s.conn.PgConn().TxStatus() != 'I' || working.Err() != nil {
		if err == nil {
			err = &stateError{state: "25001", number: transactionLeftOpen, text: "the activation procedure left a transaction open"}
		}
		r.sessions.drop(s)
		return err
	}
	// The reader has left; the next one gets a session as if new. That takes time, and nobody has to wait for it.
	r.sessions.cleaning.Go(func() { r.sessions.clean(s) })
	return err
}

// reportPoison reports to the broker why the reader failed, for people who inspect the message that came back.
func (r *procedureReader) reportPoison(failure error) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if err := activationstore.RecordReaderFailure(ctx, r.config.Pool, r.queue.ID, failure); err != nil {
		r.config.Logger.Warn("the failure of a reader could not be reported to the broker", "queue", r.queue.Name, "error", err)
	}
}

// idleSessionEnded is the error of a session that the server has ended because no statement came.
const idleSessionEnded = "57P05"

// begin takes on a role, and has the database say that this daemon still leads: isFresh cannot know, a process may be paused
// behind it, and the clock of a machine may stand still with it. Between this and the call the server ends the session before
// another daemon can lead; only behind a pooler, where that cannot be set, a call may come late by as much as the pause.
func (s *session) begin(ctx context.Context, config Config, term int64, q Queue) error {
	var leads bool
	var err error
	if config.ProcedureConfig == nil {
		leads, err = activationstore.BeginReader(ctx, s.conn, term, int32(q.ID), q.ExecuteAs, q.Procedure, s.isDirect)
	} else {
		leads, err = s.beginApart(ctx, config, term, q)
	}
	switch {
	case err != nil:
		return fmt.Errorf("execute as %s: %w", q.ExecuteAs, err)
	case !leads:
		return errNotStarted
	}
	return nil
}

// apartTime is within which the call must follow where the login of the session is not the daemon's.
const apartTime = 2 * time.Second

// beginApart is for a session whose login may ask nothing of the daemon's. First the server is asked to end it when no call follows; then
// the daemon's own connection asks whether the lease lasts for longer than that. So a call that comes too late finds no session.
func (s *session) beginApart(ctx context.Context, config Config, term int64, q Queue) (bool, error) {
	if s.isDirect {
		role := q.ExecuteAs
		if role == s.login {
			role = "none"
		}
		_, err := s.conn.Exec(ctx, "select pg_catalog.set_config('idle_session_timeout', $1, false), pg_catalog.set_config('role', $2, false)",
			pgx.QueryExecModeExec, strconv.FormatInt(apartTime.Milliseconds(), 10), role)
		if err != nil {
			return false, err
		}
	}
	return activationstore.MayBeginReader(ctx, config.Pool, term, int32(q.ID), q.ExecuteAs, q.Procedure, apartTime)
}

// InterpretedState is the SQLSTATE that a procedure raises whose text is of another language.
const InterpretedState = "TSQL0"

// call calls the procedure, or has it interpreted. Behind a pooler nothing can be interpreted as another role: the role is that of one
// transaction there.
func (s *session) call(ctx context.Context, config Config, q Queue) error {
	statement := "call " + q.Procedure
	if s.isDirect || q.ExecuteAs == s.login {
		err := s.exec(ctx, statement)
		if config.Interpret == nil || sqlState(err) != InterpretedState {
			return err
		}
		return config.Interpret(ctx, s.conn, q.Procedure, s.logger.With("number", outputOfProcedure, "queue", q.Name))
	}
	err := s.exec(ctx, "begin; set local role "+pgx.Identifier{q.ExecuteAs}.Sanitize()+"; "+statement+"; commit")
	if err != nil && !s.conn.IsClosed() {
		return errors.Join(err, s.exec(ctx, "rollback"))
	}
	return err
}

func (s *session) exec(ctx context.Context, statement string) error {
	_, err := s.conn.PgConn().Exec(ctx, statement).ReadAll()
	return err
}

// clean undoes what a procedure may have left in its session. Plans stay, they are what makes a session warm.
func (s *sessions) clean(used *session) {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	if used.isDirect {
		const statement = "reset all; close all; unlisten *; discard temp; select pg_catalog.pg_advisory_unlock_all(); reset role"
		if err := used.exec(ctx, statement); err != nil {
			s.drop(used)
			return
		}
	}
	s.give(used)
}
