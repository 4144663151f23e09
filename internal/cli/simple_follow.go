package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
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

// keepTaking takes, prints and commits until ctx ends, or nothing came within the timeout.
func keepTaking(ctx context.Context, a *verb.App, conn *pgx.Conn, out io.Writer, loop takeLoop) error {
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
