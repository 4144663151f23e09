package parley

import (
	"context"

	"github.com/parley-broker/parley/internal/pgdb"
)

// RecordFailure reports that a transaction that had received from conversations has failed, and why. Call it after the
// rollback, outside of that transaction. A failure that is reported is counted at once, and its text is there for whoever
// inspects what is set aside; one that is not is counted when its message is received again. A [Consumer] reports by itself.
//
// Conversations that are gone, or of queues that the role may not receive from, are passed over.
func RecordFailure(ctx context.Context, db DB, failure error, handles ...UUID) error {
	sqlstate, text := pgdb.DescribeFailure(failure)
	_, err := db.Exec(ctx, `
		select parley.record_failure(conversation_handle => h.handle, sqlstate => $2, message => $3)
		from unnest($1::text::uuid[]) as h (handle)`, arrayLiteral(handles), sqlstate, text)
	if err != nil {
		return pgdb.StatementError(err, "record a failure")
	}
	return nil
}

// RecordMessageFailure reports why a transaction that had taken one message from a simple queue failed. A [SimpleConsumer] does it;
// a program that takes by hand calls it after the rollback. It returns false when the message is gone.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], or 8402 when the queue is not simple.
func RecordMessageFailure(ctx context.Context, db DB, queue string, messageID int64, failure error) (bool, error) {
	sqlstate, text := pgdb.DescribeFailure(failure)
	var isRecorded bool
	err := db.QueryRow(ctx, `
		select parley.record_message_failure(
			queue => $1::text, message_id => $2, sqlstate => $3, message => $4
		)`, queue, messageID, sqlstate, text).
		Scan(&isRecorded)
	if err != nil {
		return false, pgdb.StatementError(err, "record a failure of a message of queue "+queue)
	}
	return isRecorded, nil
}
