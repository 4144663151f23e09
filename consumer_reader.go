package parley

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

const (
	// disabledPolls is after how many poll intervals a disabled queue is tried again: somebody has to enable it by hand.
	disabledPolls = 5
	// rollbackTimeout bounds the rollback after work was cancelled, and the report of a failure.
	rollbackTimeout = 5 * time.Second
)

// read is the life of one reader. It begins nothing new after ctx has ended; what it has begun lives on work.
func (execution *consumerExecution) read(ctx, work context.Context, number int) {
	logger := execution.Logger.With("reader", number)
	failures := 0
	probes := false // this reader alone tries to reach a database that is away
	defer func() {
		if probes {
			execution.outage.end()
		}
	}()
	for ctx.Err() == nil {
		if over := execution.outage.known(); over != nil && !probes {
			sitOut(ctx, over)
			continue
		}
		turn, err := execution.workOnce(ctx, work)
		switch isAway := isOutage(err); {
		case isAway && !probes:
			if over := execution.outage.join(); over != nil {
				sitOut(ctx, over)
				continue
			}
			probes = true
		case !isAway && probes:
			execution.outage.end()
			probes = false
		}
		if turn.committed {
			failures = 0
			if execution.disabled.CompareAndSwap(true, false) {
				logger.Info("queue is enabled again")
			}
		}
		if err != nil || len(turn.givenBack) > 0 {
			failures++
			_ = backoff.Wait(ctx, execution.settle(ctx, work, logger, turn.givenBack, err, failures))
			continue
		}
		if !turn.foundNothing {
			continue
		}
		if execution.wakeUps.ask(ctx, logger) {
			// A sender that checked just before it was asked does not notify: scan once more.
			continue
		}
		execution.wakeUps.wait(ctx, turn.scanTook)
	}
}

// rollBack rolls back also after work was cancelled. A connection that is lost has done it already.
func rollBack(work context.Context, tx pgx.Tx) error {
	undo, cancel := context.WithTimeout(context.WithoutCancel(work), rollbackTimeout)
	defer cancel()
	if err := tx.Rollback(undo); err != nil && !errors.Is(err, pgx.ErrTxClosed) && !tx.Conn().IsClosed() {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}
