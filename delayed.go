package parley

import (
	"context"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// WithdrawSend withdraws a message of a conversation that is not due yet, and reports whether it was still there.
//
// Errors: an [Error] with number [ConversationNotFound] or [PermissionDenied].
func WithdrawSend(ctx context.Context, db DB, handle UUID, delayedID int64) (bool, error) {
	return changeDelayed(ctx, db, "withdraw message", "select parley.withdraw_send($1::uuid, $2)", handle, delayedID)
}

// RescheduleSend changes when a message of a conversation is due, and reports whether it was still there.
//
// Errors: as [WithdrawSend], and 8410 for a time after the end of the conversation's life.
func RescheduleSend(ctx context.Context, db DB, handle UUID, delayedID int64, due time.Time) (bool, error) {
	return changeDelayed(ctx, db, "reschedule message", `
		select parley.reschedule_send(
			conversation_handle => $1::uuid, delayed_id => $2, deliver_at => $3
		)`, handle, delayedID, due)
}

// WithdrawMessage withdraws a message of a simple queue that is not due yet, and reports whether it was still there.
//
// Errors: as [Put].
func WithdrawMessage(ctx context.Context, db DB, queue string, delayedID int64) (bool, error) {
	return changeDelayed(ctx, db, "withdraw message", "select parley.withdraw_message($1, $2)", queue, delayedID)
}

// RescheduleMessage changes when a message of a simple queue is due, and reports whether it was still there.
//
// Errors: as [Put].
func RescheduleMessage(ctx context.Context, db DB, queue string, delayedID int64, due time.Time) (bool, error) {
	return changeDelayed(ctx, db, "reschedule message", `
		select parley.reschedule_message(
			queue => $1, delayed_id => $2, deliver_at => $3
		)`, queue, delayedID, due)
}

func changeDelayed(ctx context.Context, db DB, what, statement string, arguments ...any) (wasThere bool, err error) {
	if err := db.QueryRow(ctx, statement, arguments...).Scan(&wasThere); err != nil {
		return false, pgdb.StatementError(err, what)
	}
	return wasThere, nil
}
