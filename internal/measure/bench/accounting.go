package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/driver"
)

// account is how the database counts what a run has done: a statement that gives one number, which each message changes by so much.
type account struct {
	statement string
	argument  string // of the statement
	change    int64
}

// The accounts of the common operations.
const (
	countWaiting = "select bench.waiting($1)"
	countRows    = "select count(*) from bench.bare where $1 = ''"
	countMail    = "select count(*) from parley_mail._p_message where $1 = ''"
)

// moreIn expects as many more messages in a queue as were sent.
func moreIn(queue string) account { return account{countWaiting, queue, 1} }

// fewerIn expects as many fewer messages in a queue as were received.
func fewerIn(queue string) account { return account{countWaiting, queue, -1} }

// moreRows expects as many more rows in the bare table as were inserted.
func moreRows() account { return account{countRows, "", 1} }

// moreMail expects as many more messages of mail as were submitted.
func moreMail() account { return account{countMail, "", 1} }

// driveCounted runs an operation in new sessions of a database. Where the database does not count what the clients have counted, the run is
// invalid: a figure is one of the database, and not of the client alone.
func (b *bench) driveCounted(ctx context.Context, d database, sessions int, op driver.Operation, a account) (rate float64, err error) {
	var before, after int64
	var done atomic.Int64
	if before, err = a.count(ctx, d); err != nil {
		return 0, err
	}
	if rate, err = b.drive(ctx, d, sessions, counted(op, &done)); err != nil {
		return 0, err
	}
	if after, err = a.count(ctx, d); err != nil {
		return 0, err
	}
	b.miscounted(a.check(before, after, done.Load()))
	return rate, nil
}

// miscounted makes the run invalid where the clients and the database, or a broker, have counted differently.
func (b *bench) miscounted(difference error) {
	if difference != nil {
		b.differences = append(b.differences, difference)
	}
}

// count asks the database.
func (a account) count(ctx context.Context, d database) (has int64, err error) {
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, a.statement, a.argument).Scan(&has); err != nil {
			return fmt.Errorf("count what was done: %w", err)
		}
		return nil
	})
	return has, err
}

// errMiscounted reports that counts differ.
var errMiscounted = errors.New("the counts differ")

// check compares what the clients have counted with the numbers of the database.
func (a account) check(before, after, done int64) error {
	if want := before + a.change*done; after != want {
		return fmt.Errorf("%w: the clients counted %d messages, so that the database would have %d; it had %d and has %d", errMiscounted,
			done, want, before, after)
	}
	return nil
}
