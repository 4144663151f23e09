package flow

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Report says that a node serves a host, and how it is doing.
func Report(ctx context.Context, db pgdb.DB, host, node string, report json.RawMessage) error {
	_, err := db.Exec(ctx, "select parley_flow._p_report(host => $1::text, node => $2::text, report => $3::jsonb)", host, node, report)
	if err != nil {
		return pgdb.StatementError(err, "report how the node is doing")
	}
	return nil
}

// ReportLocation says how a receive location is doing on a node; an empty failure: it works.
func ReportLocation(ctx context.Context, db pgdb.DB, host, location, node, failure string) error {
	_, err := db.Exec(ctx, `select parley_flow._p_report_location(
		host => $1::text, location => $2::text, node => $3::text, error => nullif($4::text, ''))`,
		host, location, node, pgdb.Storable(failure))
	if err != nil {
		return pgdb.StatementError(err, "report how "+location+" is doing")
	}
	return nil
}

// Maintain does the maintenance of the engine, and gives the tasks that failed, with their errors.
func Maintain(ctx context.Context, db pgdb.DB) (failed map[string]string, err error) {
	rows, err := db.Query(ctx, "select task, error from parley_flow.maintain() where error is not null")
	if err != nil {
		return nil, pgdb.StatementError(err, "maintain the engine")
	}
	failed = map[string]string{}
	var task, text string
	if _, err := pgx.ForEachRow(rows, []any{&task, &text}, func() error { failed[task] = text; return nil }); err != nil {
		return nil, pgdb.StatementError(err, "maintain the engine")
	}
	return failed, nil
}
