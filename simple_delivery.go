package parley

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// NextMessageDelivery is [NextDelivery] for a simple queue: it shows messages of one key, or without keys, top at most, and claims them.
// Deliver them, then call [FinishMessageDelivery] in a transaction, or [FailMessageDelivery].
//
// Errors: as [Put].
func NextMessageDelivery(ctx context.Context, db DB, claim DeliveryClaim, top int) ([]TakenMessage, error) {
	rows, err := db.Query(ctx, `
		select message_id, key, priority, body, enqueued_at, trace_context, attempt
		from parley.next_message_delivery(queue => $1, top => $2, claim => $3, lease_ms => $4)`,
		claim.Queue, int32(min(top, 1<<31-1)), claim.ID, pgdb.Milliseconds(claim.Lease))
	if err != nil {
		return nil, pgdb.StatementError(err, "find a delivery of queue "+claim.Queue)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TakenMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "find a delivery of queue "+claim.Queue)
	}
	return messages, nil
}

// FinishMessageDelivery takes messages that were accepted, and gives up their claim. It returns false when some of it was lost before:
// then roll back, and record nothing.
//
// Errors: as [Put].
func FinishMessageDelivery(ctx context.Context, tx pgx.Tx, claim DeliveryClaim, messages []TakenMessage) (bool, error) {
	var taken int
	err := tx.QueryRow(ctx, "select parley.finish_message_delivery(queue => $1, message_ids => $2, claim => $3)",
		claim.Queue, messageIDs(messages), claim.ID).Scan(&taken)
	if err != nil {
		return false, pgdb.StatementError(err, "finish a delivery of queue "+claim.Queue)
	}
	return taken == len(messages), nil
}

// FailMessageDelivery makes messages of a simple queue wait whose delivery failed, longer each time, and sets one aside after too
// many attempts; of several that were refused together none is counted, and each comes alone after that. It gives up their claim. The
// conversation in failure has no meaning.
//
// Errors: as [Put].
func FailMessageDelivery(
	ctx context.Context, db DB, messages []TakenMessage, failure DeliveryFailure,
) (failed FailedDelivery, err error) {
	err = db.QueryRow(ctx, `
		select f.attempts, f.is_set_aside, f.is_lost
		from parley.fail_message_delivery(
			queue => $1::text, message_ids => $2::bigint[], error => $3::text, is_attempt => $4::boolean,
			retry_ms => $5::integer, is_final => $6::boolean, answer => nullif($7::text, ''), claim => $8::uuid
		) as f`,
		failure.Claim.Queue, messageIDs(messages), pgdb.Storable(failure.Error), failure.IsAttempt, failure.retry(), failure.IsFinal,
		pgdb.Storable(failure.Answer), failure.Claim.ID,
	).Scan(&failed.Attempts, &failed.IsSetAside, &failed.IsLost)
	if err != nil {
		return FailedDelivery{}, pgdb.StatementError(err, "record a failed delivery of queue "+failure.Claim.Queue)
	}
	return failed, nil
}

// TimeToNextMessageDelivery reports when a message that waits after a failed delivery may be tried again; false when none waits.
//
// Errors: as [Put].
func TimeToNextMessageDelivery(ctx context.Context, db DB, queue string) (time.Duration, bool, error) {
	var wait *float64
	if err := db.QueryRow(ctx, "select parley.seconds_to_next_message_delivery($1::text)", queue).Scan(&wait); err != nil {
		return 0, false, pgdb.StatementError(err, "find failed deliveries of queue "+queue)
	}
	if wait == nil {
		return 0, false, nil
	}
	return time.Duration(*wait * float64(time.Second)), true, nil
}

func messageIDs(messages []TakenMessage) []int64 {
	ids := make([]int64, len(messages))
	for i, message := range messages {
		ids[i] = message.MessageID
	}
	return ids
}
