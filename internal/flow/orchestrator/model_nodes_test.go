package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// node is one that serves the host, and that can be killed between any two messages of the protocol of the server.
type node struct {
	name     string
	pool     *pgxpool.Pool
	runner   *orchestrator.Runner
	lives    int
	left     atomic.Int64 // writes until it is killed; below 0: it is not
	isSent   atomic.Bool  // the last one reaches the server
	isKilled atomic.Bool
	of       atomic.Pointer[model] // that is checked
}

// wire is a connection of a node.
type wire struct {
	net.Conn
	node *node
}

// Write sends, unless the node is killed before or behind it.
func (w wire) Write(data []byte) (int, error) {
	n := w.node
	if n.left.Load() < 0 || n.left.Add(-1) >= 0 {
		return w.Conn.Write(data)
	}
	n.isKilled.Store(true)
	if n.isSent.Load() {
		_, _ = w.Conn.Write(data)
	}
	_ = w.Close()
	return 0, net.ErrClosed
}

// start makes the sessions and the runner of a node.
func (m *model) start(n *node) {
	n.lives++
	n.left.Store(-1)
	n.isKilled.Store(false)
	config := m.Pool.Config()
	config.MaxConns, config.MinConns = 2, 0
	config.ConnConfig.RuntimeParams["application_name"] = fmt.Sprintf("%s %d", n.name, n.lives)
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return wire{conn, n}, err
	}
	config.AfterConnect = pgdb.PrepareSession
	var err error
	if n.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		m.Fatal(err)
	}
	n.runner = orchestrator.New(orchestrator.Config{
		Host: "Send", Pool: n.pool, Logger: slog.New(slog.NewTextHandler(m.Output(), nil)),
		Compile: func(name string, settings json.RawMessage) (orchestrator.Program, error) {
			return orchestrator.Compile(name, settings, n.of.Load().known)
		},
		Type: func(_ context.Context, made process.Message) (process.Message, error) {
			made.Type = n.of.Load().name("done")
			return made, nil
		},
	})
}

// bury ends what a killed node has left, and starts it again.
func (m *model) bury(n *node) {
	application := fmt.Sprintf("%s %d", n.name, n.lives)
	n.pool.Close()
	parleytest.Until(m.T, "the sessions of a killed node have ended", func() bool {
		return sqltest.Value[int](m.Session, "select count(*)::int from pg_stat_activity where application_name = $1", application) == 0
	})
	m.start(n)
}
