package orchestrator

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// call is one transaction of a runner.
type call struct {
	runner   *Runner
	of       Orchestration
	items    []*flowstore.Claimed
	failure  error
	mostRuns int
	now      time.Time

	base      pgx.Tx // nil: none is begun
	tx        pgx.Tx // that, or its innermost savepoint
	messages  map[int64]*delivered
	instances []*instance
	unread    []gone
	done      []*flowstore.Claimed
	runs      int
}

// gone is a message for an instance that is over.
type gone struct {
	Instance int64  `json:"instance"`
	Message  int64  `json:"message"`
	CameBy   string `json:"came_by"`
}

// db gives the transaction where there is one.
func (c *call) db() pgdb.DB {
	if c.tx != nil {
		return c.tx
	}
	return c.runner.config.Pool
}

// begin begins the transaction, once.
func (c *call) begin(ctx context.Context) error {
	if c.tx != nil {
		return nil
	}
	tx, err := c.runner.config.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	c.base, c.tx = tx, tx
	return nil
}

// load reads messages that instances hold.
func (c *call) load(ctx context.Context, ids []int64) error {
	held, err := flowstore.MessagesOf(ctx, c.db(), c.runner.config.Host, ids)
	if err != nil {
		return err
	}
	for n := range held {
		m, err := ofHeld(&held[n]).message()
		if err != nil {
			return err
		}
		c.messages[m.ID] = m
	}
	return nil
}

// NewID implements [process.World].
func (c *call) NewID() string { return rand.Text() }

// Now implements [process.World].
func (c *call) Now() time.Time { return c.now }

// ends counts what the call has brought instances.
func (c *call) ends() (e Ends) {
	for _, i := range c.instances {
		if i.failure != nil {
			e.Failed++
			continue
		}
		if i.runs > 0 && i.status == "NEW" {
			e.Started++
		}
		switch i.last {
		case process.Finished:
			e.Completed++
		case process.Terminated:
			e.Terminated++
		case process.Suspended:
			e.Suspended++
		case process.Waiting:
		}
	}
	return e
}

// run has a program run, of which a panic is an error.
func (c *call) run(ctx context.Context, i *instance, e process.Event) (step process.Step, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			c.runner.config.Logger.Error("a program has failed in an unforeseen way", "orchestration", c.of.Name, "reason", reason,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", reason)
		}
	}()
	return i.program.Run(ctx, c, i.state, e)
}
