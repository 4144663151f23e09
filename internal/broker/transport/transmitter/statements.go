package transmitter

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/notifier"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// ask asks in whose name to speak.
func (w *worker) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return w.pool.Do(ctx, func(conn *pgx.Conn) (err error) {
		w.speaker, err = w.speakerOn(ctx, conn, w.term)
		return err
	})
}

// readProbes reads which conversations have to be compared with their far sides, after the epoch has changed. That is done before
// anything else.
func (w *worker) readProbes(ctx context.Context) error {
	var runs []transportstore.Run
	err := w.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		runs, err = transportstore.ReadProbes(ctx, conn, w.destination.ID, takeRows)
		return err
	})
	if err != nil {
		return err
	}
	w.probes = len(runs) > 0
	w.window.add(runs)
	return nil
}

// readUnacknowledged reads more of what was left in transit.
func (w *worker) readUnacknowledged(ctx context.Context) error {
	var runs []transportstore.Run
	err := w.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		runs, err = transportstore.UnacknowledgedRuns(ctx, conn, w.destination.ID, w.reload.endpoint, w.reload.sequence, takeRows, takeBytes)
		return err
	})
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		w.reload.isDone = true
		return nil
	}
	last := runs[len(runs)-1]
	w.reload.endpoint, w.reload.sequence = last.EndpointID, last.FirstSequence
	w.window.add(runs)
	return nil
}

// acknowledge records in the database what was answered. That commits without a wait for the disk: should it be lost, the runs are sent
// and answered again.
func (w *worker) acknowledge(ctx context.Context) error {
	err := w.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		leads, err := transportstore.AcknowledgeRuns(ctx, conn, w.term, w.acknowledgements)
		if err == nil && !leads {
			err = errTermOver
		}
		return err
	})
	if err != nil {
		return err
	}
	w.acknowledgements = w.acknowledgements[:0]
	w.answerDue = time.Now().Add(answerPause)
	if w.destination.Attempts > 0 {
		// The destination answers again.
		if _, err := w.reportAttempt(ctx, ""); err != nil {
			return err
		}
		w.destination.Attempts = 0
	}
	return nil
}

// takeRuns takes new runs from the lane. That waits for the disk, because they are sent then.
func (w *worker) takeRuns(ctx context.Context) error {
	began := time.Now()
	var runs []transportstore.Run
	err := w.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		runs, err = transportstore.TakeRuns(ctx, conn, w.term, w.destination.ID, takeRows, takeBytes)
		return err
	})
	if err != nil {
		return err
	}
	now := time.Now()
	w.takeDue = now.Add(notifier.PollAfter(now.Sub(began), 1, notifier.PollInterval, longestPollInterval))
	if len(runs) > 0 {
		w.filledAt, w.worked = now, true
	}
	before := w.window.bytes
	w.window.add(runs)
	// Where there is much more it fills what was asked for.
	w.isFull = len(runs) >= takeRows/2 || w.window.bytes-before >= takeBytes/2
	w.isDry = !w.isFull
	return nil
}

// do runs statements under the name in which this worker speaks: should the database have become another one, or gone back in its
// history, nothing that the worker knows is true any more.
func (w *worker) do(ctx context.Context, work func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err := w.pool.Do(ctx, func(conn *pgx.Conn) error {
		now, err := w.speakerOn(ctx, conn, w.term)
		switch {
		case err != nil:
			return err
		case now != w.speaker:
			return errors.New("the database speaks under another epoch now")
		}
		return work(ctx, conn)
	})
	if err != nil {
		return databaseError{err}
	}
	return nil
}

// reportAttempt records in the database that the destination has failed, or, with no failure, that it answers again.
func (w *worker) reportAttempt(ctx context.Context, failure string) (due time.Duration, err error) {
	err = w.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		due, err = transportstore.ReportAttempt(ctx, conn, w.term, w.destination.ID, failure)
		return err
	})
	return due, err
}
