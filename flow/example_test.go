package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/flow"
	"github.com/parley-broker/parley/parleytest"
)

// exampleTB is as much of a test as parleytest asks for.
type exampleTB struct {
	testing.TB

	ctx      context.Context //nolint:containedctx // the interface asks for it
	cleanups []func()
}

func (tb *exampleTB) Cleanup(f func())                  { tb.cleanups = append(tb.cleanups, f) }
func (tb *exampleTB) Context() context.Context          { return tb.ctx }
func (tb *exampleTB) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (tb *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (tb *exampleTB) Helper()                           {}
func (tb *exampleTB) Name() string                      { return "Example" }

// shop gives a database with the port ERP, which gets orders of more than 100, and the table orders.
func shop() (ctx context.Context, pool *pgxpool.Pool, done func()) {
	tb := &exampleTB{ctx: context.Background()}
	pool = parleytest.Database(tb)
	for _, statement := range []string{"create table orders (number text primary key, amount integer)", definitions} {
		if _, err := pool.Exec(tb.ctx, statement); err != nil {
			panic(err)
		}
	}
	return tb.ctx, pool, func() {
		for _, cleanup := range tb.cleanups {
			cleanup()
		}
	}
}

// An order is stored and published in one transaction: the port ERP gets it exactly when the order is there.
func ExamplePublish() {
	ctx, pool, done := shop() // a database with the port ERP, which gets orders of more than 100
	defer done()

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into orders values ('4711', 120)"); err != nil {
			return err
		}
		published, err := flow.Publish(ctx, tx, flow.Message{
			Content:    strings.NewReader(`{"number": "4711", "amount": 120}`),
			Type:       "http://shop.example/orders#Order",
			Properties: map[string]any{"http://shop.example/properties#Amount": 120},
		}, flow.As("Orders"))
		fmt.Println(published.Outcome)
		return err
	})
	fmt.Println(err)
	// Output:
	// PUBLISHED
	// <nil>
}
