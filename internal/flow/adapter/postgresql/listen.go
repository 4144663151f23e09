package postgresql

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
)

// errPooled is the error of a connection on which nothing can be heard.
var errPooled = errors.New("the connection leads through a pooler, on which notifications do not come")

// listenLocally gives a connection of the host's pool to listen on.
func (r *receiver) listenLocally(ctx context.Context) (*pgx.Conn, func(), error) {
	pooled, err := r.Pool.Acquire(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	// It is not given back: what a session listens to, and what has come, would go with it.
	conn := pooled.Hijack()
	return conn, func() { _ = conn.Close(context.WithoutCancel(ctx)) }, nil
}

// listen wakes the location when its channel is notified. Notifications are hints: without them rows are found when polled for.
func (r *receiver) listen(ctx context.Context, connect func(context.Context) (*pgx.Conn, func(), error), wake chan<- struct{}) {
	for failures := 1; ctx.Err() == nil; failures++ {
		err := r.listenOnce(ctx, connect, wake)
		if ctx.Err() != nil {
			return
		}
		r.Logger.Warn("a location cannot listen, and polls meanwhile", "location", r.Name, "channel", r.settings.Channel, "error", err)
		if errors.Is(err, errPooled) {
			return
		}
		_ = backoff.Wait(ctx, backoff.Reader.Pause(failures))
	}
}

func (r *receiver) listenOnce(
	ctx context.Context, connect func(context.Context) (*pgx.Conn, func(), error), wake chan<- struct{},
) error {
	conn, done, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer done()
	if _, isDirect, err := pgdb.Backend(ctx, conn); err != nil {
		return err
	} else if !isDirect {
		return errPooled
	}
	if _, err := conn.Exec(ctx, "listen "+quoted(r.settings.Channel)); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for {
		// The first time too: something may have come before.
		select {
		case wake <- struct{}{}:
		default:
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return fmt.Errorf("wait for notifications: %w", err)
		}
	}
}
