package metrics

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// statements counts what a daemon asks of its database.
type statements struct {
	mu     sync.Mutex
	count  int64
	failed map[string]int64 // by class of SQLSTATE: bounded by what PostgreSQL has
}

var _ pgx.QueryTracer = (*Database)(nil)

// TraceQueryStart counts a statement.
func (d *Database) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	d.statements.count++
	return ctx
}

// TraceQueryEnd counts a statement that failed.
func (d *Database) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if data.Err == nil || errors.Is(data.Err, pgx.ErrNoRows) {
		return
	}
	d.statements.mu.Lock()
	defer d.statements.mu.Unlock()
	if d.statements.failed == nil {
		d.statements.failed = map[string]int64{}
	}
	d.statements.failed[errorClass(data.Err)]++
}

// errorClass is the class of an error's SQLSTATE; what never reached the database has none.
func errorClass(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && len(pgErr.Code) == 5 {
		return pgErr.Code[:2]
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	default:
		return "connection"
	}
}

func (s *statements) read() (count int64, failed map[string]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, maps.Clone(s.failed)
}
