package parley

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
)

// announcedSeconds is how long beyond a poll interval senders are asked to notify. It costs senders throughput, so it
// is short, and renewed for as long as a reader sleeps.
const announcedSeconds = 3

// doorbell wakes the sleeping readers of a consumer: when a sender notifies, and once each poll interval.
//
// Each ring wakes one reader; a reader that finds messages rings again, so that a burst wakes all of them and a single
// message only one.
type doorbell struct {
	run      *consumerRun
	rung     chan struct{}
	sleepers atomic.Int32

	mu             sync.Mutex
	listening      bool
	payload        string    // what notifications of our queue carry, once it is known
	announcedUntil time.Time // when senders may cease to notify
	isRefused      bool      // the last announcement failed
}

func newDoorbell(run *consumerRun) *doorbell {
	return &doorbell{run: run, rung: make(chan struct{}, 1)}
}

// ring wakes one reader, or the next one that is about to sleep.
func (b *doorbell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// ringOthers wakes one reader if any sleeps now.
func (b *doorbell) ringOthers() {
	if b.sleepers.Load() > 0 {
		b.ring()
	}
}

// wait sleeps until the bell rings.
func (b *doorbell) wait(ctx context.Context) {
	b.sleepers.Add(1)
	defer b.sleepers.Add(-1)
	select {
	case <-ctx.Done():
	case <-b.rung:
	}
}

// announce tells senders that somebody sleeps, unless they know already. It returns true when they did not know: then
// the queue has to be looked at once more. Readers announce one after the other, so that one announcement does for all.
func (b *doorbell) announce(ctx context.Context, logger *slog.Logger) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if !b.listening || now.Add(b.run.PollInterval).Before(b.announcedUntil) {
		return false
	}
	known := now.Before(b.announcedUntil)
	asked := pgdb.Seconds(b.run.PollInterval) + announcedSeconds
	var payload string
	err := b.run.Pool.QueryRow(ctx, "select parley.listen_for_messages($1::text, $2::integer)", b.run.Queue, asked).Scan(&payload)
	if err != nil {
		if ctx.Err() == nil && !b.isRefused {
			logger.Warn("cannot ask senders to notify; looking at intervals", "error", err, "interval", b.run.PollInterval)
		}
		b.isRefused = true
		return false
	}
	b.isRefused, b.payload = false, payload
	// The database counts in whole seconds, of its own clock.
	b.announcedUntil = now.Add(time.Duration(asked-1) * time.Second)
	return !known
}

// listen rings the bell until ctx ends.
func (b *doorbell) listen(ctx context.Context) {
	var polling sync.WaitGroup
	polling.Go(func() { b.poll(ctx) })
	defer polling.Wait()
	for failures := 1; ctx.Err() == nil; failures++ {
		started := time.Now()
		isPossible, err := b.listenOnce(ctx)
		if !isPossible {
			b.run.Logger.Info("connected through a pooler: looking for messages at intervals; set ListenConfig to be notified",
				"interval", b.run.PollInterval)
			return
		}
		if ctx.Err() == nil {
			b.run.Logger.Warn("not notified of messages for now; looking at intervals", "error", err, "interval", b.run.PollInterval)
		}
		if time.Since(started) > backoff.Consumer.Longest {
			failures = 1
		}
		pause(ctx, backoff.Consumer.Pause(failures))
	}
}

// poll rings at each interval, or up to a fifth of it earlier.
func (b *doorbell) poll(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(backoff.Jitter(b.run.PollInterval, 0.2))
		select {
		case <-ctx.Done():
		case <-timer.C:
			b.ring()
		}
		timer.Stop()
	}
}

// listenOnce listens on a connection of its own until that fails. It returns false when no notification could come.
func (b *doorbell) listenOnce(ctx context.Context) (isPossible bool, err error) {
	conn, err := b.connect(ctx)
	if err != nil {
		return true, err
	}
	defer func() {
		b.setListening(false)
		_ = conn.Close(context.WithoutCancel(ctx))
	}()
	if b.run.ListenConfig == nil {
		isDirect, err := isDirect(ctx, conn)
		if err != nil || !isDirect {
			return err != nil, err
		}
	}
	if _, err := conn.Exec(ctx, "listen parley"); err != nil {
		return true, fmt.Errorf("listen: %w", err)
	}
	b.setListening(true)
	// Readers that sleep already have to announce themselves.
	b.ring()
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, fmt.Errorf("wait for a notification: %w", err)
		}
		if b.isOurs(notification.Payload) {
			b.ring()
		}
	}
}

func (b *doorbell) connect(ctx context.Context) (*pgx.Conn, error) {
	config := b.run.ListenConfig
	if config == nil {
		pool := b.run.Pool.Config()
		config = pool.ConnConfig
		if pool.BeforeConnect != nil {
			if err := pool.BeforeConnect(ctx, config); err != nil {
				return nil, fmt.Errorf("prepare to connect for notifications: %w", err)
			}
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect for notifications: %w", err)
	}
	return conn, nil
}

// isDirect tells whether a connection leads to a backend of its own. A pooler gives its clients process ids that are
// not those of the backends; through it LISTEN succeeds, but nothing ever comes.
func isDirect(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	if err != nil {
		return false, fmt.Errorf("ask for the backend: %w", err)
	}
	return pid == conn.PgConn().PID(), nil
}

func (b *doorbell) setListening(listening bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listening = listening
	b.announcedUntil = time.Time{}
}

func (b *doorbell) isOurs(payload string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return payload == b.payload
}
