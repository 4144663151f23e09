package pgdb

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// attemptsAtOnce connections are attempted at once before one of them has succeeded, and one more each attemptInterval.
	// Both together allow a daemon ten attempts in any second at most.
	attemptsAtOnce  = 3
	attemptInterval = 200 * time.Millisecond
)

// ConnectionLimit bounds how often a process tries to connect while its server is away. All connections of a daemon share one limit, so
// that the parts of the daemon together make at most ten attempts in a second, whatever each of them does after a failure. A connection
// that is established lifts the limit for those that wait. It is safe for concurrent use.
type ConnectionLimit struct {
	turn chan struct{} // held by the attempt that waits next

	mu       sync.Mutex
	attempts int       // since a connection was established, less one for each interval
	since    time.Time // the end of the last interval that was counted off
	lifted   chan struct{}
}

// NewConnectionLimit makes a limit for the connections of one process.
func NewConnectionLimit() *ConnectionLimit {
	return &ConnectionLimit{turn: make(chan struct{}, 1), lifted: make(chan struct{})}
}

// Apply has connections that are made with config, and with copies of it, wait for the limit. The wait counts as part of the time that
// connecting may take.
func (l *ConnectionLimit) Apply(config *pgx.ConnConfig) {
	dial, afterConnect := config.DialFunc, config.AfterConnect
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := l.wait(ctx); err != nil {
			return nil, fmt.Errorf("wait for earlier attempts to connect: %w", err)
		}
		return dial(ctx, network, address)
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		l.lift()
		if afterConnect == nil {
			return nil
		}
		return afterConnect(ctx, conn)
	}
}

// wait returns when the next attempt may begin. Attempts begin in the order in which they came.
func (l *ConnectionLimit) wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		pause, lifted := l.begin(time.Now())
		if pause <= 0 {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-lifted:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// begin counts an attempt that may begin now, or gives how long it has to wait.
func (l *ConnectionLimit) begin(now time.Time) (pause time.Duration, lifted <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.attempts > 0 && now.Sub(l.since) >= attemptInterval {
		l.attempts--
		l.since = l.since.Add(attemptInterval)
	}
	if l.attempts == 0 {
		l.since = now
	}
	if l.attempts >= attemptsAtOnce {
		return l.since.Add(attemptInterval).Sub(now), l.lifted
	}
	l.attempts++
	return 0, nil
}

// lift lets those who wait go on: the server answers.
func (l *ConnectionLimit) lift() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts = 0
	close(l.lifted)
	l.lifted = make(chan struct{})
}
