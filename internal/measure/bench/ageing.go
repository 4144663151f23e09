package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// ageingSessions prepare an aged database together.
const ageingSessions = 2

func ageUnderOldSnapshot(ctx context.Context, b *bench, s stage, d database) (lift func(), err error) {
	return underOldSnapshot(ctx, d, func() error { return b.churn(ctx, s, d) })
}

func ageByShortConversationsUnderOldSnapshot(ctx context.Context, b *bench, s stage, d database) (lift func(), err error) {
	return underOldSnapshot(ctx, d, func() error {
		_, err := ageByShortConversations(ctx, b, s, d)
		return err
	})
}

// underOldSnapshot ages a database while a transaction holds a snapshot from before, and goes on holding it.
func underOldSnapshot(ctx context.Context, d database, age func() error) (lift func(), err error) {
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	// The first query takes the snapshot.
	if _, err = conn.Exec(ctx, "begin isolation level repeatable read; select count(*) from bench.bare"); err == nil {
		err = age()
	}
	return held(ctx, conn), err
}

func ageUnderDump(ctx context.Context, b *bench, s stage, d database) (lift func(), err error) {
	lift, err = b.startDump(ctx, d)
	if err != nil {
		return nil, err
	}
	return lift, b.churn(ctx, s, d)
}

func ageByLockedNeighbour(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := relax(ctx, conn); err != nil {
			return err
		}
		neighbour, err := beginDialogs(ctx, conn, receiveQueue, 1)
		if err != nil {
			return err
		}
		return sendSingles(ctx, conn, neighbour, b.Size, b.Messages)
	})
	if err != nil {
		return nil, err
	}
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = conn.Exec(ctx, "begin"); err == nil {
		var group parley.UUID
		group, err = parley.GetConversationGroup(ctx, conn, receiveQueue)
		if err == nil && group.IsZero() {
			err = errors.New("the neighbour's group was not found")
		}
	}
	return held(ctx, conn), err
}

func ageByIdleConversations(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	return func() {}, d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := relax(ctx, conn); err != nil {
			return err
		}
		_, err := beginDialogs(ctx, conn, receiveQueue, max(1, b.Messages/10))
		return err
	})
}

func ageByShortConversations(ctx context.Context, b *bench, _ stage, d database) (lift func(), err error) {
	live := func(ctx context.Context, conn *pgx.Conn, conversations int) error {
		if _, err := conn.Exec(ctx, "call bench.live_shortly($1, $2, $3)", receiveQueue, b.Size, conversations); err != nil {
			return fmt.Errorf("live through short conversations: %w", err)
		}
		return nil
	}
	share := (b.Messages + ageingSessions - 1) / ageingSessions
	err = together(ctx, d, func(ctx context.Context, conn *pgx.Conn) error { return live(ctx, conn, share) })
	if err != nil {
		return nil, err
	}
	return func() {}, d.withConnection(ctx, func(conn *pgx.Conn) error { return live(ctx, conn, 0) })
}

// churn sends and receives messages in the queue that is measured: nine of ten by TOP (100), one by TOP (1), which leaves more
// behind a message. It goes in rounds, so that a queue is seen full and empty.
func (b *bench) churn(ctx context.Context, s stage, d database) error {
	const rounds = 10
	share := max(1, b.Messages/rounds)
	return d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := relax(ctx, conn); err != nil {
			return err
		}
		for round := range rounds {
			b.progress("ageing: %d of %d messages", round*share, b.Messages)
			if err := sendSingles(ctx, conn, s.dialogs[receiveQueue], b.Size, share); err != nil {
				return err
			}
			if err := drain(ctx, conn, receiveQueue, 1, share/10); err != nil {
				return err
			}
			if err := drain(ctx, conn, receiveQueue, 100, share); err != nil {
				return err
			}
		}
		return nil
	})
}

// relax lets a session that only prepares go on without waiting for the disk.
func relax(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "set synchronous_commit = off")
	return err
}

// together does the same work in several relaxed sessions at once.
func together(ctx context.Context, d database, work func(ctx context.Context, conn *pgx.Conn) error) error {
	conns, err := d.sessions(ctx, ageingSessions)
	if err != nil {
		return err
	}
	defer closeAll(ctx, conns)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	for _, conn := range conns {
		working.Go(func() {
			err := relax(ctx, conn)
			if err == nil {
				err = work(ctx, conn)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	working.Wait()
	return context.Cause(ctx)
}

// held keeps a connection, with its transaction, until it is let go of; a second time does nothing.
func held(ctx context.Context, conn *pgx.Conn) (lift func()) {
	return sync.OnceFunc(func() { closeAll(ctx, []*pgx.Conn{conn}) })
}
