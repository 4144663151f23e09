package activation

import (
	"context"

	"github.com/parley-broker/parley/internal/pgdb"
)

// RecordReaderFailure reports that a reader of a queue has failed whose conversation is not known: the broker finds that by
// the message that came back.
func RecordReaderFailure(ctx context.Context, db pgdb.DB, queueID int, failure error) error {
	sqlstate, text := pgdb.DescribeFailure(failure)
	_, err := db.Exec(ctx, `
		select parley._p_record_reader_failure(
			queue_id => $1, sqlstate => $2, message => $3
		)`, queueID, sqlstate, text)
	if err != nil {
		return pgdb.StatementError(err, "record the failure of a reader")
	}
	return nil
}
