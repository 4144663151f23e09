package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// NameTaken is the SQLSTATE of a report under a name that another process has.
const NameTaken = "PF017"

// Node is a process that serves a host under a name.
type Node struct {
	Host, Name string
	Process    string // a random text of this process
}

// Report says that a node serves a host, and how it is doing; isLast: it ends now. Errors: [NameTaken].
func (n Node) Report(ctx context.Context, db pgdb.DB, report json.RawMessage, isLast bool) error {
	_, err := db.Exec(ctx, `select parley_flow._p_report(
		host => $1::text, node => $2::text, report => $3::jsonb, process => $4::text, is_last => $5::boolean)`,
		n.Host, n.Name, report, n.Process, isLast)
	if err != nil {
		return pgdb.StatementError(err, "report how the node is doing")
	}
	return nil
}

// ReportedAt gives when whoever has the name of the node has reported last; the zero time: nobody has it.
func (n Node) ReportedAt(ctx context.Context, db pgdb.DB) (time.Time, error) {
	at, err := one[*time.Time](ctx, db, "ask who has the name of the node", `
		select max(reported_at) from parley_flow.hosts where host = $1::text and node = $2::text`, n.Host, n.Name)
	if at == nil || err != nil {
		return time.Time{}, err
	}
	return *at, nil
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
