package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

var _ process.World = (*call)(nil)

// Open implements [process.World].
func (c *call) Open(ctx context.Context, m process.Message) (io.ReadCloser, error) {
	if m.ID == 0 || m.Body != nil {
		return io.NopCloser(bytes.NewReader(m.Body)), nil
	}
	d := c.messages[m.ID]
	if d == nil || d.body == nil && d.content == 0 {
		if err := c.load(ctx, []int64{m.ID}); err != nil {
			return nil, err
		}
		if d = c.messages[m.ID]; d == nil {
			return nil, &process.Fault{Code: "process.fault", Message: fmt.Sprintf("message %d is not there any more", m.ID)}
		}
	}
	if d.content == 0 {
		return io.NopCloser(bytes.NewReader(d.body)), nil
	}
	return flowstore.OpenBody(ctx, func(ctx context.Context, from, to int) ([]flowstore.Chunk, error) {
		return flowstore.ReadHeldBody(ctx, c.db(), c.runner.config.Host, d.ID, d.content, from, to)
	}), nil
}

// Type implements [process.World].
func (c *call) Type(ctx context.Context, m process.Message) (process.Message, error) {
	if c.runner.config.Type == nil {
		return m, nil
	}
	return c.runner.config.Type(ctx, m)
}

// Transform implements [process.World].
func (c *call) Transform(ctx context.Context, name string, inputs []process.Message) (process.Message, error) {
	if c.runner.config.Transform == nil {
		return process.Message{}, &process.Fault{
			Code: "process.fault", Message: fmt.Sprintf("map %q cannot be run: this host has no maps", name),
			Remedy: "Define the map, and serve the host with a version that runs maps.",
		}
	}
	return c.runner.config.Transform(ctx, c, c.transaction, name, inputs)
}

// transaction gives the transaction of the step, where the program stands in it.
func (c *call) transaction(ctx context.Context) (pgx.Tx, error) {
	err := c.begin(ctx)
	return c.tx, err
}

// asRole gives the transaction the rights of the role of the host, until back is called.
func (c *call) asRole(ctx context.Context, tx pgx.Tx) (back func(ctx context.Context) error, err error) {
	role := ""
	if c.runner.config.Role != nil {
		role = c.runner.config.Role()
	}
	if role == "" {
		return func(context.Context) error { return nil }, nil
	}
	var before string
	err = tx.QueryRow(ctx, `
		with was as materialized (select pg_catalog.current_setting('role') as role)
		select was.role from was where pg_catalog.set_config('role', $1, true) is not null`, role).Scan(&before)
	if err != nil {
		return nil, fmt.Errorf("work as role %q of the host: %w", role, err)
	}
	return func(ctx context.Context) error {
		if _, err := tx.Exec(ctx, "select pg_catalog.set_config('role', $1, true)", before); err != nil {
			return fmt.Errorf("give the transaction back its role: %w", err)
		}
		return nil
	}, nil
}

// Query implements [process.World].
func (c *call) Query(ctx context.Context, sql string, arguments []any) ([]map[string]any, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	savepoint, err := c.tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("set a savepoint: %w", err)
	}
	rows, err := c.query(ctx, savepoint, sql, arguments)
	if err == nil {
		return rows, savepoint.Commit(ctx)
	}
	if back := savepoint.Rollback(ctx); back != nil {
		return nil, errors.Join(err, back)
	}
	state := pgdb.SQLState(err)
	if state == "" || isConflict(err) || !isOfOne(err) {
		return nil, err
	}
	return nil, &process.Fault{Code: "sql." + state, Message: err.Error(), Remedy: "Mend the statement, or what it works on."}
}

func (c *call) query(ctx context.Context, tx pgx.Tx, sql string, arguments []any) ([]map[string]any, error) {
	back, err := c.asRole(ctx, tx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, arguments...)
	if err != nil {
		return nil, fmt.Errorf("run a statement: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		return nil, fmt.Errorf("run a statement: %w", err)
	}
	return found, back(ctx)
}

// Savepoint implements [process.World].
func (c *call) Savepoint(ctx context.Context) (release, back func(ctx context.Context) error, err error) {
	if err := c.begin(ctx); err != nil {
		return nil, nil, err
	}
	savepoint, err := c.tx.Begin(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("set a savepoint: %w", err)
	}
	outer := c.tx
	c.tx = savepoint
	end := func(do func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			c.tx = outer
			return do(ctx)
		}
	}
	return end(savepoint.Commit), end(savepoint.Rollback), nil
}
