// Package ledger keeps account of a workload in tables of its own: a row is written in the very transaction that sends, receives or
// ends, so it is there exactly when that has been committed, also when the client never learned whether it was.
//
// A database gets the tables and the functions with [Install]. A workload then calls ledger.send, ledger.receive and
// ledger.end_conversation instead of those of the schema parley. [Read] gives the entries of a database as a history for the checker. Where
// a workload has several databases their histories are joined, for each has entered its own side of a dialog. [Collect] brings all rows
// into one database, where the view ledger.verdict judges them once more, in SQL.
package ledger

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/checker"
)

//go:embed ledger.sql
var script string

// Install creates the schema ledger in a database that has the schema parley and the queues initiator_queue and target_queue.
func Install(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.PgConn().Exec(ctx, script).ReadAll(); err != nil {
		return fmt.Errorf("install the ledger: %w", err)
	}
	return nil
}

// Read gives the history that a database has entered. The commit times of what was sent are not in it.
func Read(ctx context.Context, conn *pgx.Conn) (h checker.History, err error) {
	received := func(row pgx.CollectableRow) (m checker.Received, err error) {
		err = row.Scan(&m.Dialog, &m.FromInitiator, &m.Stream, &m.N, &m.Hash, &m.Seq)
		return m, err
	}
	if h.Sent, err = collect(ctx, conn, "select dialog::text, from_initiator, stream, n, hash, begun, handle::text from ledger.sent",
		func(row pgx.CollectableRow) (m checker.Sent, err error) {
			err = row.Scan(&m.Dialog, &m.FromInitiator, &m.Stream, &m.N, &m.Hash, &m.Begun, &m.Handle)
			return m, err
		}); err != nil {
		return h, err
	}
	const columns = "select dialog::text, from_initiator, stream, n, hash, seq from ledger."
	if h.Received, err = collect(ctx, conn, columns+"received", received); err != nil {
		return h, err
	}
	if h.Waiting, err = collect(ctx, conn, columns+"waiting", received); err != nil {
		return h, err
	}
	if h.Ended, err = collect(ctx, conn, "select dialog::text, from_initiator, is_error::int, text from ledger.ended",
		func(row pgx.CollectableRow) (e checker.Ended, err error) {
			err = row.Scan(&e.Dialog, &e.FromInitiator, &e.Kind, &e.Text)
			return e, err
		}); err != nil {
		return h, err
	}
	h.EndsReceived, err = collect(ctx, conn, "select dialog::text, from_initiator, is_error::int, text, code, seq from ledger.end_received",
		func(row pgx.CollectableRow) (e checker.EndReceived, err error) {
			err = row.Scan(&e.Dialog, &e.FromInitiator, &e.Kind, &e.Text, &e.Code, &e.Seq)
			return e, err
		})
	return h, err
}

func collect[T any](ctx context.Context, conn *pgx.Conn, sql string, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	out, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %s: %w", sql, err)
	}
	return out, nil
}

// recorded are the tables with what was done, whose rows [Collect] brings together.
var recorded = []string{"sent", "received", "ended", "end_received"}

// Collect copies the rows of the ledger in one database into that of another.
func Collect(ctx context.Context, to, from *pgx.Conn) error {
	for _, table := range recorded {
		rows, err := from.Query(ctx, "select * from ledger."+table)
		if err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		var columns []string
		for _, field := range rows.FieldDescriptions() {
			columns = append(columns, field.Name)
		}
		var values [][]any
		for rows.Next() {
			row, err := rows.Values()
			if err != nil {
				rows.Close()
				return fmt.Errorf("read the ledger: %w", err)
			}
			values = append(values, row)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
		if _, err := to.CopyFrom(ctx, pgx.Identifier{"ledger", table}, columns, pgx.CopyFromRows(values)); err != nil {
			return fmt.Errorf("bring ledgers together: %w", err)
		}
	}
	return nil
}

// Verdict gives the faults that the ledger's own view finds, one text for each invariant that is broken.
func Verdict(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	return collect(ctx, conn, "select invariant || ': ' || violations from ledger.verdict where violations > 0", pgx.RowTo[string])
}
