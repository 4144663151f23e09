package broker

import (
	"context"
	"strconv"
	"time"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

type sessionSink = session.Sink

// longestSlice is how long one call waits in the database: outside of a transaction each call ends one, and gives its snapshot back.
const longestSlice = 10 * time.Second

// A wait is WAITFOR around RECEIVE or GET CONVERSATION GROUP. A call may come back empty before its time; then it is made again.
type wait struct {
	timeout  parameter // in milliseconds; nil without TIMEOUT, NULL is as -1
	deadline time.Time // zero for no end
	// isDecided says that ended holds for the call that was made last.
	isDecided, ended bool
}

// waitFor compiles WAITFOR (...), TIMEOUT.
func (c *compiler) waitFor(ctx context.Context, node *ast.WaitFor) (*statement, *fault.Error) {
	w := &wait{}
	if node.Timeout != nil {
		timeout, err := c.expression(node.Timeout, intType)
		if err != nil {
			return nil, err
		}
		w.timeout = timeout
	}
	switch inner := node.Statement.(type) {
	case *ast.Receive:
		return c.receive(ctx, inner, w)
	case *ast.GetGroup:
		return c.getGroup(ctx, inner, w)
	}
	return nil, fault.New(40510, "WAITFOR")
}

// slice gives the milliseconds of the next call.
func (w *wait) slice(*expression.Frame) ([]byte, *fault.Error) {
	left := longestSlice
	if !w.deadline.IsZero() {
		left = min(left, max(time.Until(w.deadline), 0))
	}
	return strconv.AppendInt(nil, left.Milliseconds(), 10), nil
}

// begin sets the deadline: none for -1 and without TIMEOUT.
func (w *wait) begin(frame *expression.Frame) *fault.Error {
	w.deadline = time.Time{}
	if w.timeout == nil {
		return nil
	}
	text, err := w.timeout(frame)
	if err != nil || text == nil {
		return err
	}
	ms, _ := strconv.ParseInt(string(text), 10, 64)
	switch {
	case ms < -1:
		return &fault.Error{Number: 1023, Severity: 15, State: 1, Message: fault.New(1023, ms, "WAITFOR TIMEOUT").Message}
	case ms >= 0:
		w.deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return nil
}

// isLast reports whether no call follows one that came back empty. Each call is asked once.
func (w *wait) isLast() bool {
	if !w.isDecided {
		w.isDecided, w.ended = true, !w.deadline.IsZero() && !time.Now().Before(w.deadline)
	}
	return w.ended
}

// repeat runs a statement until it gives rows or the deadline has passed.
func (w *wait) repeat(inner *statement) *statement {
	return &statement{run: func(ctx context.Context, frame *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
		if err := w.begin(frame); err != nil {
			return 0, false, err
		}
		if err := sink.Flush(); err != nil {
			return 0, false, lost(err)
		}
		for {
			w.isDecided = false
			rows, counts, err := inner.run(ctx, frame, sink)
			if err != nil || rows > 0 || w.isLast() {
				return rows, counts, err
			}
		}
	}}
}
