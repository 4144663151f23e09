package content

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
)

const (
	// SmallBytes is how long a body may be that stands in one row.
	SmallBytes = 8000
	// ChunkBytes is how long the chunks of larger ones are.
	ChunkBytes = 512 << 10
)

var (
	// ErrNotReferred means that a body does not exist, or that the holder does not refer to it.
	ErrNotReferred = errors.New("the holder does not refer to this content")
	// ErrDamaged means that what was read is not what was written.
	ErrDamaged = errors.New("the content does not have the hash that it was written with")
)

// Holder is who refers to a body.
type Holder struct {
	System string
	Number int64 // the system's own, such as that of a message
}

// Info is what is known of a body.
type Info struct {
	ID     int64
	Bytes  int64
	SHA256 [32]byte
}

// DB is what bodies are written on: a pgx.Tx, a connection or a pool. Statements join the transaction of a Tx.
type DB interface {
	pgdb.DB
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// Put stores whole bodies, each with one holder of a system, and gives their numbers. It is for small ones.
func Put(ctx context.Context, db pgdb.DB, system string, holders []int64, bodies [][]byte) ([]int64, error) {
	var ids []int64
	err := db.QueryRow(ctx, "select parley_store.put_content($1::text, $2::bigint[], $3::bytea[])", system, holders, bodies).Scan(&ids)
	if err != nil {
		return nil, failed(err, "store bodies")
	}
	return ids, nil
}

// Share lets a further holder of the same system refer to a body. It waits for nobody who writes.
func Share(ctx context.Context, db pgdb.DB, id int64, holder Holder, newHolder int64) error {
	_, err := db.Exec(ctx, "select parley_store.share_content($1::bigint, $2::text, $3::bigint, $4::bigint)",
		id, holder.System, holder.Number, newHolder)
	if err != nil {
		return failed(err, "share a body")
	}
	return nil
}

// Release ends all references of some holders, and returns how many bodies went with them.
func Release(ctx context.Context, db pgdb.DB, system string, holders []int64) (int, error) {
	var removed int
	err := db.QueryRow(ctx, "select parley_store.release_content($1::text, $2::bigint[])", system, holders).Scan(&removed)
	if err != nil {
		return 0, failed(err, "release bodies")
	}
	return removed, nil
}

// begin begins a body of several chunks, and returns the generation that has them.
func begin(ctx context.Context, db pgdb.DB, holder Holder, term time.Duration) (id int64, slot int16, err error) {
	err = db.QueryRow(ctx, `
		select b.content_id, b.slot
		from parley_store.begin_content($1::text, $2::bigint, $3::integer, make_interval(secs => $4)) as b`,
		holder.System, holder.Number, ChunkBytes, term.Seconds()).Scan(&id, &slot)
	if err != nil {
		return 0, 0, failed(err, "begin a body")
	}
	return id, slot, nil
}

// failed says what was tried, and makes an error of ours of one that callers ask for.
func failed(err error, what string) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "PS003" {
		return fmt.Errorf("%s: %w: %w", what, ErrNotReferred, err)
	}
	return pgdb.StatementError(err, what)
}
