package parley_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

// exampleDatabase gives an example a database of its own with the schema installed. Call done at the end.
func exampleDatabase() (ctx context.Context, pool *pgxpool.Pool, done func()) {
	tb := &exampleTB{ctx: context.Background()}
	pool = parleytest.Database(tb)
	return tb.ctx, pool, func() {
		for _, cleanup := range slices.Backward(tb.cleanups) {
			cleanup()
		}
	}
}

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
