package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
)

// dialogReader is the activation procedure of the targets.
const dialogReader = "bench.read_dialog"

// throughTrial measures messages from the first send to the last row that a reader commits.
func (b *bench) throughTrial(r Result, t traffic) trial {
	r.System, r.Sessions, r.Conversations, r.Size, r.Batch = systemParley, t.sessions, t.conversations, t.size, t.batch
	return trial{result: r, run: func(ctx context.Context) (rate float64, err error) {
		made, err := b.newDeployment(ctx, t, dialogQueue, dialogReader)
		if err != nil {
			return 0, err
		}
		rate, err = b.driveThrough(ctx, made, t)
		return rate, closeDeployment(ctx, made, err)
	}}
}

// closeDeployment clears the deployment of a run that went well; after another one, its failure is what matters.
func closeDeployment(ctx context.Context, made *deployment, failure error) error {
	if err := made.clear(ctx); failure == nil {
		return err
	}
	return failure
}

// driveThrough sends for a time, and waits until everything has arrived and is committed: so nothing counts that only piled up.
func (b *bench) driveThrough(ctx context.Context, made *deployment, t traffic) (float64, error) {
	conns, err := made.senders(ctx, t.sessions)
	if err != nil {
		return 0, err
	}
	defer closeAll(ctx, conns)
	var sent atomic.Int64
	sent.Store(int64(t.conversations)) // the first message of each
	if _, err := made.await(ctx, sent.Load()); err != nil {
		return 0, err
	}
	op := counted(made.sending(t), &sent)
	if b.WarmUp > 0 {
		if _, err := driver.Drive(ctx, conns, 0, b.WarmUp, op); err != nil {
			return 0, err
		}
		if _, err := made.await(ctx, sent.Load()); err != nil {
			return 0, err
		}
	}
	before := sent.Load()
	begun, err := made.now(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := driver.Drive(ctx, conns, 0, b.Duration, op); err != nil {
		return 0, err
	}
	last, err := made.await(ctx, sent.Load())
	if err != nil {
		return 0, err
	}
	return float64(sent.Load()-before) / last.Sub(begun).Seconds(), nil
}

// senders opens sessions, shared out among the initiators.
func (m *deployment) senders(ctx context.Context, sessions int) ([]*pgx.Conn, error) {
	conns := make([]*pgx.Conn, 0, sessions)
	for i := range sessions {
		conn, err := m.initiators[i%len(m.initiators)].connect(ctx)
		if err != nil {
			closeAll(ctx, conns)
			return nil, err
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

// now is the time by the clock of the targets' server, which is that of all servers on this machine.
func (m *deployment) now(ctx context.Context) (at time.Time, err error) {
	if err := m.targets[0].control.QueryRow(ctx, "select clock_timestamp()").Scan(&at); err != nil {
		return at, fmt.Errorf("ask for the time: %w", err)
	}
	return at, nil
}

// sending is the operation that sends one message, or one batch, on any of the conversations of the session's initiator.
func (m *deployment) sending(t traffic) driver.Operation {
	bodies := randomBodies(t.batch, t.size)
	return func(ctx context.Context, conn *pgx.Conn, session int) (int, error) {
		handles := m.initiators[session%len(m.initiators)].handles
		handle := handles[rand.IntN(len(handles))]
		if t.every > 0 {
			handle = handles[session/len(m.initiators)*t.every]
		}
		return t.batch, t.in(ctx, conn, func(db parley.DB) error {
			if t.batch == 1 {
				return parley.Send(ctx, db, handle, messageType, bodies[0])
			}
			return parley.SendBatch(ctx, db, handle, messageType, bodies)
		})
	}
}

// counted adds up what an operation has done.
func counted(op driver.Operation, sum *atomic.Int64) driver.Operation {
	return func(ctx context.Context, conn *pgx.Conn, session int) (int, error) {
		n, err := op(ctx, conn, session)
		if err == nil {
			sum.Add(int64(n))
		}
		return n, err
	}
}

// insertAroundTrial measures the bare INSERT of the same sessions, in as many databases, with nothing else running.
func (b *bench) insertAroundTrial(variant string, t traffic) trial {
	r := Result{System: systemInsert, Variant: variant, Sessions: t.sessions, Size: t.size, Batch: t.batch}
	return trial{result: r, run: func(ctx context.Context) (rate float64, err error) {
		made := &deployment{}
		for i := range t.initiators {
			one, err := b.addInitiator(ctx, i+1, dialogQueue)
			if err != nil {
				return 0, closeDeployment(ctx, made, err)
			}
			made.initiators = append(made.initiators, one)
		}
		conns, err := made.senders(ctx, t.sessions)
		if err == nil {
			rate, err = driver.Drive(ctx, conns, b.WarmUp, b.Duration, inserting(t.size, t.batch, t.in))
			closeAll(ctx, conns)
		}
		return rate, closeDeployment(ctx, made, err)
	}}
}
