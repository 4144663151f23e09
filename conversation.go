package parley

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// EndConversation ends this side of a conversation. Messages that wait for it in the queue are gone; the far side gets an EndDialog message
// after everything that was sent before, unless it has ended already.
//
// Errors: an [Error] with number [ConversationNotFound] or [EndNotAllowed].
func EndConversation(ctx context.Context, db DB, handle UUID) error {
	if _, err := db.Exec(ctx, "select parley.end_conversation($1::uuid)", handle); err != nil {
		return pgdb.StatementError(err, "end conversation "+handle.String())
	}
	return nil
}

// EndConversations ends this side of several conversations, as [EndConversation] ends one: all of them or, when one cannot be ended,
// none. A handle that is repeated counts once.
//
// Errors: as [EndConversation].
func EndConversations(ctx context.Context, db DB, handles []UUID) error {
	_, err := db.Exec(ctx, "select parley.end_conversations(conversation_handles => $1::text::uuid[])", arrayLiteral(handles))
	if err != nil {
		return pgdb.StatementError(err, fmt.Sprintf("end %d conversations", len(handles)))
	}
	return nil
}

// EndConversationWithError ends this side of a conversation and informs the far side in an Error message: code is a
// number of the application's own, above zero, description up to 3,000 characters.
//
// Errors: as [EndConversation].
func EndConversationWithError(ctx context.Context, db DB, handle UUID, code int32, description string) error {
	_, err := db.Exec(ctx, `
		select parley.end_conversation(
			conversation_handle => $1::uuid, error_code => $2::integer, description => $3::text
		)`, handle, code, description)
	if err != nil {
		return pgdb.StatementError(err, "end conversation "+handle.String()+" with an error")
	}
	return nil
}

// CleanupConversation removes this side of a conversation with all its messages without an Error for the far side. It is for
// administrators, and for conversations whose far side is lost.
//
// Errors: an [Error] with number [ConversationNotFound], or 28006 for others than administrators.
func CleanupConversation(ctx context.Context, db DB, handle UUID) error {
	_, err := db.Exec(ctx, "select parley.end_conversation($1::uuid, cleanup => true)", handle)
	if err != nil {
		return pgdb.StatementError(err, "clean up conversation "+handle.String())
	}
	return nil
}

// MoveConversation moves a conversation into another group of the same queue. Both groups stay locked to the end of
// the transaction.
//
// Errors: an [Error] with number [ConversationNotFound], [ConversationGroupNotFound], 8438 or 8439.
func MoveConversation(ctx context.Context, db DB, handle, group UUID) error {
	_, err := db.Exec(ctx, "select parley.move_conversation($1::uuid, $2::uuid)", handle, group)
	if err != nil {
		return pgdb.StatementError(err, "move conversation "+handle.String())
	}
	return nil
}

// BeginConversationTimer makes a DialogTimer message appear in this side's queue after timeout, in whole seconds
// (rounded up). A conversation has one timer for each side; setting it again replaces it.
//
// Errors: an [Error] with number [ConversationNotFound], [TimerNotAllowed], or 8410 when the conversation ends earlier.
func BeginConversationTimer(ctx context.Context, db DB, handle UUID, timeout time.Duration) error {
	_, err := db.Exec(ctx, "select parley.begin_conversation_timer($1::uuid, $2::integer)", handle, pgdb.Seconds(timeout))
	if err != nil {
		return pgdb.StatementError(err, "begin the timer of conversation "+handle.String())
	}
	return nil
}

// GetTransmissionStatus reports why the last transmission on this side of a conversation did not succeed. It is empty
// when it did, when nothing was tried, or when the handle is unknown.
func GetTransmissionStatus(ctx context.Context, db DB, handle UUID) (string, error) {
	var status string
	err := db.QueryRow(ctx, "select coalesce(parley.get_transmission_status($1::uuid), '')", handle).Scan(&status)
	if err != nil {
		return "", pgdb.StatementError(err, "get the transmission status of conversation "+handle.String())
	}
	return status, nil
}

// FireTimers does what is due: timer messages, lifetimes, the clean-up of closed conversations, and messages that can be delivered by
// now; for an administrator of the broker in all queues, for another role in those that it may RECEIVE from. RECEIVE does the first two for
// its own queue; something must call FireTimers for queues that nobody reads, every few seconds or minutes. It does a bounded piece of
// work in one transaction, and returns how many alarms it handled: when there were any, call it again at once.
func FireTimers(ctx context.Context, db DB) (int, error) {
	var fired int
	if err := db.QueryRow(ctx, "select parley.fire_timers()").Scan(&fired); err != nil {
		return 0, pgdb.StatementError(err, "fire timers")
	}
	return fired, nil
}
