package activation

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

// bell is the connection on which this engine is notified of messages, for as long as it runs.
type bell struct {
	config Config
	// rung brings the ids of queues; overflow tells that some were lost, or may have been before listening began.
	rung     chan int32
	overflow chan struct{}
	// Each of these holds one signal at most.
	queues, alarms, resigned chan struct{}
	isListening              atomic.Bool
	// companion hears what is not for queues: rung brings ids that belong to no activated queue.
	companion struct {
		rung               chan int32
		missed, unresolved chan struct{}
	}
}

func newBell(config Config) *bell {
	b := &bell{
		config: config, rung: make(chan int32, 4096), overflow: make(chan struct{}, 1),
		queues: make(chan struct{}, 1), alarms: make(chan struct{}, 1), resigned: make(chan struct{}, 1),
	}
	b.companion.rung = make(chan int32, 1024)
	b.companion.missed, b.companion.unresolved = make(chan struct{}, 1), make(chan struct{}, 1)
	return b
}

// listen receives notifications until ctx ends.
func (b *bell) listen(ctx context.Context) {
	failures := backoff.NewFailures(b.config.Logger, "no notifications can be received; looking at intervals")
	for ctx.Err() == nil {
		conn, isDirect, err := b.connect(ctx)
		if err == nil && !isDirect {
			b.config.Logger.Info("connected through a pooler: looking for messages at intervals; " +
				"name a direct connection to be notified")
			return
		}
		if err == nil {
			failures.Succeeded()
			err = b.receive(ctx, conn)
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(failures.Failed(err)):
		}
	}
}

// connect opens the connection, and tells whether notifications can reach it.
func (b *bell) connect(ctx context.Context) (conn *pgx.Conn, isDirect bool, err error) {
	config := b.config.ListenConfig
	if config == nil {
		config = b.config.Pool.Config().ConnConfig
	}
	config = config.Copy()
	// A configuration taken from a connection would hand our notifications to that connection.
	config.OnNotification = nil
	setName(config, "parley listener")
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err = pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, false, fmt.Errorf("connect for notifications: %w", err)
	}
	if _, isDirect, err = backend(ctx, conn); err == nil && isDirect {
		_, err = conn.Exec(ctx, "listen parley", pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil || !isDirect {
		_ = conn.Close(ctx)
		return nil, isDirect, err
	}
	return conn, true, nil
}

func (b *bell) receive(ctx context.Context, conn *pgx.Conn) error {
	b.isListening.Store(true)
	signal(b.overflow)
	signal(b.companion.missed)
	defer func() {
		b.isListening.Store(false)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for notifications: %w", err)
		}
		switch notification.Payload {
		case "queues":
			signal(b.queues)
		case "leader":
			signal(b.resigned)
		case "0":
			signal(b.alarms)
		case "transmission":
			signal(b.companion.missed)
		case "unresolved":
			signal(b.companion.unresolved)
		default:
			id, err := strconv.ParseInt(notification.Payload, 10, 32)
			if err != nil {
				continue // anybody may notify
			}
			select {
			case b.rung <- int32(id):
			default:
				signal(b.overflow)
				signal(b.companion.missed)
			}
		}
	}
}

// passOn gives the companion a ring that is for no activated queue.
func (b *bell) passOn(id int32) {
	select {
	case b.companion.rung <- id:
	default:
		signal(b.companion.missed)
	}
}

// signal puts a signal where none is yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// backend asks for the process that serves a connection. A pooler gives its clients process ids of its own, and through one
// nothing that belongs to a session can be relied on.
func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, isDirect bool, err error) {
	if err := conn.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return 0, false, fmt.Errorf("ask for the backend: %w", err)
	}
	return pid, pid == conn.PgConn().PID(), nil
}

// setName names a connection for those who look at pg_stat_activity.
func setName(config *pgx.ConnConfig, name string) {
	if config.RuntimeParams == nil {
		config.RuntimeParams = map[string]string{}
	}
	config.RuntimeParams["application_name"] = name
}
