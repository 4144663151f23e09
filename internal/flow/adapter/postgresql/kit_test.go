package postgresql_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/postgresql"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

// box is a host of tests whose messages are rows of the table taken, written in the transaction that takes.
type box struct {
	adaptertest.Intake

	refuse func(inputs []adapter.Input) error
}

func (b *box) TakeIn(ctx context.Context, tx adapter.Transaction, inputs []adapter.Input) ([]adapter.Result, error) {
	if b.refuse != nil {
		if err := b.refuse(inputs); err != nil {
			return nil, err
		}
	}
	results := make([]adapter.Result, len(inputs))
	for i, input := range inputs {
		var key *string
		if input.Key != "" {
			key = &input.Key
		}
		written, err := json.Marshal(map[string]any{"promoted": input.Promoted, "written": input.Written})
		if err != nil {
			return nil, err
		}
		// Not qualified: the settings of the statement must not be those of the host.
		tag, err := tx.Exec(ctx, `insert into taken (key, type, content_type, body, properties) values ($1, $2, $3, $4, $5)
			on conflict (key) do nothing`, key, input.MessageType, input.ContentType, string(input.Body), written)
		if err != nil {
			return nil, err
		}
		results[i].Outcome = adapter.Published
		if tag.RowsAffected() == 0 {
			results[i].Outcome = adapter.Repeated
		}
	}
	return results, nil
}

const tables = `
	create table taken (
		n integer generated always as identity, key text unique, type text, content_type text, body text, properties jsonb
	);
	create schema shop;
	create table shop.orders_out (id integer primary key, customer text, amount numeric, done boolean not null default false);
	create table shop.orders_in (
		id bigint primary key, customer text not null, amount numeric check (amount < 1000), body jsonb, raw bytea, note text
	);
`

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.EmptyDatabase(t)
	exec(t, pool, tables)
	return pool
}

func exec(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func value[T any](t *testing.T, pool *pgxpool.Pool, query string) (v T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// addressOf gives the address of a database as one that is not the host's. The server of tests may have a socket in a folder alone, to which
// connections are led.
func addressOf(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	c := pool.Config().ConnConfig
	network, address := pgconn.NetworkAddress(c.Host, c.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, address)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		}
	}()
	return "postgresql://" + c.User + "@" + listener.Addr().String() + "/" + c.Database
}

func endpoint(t *testing.T, pool *pgxpool.Pool, address, settings string) adapter.Endpoint {
	t.Helper()
	password := "none"
	if pool != nil {
		if password = pool.Config().ConnConfig.Password; password == "" {
			password = "not asked for"
		}
	}
	return adapter.Endpoint{
		Name: "Orders", Address: address, Settings: json.RawMessage(settings), Pool: pool, Node: "one", Logger: (&logtest.Log{}).Logger(slog.LevelDebug),
		Permission: adapter.Permission{Connect: []string{"127.0.0.1:*"}},
		Secret: func(_ context.Context, name string) (string, bool, error) {
			if name == "password" {
				return password + "\n", true, nil
			}
			return "", false, nil
		},
	}
}

// run runs a location until the test ends, or stop is called, which gives what Run gave.
func run(t *testing.T, e adapter.Endpoint, in adapter.Intake) (stop func() error) {
	t.Helper()
	receiver, err := postgresql.Kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- receiver.Run(ctx, in) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return parleytest.Receive(t, ended, "the end of the location")
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func newSender(t *testing.T, pool *pgxpool.Pool, address, settings string) adapter.TransactionSender {
	t.Helper()
	e := endpoint(t, pool, address, settings)
	s, err := postgresql.Kind.NewSender(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.(adapter.TransactionSender)
}

func message(id int64, body string) *adapter.Message {
	return &adapter.Message{
		ID: id, Interchange: 1, Type: "urn:o#Order", Size: int64(len(body)),
		Promoted: map[string]string{"urn:p#Shop": "north'; drop table taken; --"}, Written: map[string]string{},
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

func failure(t *testing.T, err error) *adapter.Failure {
	t.Helper()
	f, ok := errors.AsType[*adapter.Failure](err)
	if !ok {
		t.Fatalf("the error is %v, want a failure", err)
	}
	return f
}

// capturing is an intake that keeps one input and takes none.
type capturing struct {
	adaptertest.Intake

	input adapter.Input
}

func (c *capturing) TakeIn(_ context.Context, _ adapter.Transaction, inputs []adapter.Input) ([]adapter.Result, error) {
	c.input = inputs[0]
	return nil, errors.New("captured")
}
