package postgresql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// sender writes messages by one statement.
type sender struct {
	adapter.Endpoint

	at       place
	settings sendSettings
	session  session
	write    write

	mu   sync.Mutex
	pool *pgxpool.Pool // of another database, made with the first message
}

var _ adapter.TransactionSender = (*sender)(nil)

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	at, settings, problems := readSend(e.Address, e.Settings, anySecret)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	w, problems := settings.write()
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	if e.Responds && settings.Function != "" {
		w.text = strings.Replace(w.text, "select from", "select * from", 1) + " limit 1"
	}
	if !at.isLocal {
		if _, err := e.Permission.CheckConnect(at.hostPort()); err != nil {
			return nil, err
		}
	}
	return &sender{
		Endpoint: e, at: at, settings: settings, write: w,
		session: newSession(e, at, settings.SearchPath, settings.StatementTimeout),
	}, nil
}

// InTransaction says whether the rows are in the database of the host.
func (s *sender) InTransaction() bool { return s.at.isLocal }

// Close gives back the connections.
func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
	return nil
}

// Send writes messages in a transaction of the database that is named, or of its own in that of the host.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries, err := s.send(ctx, messages)
	if err == nil {
		return deliveries
	}
	// All of it was undone, or nothing is known of it: the key of each message tells a repeat.
	deliveries = make([]adapter.Delivery, len(messages))
	for i := range deliveries {
		deliveries[i].Err = s.judge(err)
	}
	return deliveries
}

func (s *sender) send(ctx context.Context, messages []*adapter.Message) ([]adapter.Delivery, error) {
	pool := s.Pool
	if !s.at.isLocal {
		var err error
		if pool, err = s.connected(ctx); err != nil {
			return nil, err
		}
	}
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	deliveries, err := s.SendIn(ctx, tx, messages)
	if err != nil {
		return nil, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return deliveries, nil
}

// connected gives the pool of another database.
func (s *sender) connected(ctx context.Context) (*pgxpool.Pool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool != nil {
		return s.pool, nil
	}
	config, err := pgxpool.ParseConfig("host=localhost user=nobody password=none passfile=/dev/null sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("make a configuration: %w", err)
	}
	if config.ConnConfig, err = s.at.config(ctx, s.Endpoint, s.settings.TLS); err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(s.settings.Connections), 0
	// A password that was changed is that of the next connection.
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		fresh, err := s.at.config(ctx, s.Endpoint, s.settings.TLS)
		if err == nil {
			c.Password = fresh.Password
		}
		return err
	}
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, fmt.Errorf("make a pool: %w", err)
	}
	return s.pool, nil
}

// prepared is a message whose values are read.
type prepared struct {
	index  int // among the messages
	values [][]byte
}

// SendIn writes messages in a transaction: all by one round, and one by one where one of them is refused.
func (s *sender) SendIn(ctx context.Context, tx adapter.Transaction, messages []*adapter.Message) ([]adapter.Delivery, error) {
	deliveries := make([]adapter.Delivery, len(messages))
	var ready []prepared
	for i, m := range messages {
		values, err := s.values(ctx, m)
		if err != nil {
			deliveries[i].Err = err
			continue
		}
		ready = append(ready, prepared{i, values})
	}
	if len(ready) == 0 {
		return deliveries, ctx.Err()
	}
	leave, err := s.session.enter(ctx, tx)
	if err != nil {
		return nil, err
	}
	refused, err := s.attempt(ctx, tx, ready, deliveries)
	if err != nil {
		return nil, err
	}
	if refused != nil && len(ready) == 1 {
		deliveries[ready[0].index].Err = refused
	} else if refused != nil {
		for _, p := range ready {
			if deliveries[p.index].Err, err = s.attempt(ctx, tx, []prepared{p}, deliveries); err != nil {
				return nil, err
			}
		}
	}
	return deliveries, leave(ctx)
}

// values reads the values of a message. An error of its pipeline is passed on.
func (s *sender) values(ctx context.Context, m *adapter.Message) ([][]byte, error) {
	c := &content{}
	if slices.ContainsFunc(s.write.sources, source.needsBody) {
		opened, err := m.Open(ctx)
		if err != nil {
			return nil, err
		}
		read, readErr := io.ReadAll(io.LimitReader(opened, bodyBytesMax+1))
		if err := errors.Join(readErr, opened.Close()); err != nil {
			return nil, err
		}
		c.bytes = read
		if len(c.bytes) > bodyBytesMax {
			return nil, refusal(fmt.Errorf("the body has more than %d bytes, and cannot be a value", bodyBytesMax))
		}
	}
	if slices.ContainsFunc(s.write.sources, func(of source) bool { return of.isField }) {
		var err error
		if c.parsed, err = parseJSON(c.bytes); err != nil {
			return nil, refusal(err)
		}
	}
	values := make([][]byte, len(s.write.sources))
	for i, from := range s.write.sources {
		var err error
		if values[i], err = from.value(m, c); err != nil {
			return nil, refusal(err)
		}
	}
	return values, nil
}

// attempt writes messages behind a savepoint, and goes back to it where one of them is refused: then that is given. The rows of
// the statements are the answers of a port that responds. An error says that the transaction is lost.
func (s *sender) attempt(ctx context.Context, tx pgx.Tx, ready []prepared, deliveries []adapter.Delivery) (refused, err error) {
	batch := &pgconn.Batch{}
	plain := func(statement string) { batch.ExecParams(statement, nil, nil, nil, nil) }
	plain("savepoint parley_flow_message")
	for _, p := range ready {
		batch.ExecParams(s.write.text, p.values, nil, nil, nil)
	}
	// A constraint that is checked at the commit would undo the messages of others, again and again.
	plain("set constraints all immediate")
	plain("set constraints all deferred")
	plain("release savepoint parley_flow_message")
	conn := tx.Conn().PgConn()
	results, cause := conn.ExecBatch(ctx, batch).ReadAll()
	if cause == nil {
		return s.answers(ready, results, deliveries), nil
	}
	if broken(ctx, cause) {
		return nil, cause
	}
	back := &pgconn.Batch{}
	back.ExecParams("rollback to savepoint parley_flow_message", nil, nil, nil, nil)
	back.ExecParams("release savepoint parley_flow_message", nil, nil, nil, nil)
	if _, err := conn.ExecBatch(ctx, back).ReadAll(); err != nil {
		return nil, fmt.Errorf("go back to the savepoint: %w", errors.Join(err, cause))
	}
	return s.judge(cause), nil
}
