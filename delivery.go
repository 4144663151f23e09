package parley

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// DeliveryClaim holds what NextDelivery or NextMessageDelivery has shown, while no transaction is open: nobody else receives it. It
// lasts as long as its lease, which RenewDelivery renews.
type DeliveryClaim struct {
	Queue string
	ID    UUID
	Lease time.Duration
}

// NewDeliveryClaim makes a claim with a new ID, which holds nothing yet.
func NewDeliveryClaim(queue string, lease time.Duration) DeliveryClaim {
	claim := DeliveryClaim{Queue: queue, Lease: lease}
	_, _ = rand.Read(claim.ID[:])         // never fails
	claim.ID[6] = claim.ID[6]&0x0f | 0x40 // version 4
	claim.ID[8] = claim.ID[8]&0x3f | 0x80
	return claim
}

// NextDelivery shows the next messages of one conversation without receiving them, top at most, or of one conversation of each of up to
// so many groups, and claims their groups. Conversations whose delivery failed are passed over until it is time to try again. The
// MessageID is the same whenever a message is shown.
//
// A reader that hands messages on to somebody outside delivers them now, outside of any transaction, and calls [RenewDelivery]
// meanwhile. Then it calls for each conversation, in one transaction, [RecordDelivery] and [FinishDelivery] when they were accepted,
// or otherwise [FailDelivery]. [ReleaseDelivery] gives up what is left.
//
// Errors: as [Receive], and 8402 for less than one group.
func NextDelivery(ctx context.Context, db DB, claim DeliveryClaim, top, groups int) ([]Message, error) {
	rows, err := db.Query(ctx, "select "+pgdb.MessageColumns+` from parley.next_delivery(
			queue => $1, top => $2, groups => $3, claim => $4, lease_ms => $5
		)`, claim.Queue, int32(top), int32(groups), claim.ID, pgdb.Milliseconds(claim.Lease))
	if err != nil {
		return nil, pgdb.StatementError(err, "find a delivery of queue "+claim.Queue)
	}
	messages, err := pgx.CollectRows(rows, scanMessage)
	if err != nil {
		return nil, pgdb.StatementError(err, "find a delivery of queue "+claim.Queue)
	}
	return messages, nil
}

// RenewDelivery renews the lease of a claim from now on, and returns how many groups, or messages of a simple queue, it still has. When
// these are fewer than were claimed the rest is in other hands: break off the delivery, and record nothing.
//
// Errors: an [Error] with number [QueueNotFound] or [PermissionDenied].
func RenewDelivery(ctx context.Context, db DB, claim DeliveryClaim) (held int, err error) {
	err = db.QueryRow(ctx, "select parley.renew_delivery(queue => $1, claim => $2, lease_ms => $3)",
		claim.Queue, claim.ID, pgdb.Milliseconds(claim.Lease)).Scan(&held)
	if err != nil {
		return 0, pgdb.StatementError(err, "renew a delivery of queue "+claim.Queue)
	}
	return held, nil
}

// ReleaseDelivery gives up what a claim still has: it can be delivered or received again at once.
//
// Errors: as [RenewDelivery].
func ReleaseDelivery(ctx context.Context, db DB, claim DeliveryClaim) error {
	_, err := db.Exec(ctx, "select parley.release_delivery(queue => $1, claim => $2)", claim.Queue, claim.ID)
	if err != nil {
		return pgdb.StatementError(err, "release a delivery of queue "+claim.Queue)
	}
	return nil
}

// RecordDelivery begins to record, in this transaction, what became of the messages of a conversation that were delivered: it locks their
// group and gives up its claim. It returns false when the claim was lost, or the conversation has ended meanwhile: then nothing is to be
// recorded.
//
// Errors: as [RenewDelivery].
func RecordDelivery(ctx context.Context, tx pgx.Tx, claim DeliveryClaim, handle UUID) (bool, error) {
	var isOurs bool
	err := tx.QueryRow(ctx, "select parley.record_delivery(queue => $1, claim => $2, conversation_handle => $3)",
		claim.Queue, claim.ID, handle).Scan(&isOurs)
	if err != nil {
		return false, pgdb.StatementError(err, "record a delivery of queue "+claim.Queue)
	}
	return isOurs, nil
}

// FinishDelivery receives messages that were accepted, all of one conversation, after [RecordDelivery] in the same transaction. It returns
// false when a message of another sender has come in front of them meanwhile: then roll back, release the claim, and deliver again.
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
	Claim              DeliveryClaim
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

// FailedDelivery reports what was recorded of a delivery that failed.
type FailedDelivery struct {
	Attempts   int  // that were counted
	IsSetAside bool // after too many
	// IsLost is set when the claim was lost before: then nothing was recorded.
	IsLost bool
}

// FailDelivery makes a conversation wait whose delivery failed, longer each time, and sets it aside after too many
// attempts. It gives up the claim of its group.
//
// Errors: an [Error] with number [QueueNotFound] or [PermissionDenied].
func FailDelivery(ctx context.Context, db DB, failure DeliveryFailure) (failed FailedDelivery, err error) {
	err = db.QueryRow(ctx, `
		select f.attempts, f.is_set_aside, f.is_lost
		from parley.fail_delivery(
			queue => $1::text, conversation_handle => $2::uuid, error => $3::text, is_attempt => $4::boolean,
			retry_ms => $5::integer, is_final => $6::boolean, answer => nullif($7::text, ''),
			is_alone => not $8::boolean, claim => $9::uuid
		) as f`,
		failure.Claim.Queue, failure.ConversationHandle, pgdb.Storable(failure.Error), failure.IsAttempt, failure.retry(),
		failure.IsFinal, pgdb.Storable(failure.Answer), failure.IsTogether, failure.Claim.ID,
	).Scan(&failed.Attempts, &failed.IsSetAside, &failed.IsLost)
	if err != nil {
		return FailedDelivery{}, pgdb.StatementError(err, "record a failed delivery of queue "+failure.Claim.Queue)
	}
	return failed, nil
}

func (f DeliveryFailure) retry() *int32 {
	if f.Retry <= 0 {
		return nil
	}
	return new(pgdb.Milliseconds(f.Retry))
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
