package notifier

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
)

const (
	// connectTimeout bounds how long it may take to connect and listen.
	connectTimeout = 10 * time.Second
	closeTimeout   = time.Second
)

// Config reports how to reach the database.
type Config struct {
	// Pool leads to the database, and may lead through a pooler in transaction mode.
	Pool *pgxpool.Pool
	// Direct is how to reach the database without a pooler in between. When nil the settings of Pool are used, and nobody is notified when
	// these lead through a pooler.
	Direct *pgx.ConnConfig
	// IsTrusted reports that notifications arrive by Direct, though there may be a pooler that keeps a session for each client.
	IsTrusted bool
	// Name is the application name of the connection; "" leaves that of the settings.
	Name   string
	Logger *slog.Logger
}

// Notifier has one connection that listens, for any number of subscriptions.
type Notifier struct {
	config Config
	// connection is the number of the connection that listens, 0 while none does.
	connection atomic.Int64

	mu            sync.Mutex
	subscriptions map[*Subscription]bool
	owners        map[int32]*Subscription
}

// New makes a notifier. Nothing is connected before [Notifier.Run].
func New(config Config) *Notifier {
	return &Notifier{config: config, subscriptions: map[*Subscription]bool{}, owners: map[int32]*Subscription{}}
}

// IsListening reports whether notifications arrive.
func (n *Notifier) IsListening() bool { return n.Connection() != 0 }

// Connection gives the number of the connection on which notifications arrive, 0 when none do.
func (n *Notifier) Connection() int64 { return n.connection.Load() }

// Run listens until ctx ends, or until it turns out that nothing can be notified through the pooler in between.
func (n *Notifier) Run(ctx context.Context) {
	failures := backoff.NewFailures(n.config.Logger, "not notified of messages for now; scanning at intervals")
	for number := int64(1); ctx.Err() == nil; number++ {
		conn, isPossible, err := n.connect(ctx)
		if err == nil && !isPossible {
			n.config.Logger.Info("connected through a pooler: scanning for messages at intervals; " +
				"name a direct connection to be notified")
			return
		}
		if err == nil {
			failures.Succeeded()
			err = n.receive(ctx, conn, number)
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

// connect opens the connection and listens, if notifications can reach it.
func (n *Notifier) connect(ctx context.Context) (conn *pgx.Conn, isPossible bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	config, err := n.settings(ctx)
	if err != nil {
		return nil, false, err
	}
	conn, err = pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, false, fmt.Errorf("connect for notifications: %w", err)
	}
	isPossible = n.config.IsTrusted && n.config.Direct != nil
	if !isPossible {
		_, isPossible, err = pgdb.Backend(ctx, conn)
	}
	if err == nil && isPossible {
		// It is idle for as long as nobody is notified of anything.
		_, err = conn.Exec(ctx, "set idle_session_timeout = 0", pgx.QueryExecModeSimpleProtocol)
	}
	if err == nil && isPossible {
		_, err = conn.Exec(ctx, "listen parley", pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil || !isPossible {
		_ = conn.Close(ctx)
		return nil, isPossible, err
	}
	return conn, true, nil
}

func (n *Notifier) settings(ctx context.Context) (config *pgx.ConnConfig, err error) {
	if n.config.Direct != nil {
		config = n.config.Direct.Copy()
	} else {
		pool := n.config.Pool.Config()
		config = pool.ConnConfig
		if pool.BeforeConnect != nil {
			if err := pool.BeforeConnect(ctx, config); err != nil {
				return nil, fmt.Errorf("prepare to connect for notifications: %w", err)
			}
		}
	}
	// Settings taken from a connection would hand our notifications to that connection.
	config.OnNotification = nil
	if n.config.Name != "" {
		pgdb.SetName(config, n.config.Name)
	}
	return config, nil
}

// receive passes on what is notified until the connection fails.
func (n *Notifier) receive(ctx context.Context, conn *pgx.Conn, number int64) error {
	n.connection.Store(number)
	defer func() {
		n.connection.Store(0)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = conn.Close(closing)
	}()
	n.missed()
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for notifications: %w", err)
		}
		n.notify(notification.Payload)
	}
}
