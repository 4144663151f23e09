package messages

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/verb"
)

// longestTake bounds the transactions of a take that goes on for ever, so that none of them holds back vacuum.
const longestTake = 10 * time.Second

// A takeLoop is what take --follow was asked for. Without a timeout, or with a negative one, it does not end by itself.
type takeLoop struct {
	queue   string
	count   int
	timeout time.Duration
	way     string
}

// keepTaking takes, prints and commits until ctx ends, or nothing came within the timeout. When the connection is lost it connects anew:
// what was printed and not committed then comes again.
func keepTaking(ctx context.Context, a *verb.App, conn *pgx.Conn, out io.Writer, loop takeLoop) error {
	defer func() { verb.CloseConnection(ctx, conn) }()
	for waited := time.Now(); ; {
		wait := longestTake
		if loop.timeout > 0 {
			wait = max(time.Millisecond, min(wait, loop.timeout-time.Since(waited)))
		}
		var found int
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			messages, err := parley.Take(ctx, tx, loop.queue, loop.count, parley.Wait(wait))
			if err != nil {
				return err
			}
			found = len(messages)
			return printEach(a, out, messages, loop.way)
		})
		if err != nil && ctx.Err() == nil && conn.IsClosed() {
			fmt.Fprintf(a.Stderr, "parley: %v; connecting anew\n", err)
			if conn, err = attachAnew(ctx, a, conn, waited, loop.timeout); err == nil {
				continue
			}
		}
		switch {
		case err != nil:
			return untilStopped(ctx, err)
		case found > 0:
			waited = time.Now()
		case loop.timeout > 0 && time.Since(waited) >= loop.timeout:
			return nil
		}
	}
}

// attachAnew attaches until the database answers, for as long as the loop waits for a message. Without success it gives the old connection.
func attachAnew(
	ctx context.Context, a *verb.App, old *pgx.Conn, since time.Time, timeout time.Duration,
) (*pgx.Conn, error) {
	for failures := 1; ; failures++ {
		conn, err := a.Attach(ctx)
		if err == nil {
			return conn, nil
		}
		if !pgdb.IsUnreachable(ctx, err) || timeout > 0 && time.Since(since) >= timeout {
			return old, err
		}
		_ = backoff.Wait(ctx, backoff.Statement.Pause(failures))
	}
}

// printEach prints a line for each message.
func printEach(a *verb.App, out io.Writer, messages []parley.TakenMessage, way string) error {
	if len(messages) == 0 {
		return nil
	}
	if !a.JSON {
		return printTaken(a, out, messages, way)
	}
	for _, m := range messages {
		if err := verb.EncodeJSON(out, showTaken(m, way)); err != nil {
			return fmt.Errorf("print a message: %w", err)
		}
	}
	return nil
}
