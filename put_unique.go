package parley

import (
	"context"

	"github.com/parley-broker/parley/internal/pgdb"
)

// PutUnique puts a message into a simple queue, as [Put] does, unless one that was put with the same unique key, of 1 to 256 characters,
// waits there, for its turn, its time or another attempt, or is in the hands of a reader: then nothing is put, whatever the body, and the
// outcome is that of the one that is there. The body has to be text.
//
// Errors: as [Put], and 8402 for a unique key that is empty or too long.
func PutUnique(
	ctx context.Context, db DB, queue string, body []byte, uniqueKey string, options ...PutOption,
) (SentMessage, error) {
	p := putting(options)
	sent, err := readSent(db.QueryRow(ctx, `
		select s.is_duplicate, s.conversation_handle, s.message_id, s.delayed_id, s.sent_at
		from parley.put_unique(
			queue => $1, body => $2::text, unique_key => $3, key => $4, priority => $5, deliver_at => $6
		) as s`, queue, string(body), uniqueKey, p.key, p.priority, p.deliverAt))
	if err != nil {
		return SentMessage{}, pgdb.StatementError(err, "put into queue "+queue)
	}
	return sent, nil
}

// PutGroup puts a message for each body into a simple queue, and has the daemon put thenBody into thenQueue when all of them are done:
// taken in transactions that committed, or withdrawn. It returns the number of the batch, as the view parley.batches shows it. Of the
// options [WithPriority] alone has a meaning. Bodies have to be text.
//
// Errors: as [Put].
func PutGroup(
	ctx context.Context, db DB, queue string, bodies []string, thenQueue, thenBody string, options ...PutOption,
) (batch int64, err error) {
	err = db.QueryRow(ctx, `
		select parley.put_group(queue => $1, bodies => $2, then_queue => $3, then_body => $4, priority => $5)`,
		queue, bodies, thenQueue, thenBody, putting(options).priority).Scan(&batch)
	if err != nil {
		return 0, pgdb.StatementError(err, "put a batch into queue "+queue)
	}
	return batch, nil
}

// Done says what came of a message of a simple queue, in the transaction that took it: the view parley.finished_messages shows the result,
// a document of JSON or nil, for as long as the queue keeps what is finished. It reports whether the queue keeps anything.
//
// Errors: as [Put].
func Done(ctx context.Context, db DB, queue string, messageID int64, result []byte) (isKept bool, err error) {
	err = db.QueryRow(ctx, "select parley.done(queue => $1, message_id => $2, result => $3::text::jsonb)",
		queue, messageID, document(result)).Scan(&isKept)
	if err != nil {
		return false, pgdb.StatementError(err, "finish a message of queue "+queue)
	}
	return isKept, nil
}
