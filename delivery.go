package parley

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// NextDelivery shows the next messages of one conversation without receiving them, top at most, and locks their group to
// the end of the transaction. Conversations whose delivery failed are passed over until it is time to try again. The
// MessageID is the same whenever a message is shown.
//
// A reader that hands messages on to somebody outside of the transaction delivers them now, and calls [FinishDelivery] in
// the same transaction when they were accepted; otherwise it rolls back and calls [FailDelivery].
//
// Errors: as [Receive].
func NextDelivery(ctx context.Context, tx pgx.Tx, queue string, top int) ([]Message, error) {
	return NextDeliveries(ctx, tx, queue, top, 1)
}

// NextDeliveries is [NextDelivery] of up to so many conversation groups, of one conversation of each. Call [FinishDelivery], or
// [FailDelivery], for each conversation.
//
// Errors: as [NextDelivery], and 8402 for less than one group.
func NextDeliveries(ctx context.Context, tx pgx.Tx, queue string, top, groups int) ([]Message, error) {
	rows, err := tx.Query(ctx, "select "+pgdb.MessageColumns+" from parley.next_delivery(queue => $1, top => $2, groups => $3)",
		queue, int32(top), int32(groups))
	if err != nil {
		return nil, pgdb.StatementError(err, "find a delivery of queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, scanMessage)
	if err != nil {
		return nil, pgdb.StatementError(err, "find a delivery of queue "+queue)
	}
	return messages, nil
}

// FinishDelivery receives messages that were accepted, all of one conversation. It returns false when a message of another
// sender has come in front of them meanwhile: then roll back, and deliver again.
//
// Errors: as [Receive].
func FinishDelivery(ctx context.Context, tx pgx.Tx, queue string, messages []Message) (bool, error) {
	if len(messages) == 0 {
		return true, nil
	}
	orders := make([]int64, len(messages))
	for i, message := range messages {
		orders[i] = message.QueuingOrder
	}
	var same bool
	err := tx.QueryRow(ctx, `
		select parley.finish_delivery(
			queue => $1::text, conversation_handle => $2::uuid, queuing_orders => $3::bigint[]
		)`,
		queue, messages[0].ConversationHandle, orders).Scan(&same)
	if err != nil {
		return false, pgdb.StatementError(err, "finish a delivery of queue "+queue)
	}
	return same, nil
}

// DeliveryFailure reports why messages of a conversation were not accepted.
type DeliveryFailure struct {
	Queue              string
	ConversationHandle UUID
	Error              string
	// IsAttempt is set when the receiver refused, and not when it was not there: only the former says something about
	// the message, and counts towards the attempts after which the conversation is set aside.
	IsAttempt bool
	// IsFinal is set when the receiver will never accept the message.
	IsFinal bool
	// Retry is how long the receiver asks to wait; 0 when it asks nothing.
	Retry time.Duration
	// Answer is the text of the receiver's answer, without secrets: its first 4,096 characters are shown.
	Answer string
	// IsTogether is set when other conversations were delivered with it: then nothing is counted, and it comes alone after that.
	IsTogether bool
}

// FailDelivery makes a conversation wait whose delivery failed, longer each time, and sets it aside after too many
// attempts. Call it after the transaction of the delivery was rolled back.
//
// Errors: an [Error] with number [QueueNotFound] or [PermissionDenied].
func FailDelivery(ctx context.Context, db DB, failure DeliveryFailure) (attempts int, isSetAside bool, err error) {
	var retry *int32
	if failure.Retry > 0 {
		retry = new(pgdb.Milliseconds(failure.Retry))
	}
	err = db.QueryRow(ctx, `
		select f.attempts, f.is_set_aside
		from parley.fail_delivery(
			queue => $1::text, conversation_handle => $2::uuid, error => $3::text, is_attempt => $4::boolean,
			retry_ms => $5::integer, is_final => $6::boolean, answer => nullif($7::text, ''),
			is_alone => not $8::boolean
		) as f`,
		failure.Queue, failure.ConversationHandle, pgdb.Storable(failure.Error), failure.IsAttempt, retry, failure.IsFinal,
		pgdb.Storable(failure.Answer), failure.IsTogether,
	).Scan(&attempts, &isSetAside)
	if err != nil {
		return 0, false, pgdb.StatementError(err, "record a failed delivery of queue "+failure.Queue)
	}
	return attempts, isSetAside, nil
}

// TimeToNextDelivery reports when a conversation that waits after a failed delivery may be tried again; false when none waits.
//
// Errors: an [Error] with number [QueueNotFound] or [PermissionDenied].
func TimeToNextDelivery(ctx context.Context, db DB, queue string) (time.Duration, bool, error) {
	var wait *float64
	if err := db.QueryRow(ctx, "select parley.seconds_to_next_delivery($1::text)", queue).Scan(&wait); err != nil {
		return 0, false, pgdb.StatementError(err, "find failed deliveries of queue "+queue)
	}
	if wait == nil {
		return 0, false, nil
	}
	return time.Duration(*wait * float64(time.Second)), true, nil
}
