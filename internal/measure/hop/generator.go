package hop

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Generator sends bodies to an engine.
type Generator struct {
	Address string
	Frames  Frames
	// Connections are open at once, each with one body that waits for its acknowledgement.
	Connections int
	// Body makes the body with a number, from 0 on. Connections call it at the same time.
	Body func(number int64) []byte
	// Rate is how many bodies are sent a second; 0: as fast as they are acknowledged.
	Rate float64
	// Hold, if set, is called before each body, and returns when it may be sent, or ctx has ended, or the run is over.
	Hold func(ctx context.Context)
}

// Sent counts the bodies that a generator sent.
type Sent struct {
	Messages int64         // acknowledged
	Took     time.Duration // from the first to the last acknowledgement
	// Waiting is the part of the connections' time in which they waited for an acknowledgement.
	Waiting float64
}

// Run sends until count bodies were acknowledged, or, where count is 0, until the duration is over. An error of one connection ends all.
func (g Generator) Run(ctx context.Context, count int64, duration time.Duration) (Sent, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, acknowledged, waiting atomic.Int64
	var working sync.WaitGroup
	begun := time.Now()
	deadline := begun.Add(duration)
	holding := ctx
	if count == 0 {
		var over func()
		holding, over = context.WithDeadline(ctx, deadline)
		defer over()
	}
	take := func() (int64, bool) {
		number := next.Add(1) - 1
		if count > 0 {
			return number, number < count
		}
		return number, time.Now().Before(deadline)
	}
	for range g.Connections {
		working.Go(func() {
			if err := g.connection(ctx, holding, take, begun, &acknowledged, &waiting); err != nil {
				cancel(err)
			}
		})
	}
	working.Wait()
	sent := Sent{Messages: acknowledged.Load(), Took: time.Since(begun)}
	sent.Waiting = float64(waiting.Load()) / (float64(sent.Took) * float64(g.Connections))
	return sent, context.Cause(ctx)
}

func (g Generator) connection(
	ctx, holding context.Context, take func() (int64, bool), begun time.Time, acknowledged, waiting *atomic.Int64,
) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", g.Address)
	if err != nil {
		return fmt.Errorf("connect to the engine: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	in := bufio.NewReader(conn)
	for number, more := take(); more && ctx.Err() == nil; number, more = take() {
		if g.Rate > 0 && !waitUntil(ctx, begun.Add(time.Duration(float64(number)/g.Rate*float64(time.Second)))) {
			return nil
		}
		if g.Hold != nil {
			g.Hold(holding)
			if holding.Err() != nil {
				return nil
			}
		}
		written := time.Now()
		if err := g.Frames.WriteBody(conn, g.Body(number)); err != nil {
			return fmt.Errorf("send body %d: %w", number, err)
		}
		if err := g.Frames.ReadAcknowledgement(in); err != nil {
			return fmt.Errorf("wait for the acknowledgement of body %d: %w", number, err)
		}
		acknowledged.Add(1)
		waiting.Add(int64(time.Since(written)))
	}
	return nil
}

func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
