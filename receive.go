package parley

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// receive holds the arguments of RECEIVE that may be left out; nil is the broker's default. A zero UUID was given, and is refused.
type receive struct {
	top          *int32
	conversation *UUID
	group        *UUID
	timeout      *int32
	isReader     bool
	groups       *int32
	after        *place
}

// ReceiveOption changes what [Receive] and [GetConversationGroup] do.
type ReceiveOption func(*receive)

// Top bounds how many messages a Receive returns. Without it, all that are ready in the group.
func Top(n int) ReceiveOption {
	return func(r *receive) { r.top = new(int32(min(n, 1<<31-1))) }
}

// FromConversation receives messages of this conversation only. The zero UUID is refused, as null is in SQL.
func FromConversation(handle UUID) ReceiveOption {
	return func(r *receive) { r.conversation = &handle }
}

// FromGroup receives messages of this conversation group only, and waits while another transaction has it locked. The zero
// UUID is refused.
func FromGroup(group UUID) ReceiveOption {
	return func(r *receive) { r.group = &group }
}

// Groups takes messages from up to n conversation groups, 1 to 10,000, and locks them all to the end of the transaction:
// the first n that nobody else has locked. A message that has come back after a rollback comes alone with its group all the
// same, so that a bad one takes no others along. It cannot be combined with [FromConversation] or [FromGroup].
func Groups(n int) ReceiveOption {
	return func(r *receive) { r.groups = new(int32(min(n, 1<<31-1))) }
}

// asReader makes it the RECEIVE of a reader, which receives nothing while the readers of the queue are paused.
func asReader() ReceiveOption {
	return func(r *receive) { r.isReader = true }
}

// WaitForever, for [Wait], is no time-out at all.
const WaitForever time.Duration = -1

// Wait makes the database wait for a message, up to a time-out in whole milliseconds. Without it nothing waits.
// The connection is busy meanwhile; a [Consumer] waits without one for each reader. When the wait had to fire a timer or
// to set a conversation aside it ends early with nothing: commit, so that others see that, and receive again.
func Wait(timeout time.Duration) ReceiveOption {
	return func(r *receive) { r.timeout = new(pgdb.Milliseconds(timeout)) }
}

// Receive takes messages from a queue: all from one conversation group, or with [Groups] from several, which stay locked to the end of the
// transaction, in the order of their conversations. It returns none when no group that nobody else has locked has any.
// When the transaction rolls back the messages are in the queue again.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], or [QueueDisabled] when the queue is off, as it
// may be after a message was rolled back five times; 8414, 8418, 8420, 8426, 8436, 8468 or 8470 for a conversation or a group
// that is missing, unknown, or went away during the wait.
func Receive(ctx context.Context, db DB, queue string, options ...ReceiveOption) ([]Message, error) {
	statement, arguments := receiveStatement(queue, options)
	rows, err := db.Query(ctx, statement, arguments...)
	return collectReceived(rows, err, queue)
}

// receiveStatement gives the statement of a RECEIVE, for those who send it along with others.
func receiveStatement(queue string, options []ReceiveOption) (statement string, arguments []any) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	named, arguments := "", []any{queue, r.top, r.timeout}
	if r.conversation != nil {
		arguments = append(arguments, *r.conversation)
		named += fmt.Sprintf(", conversation_handle => $%d", len(arguments))
	}
	if r.group != nil {
		arguments = append(arguments, *r.group)
		named += fmt.Sprintf(", conversation_group_id => $%d", len(arguments))
	}
	if r.groups != nil {
		arguments = append(arguments, *r.groups)
		named += fmt.Sprintf(", groups => $%d", len(arguments))
	}
	from := "parley.receive(queue => $1::text, top => $2, timeout => $3" + named + ")"
	if r.isReader {
		// RECEIVE is called with what the setting is made with, so after it.
		from = "(select $1::text as reads, set_config('parley.reader', 'on', true)) as x cross join lateral " +
			strings.Replace(from, "$1::text", "x.reads", 1)
	}
	return "select " + pgdb.MessageColumns + " from " + from, arguments
}

// collectReceived reads what the statement of a RECEIVE has returned.
func collectReceived(rows pgx.Rows, err error, queue string) ([]Message, error) {
	if err != nil {
		return nil, pgdb.StatementError(err, "receive from queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, scanMessage)
	if err != nil {
		return nil, pgdb.StatementError(err, "receive from queue "+queue)
	}
	return messages, nil
}

// GetConversationGroup locks the conversation group that the next [Receive] would take messages from, and returns its
// id, so that the state kept for the group can be read first. The zero UUID means that there is none.
// Of the options only [Wait] has a meaning.
//
// Errors: as [Receive].
func GetConversationGroup(ctx context.Context, db DB, queue string, options ...ReceiveOption) (UUID, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	var group UUID
	err := db.QueryRow(ctx, "select parley.get_conversation_group(queue => $1, timeout => $2)", queue, r.timeout).Scan(&group)
	if err != nil {
		return UUID{}, pgdb.StatementError(err, "get a conversation group from queue "+queue)
	}
	return group, nil
}

// GetConversationGroups locks up to n conversation groups, 1 to 10,000, of which the next [Receive] would take messages, and returns their
// ids in its order. [Receive] from each with [FromGroup] inside of a savepoint of its own. Rolling back to the savepoint gives back the
// messages of this group alone and keeps the locks of all. Of the options only [Wait] has a meaning.
//
// Errors: as [Receive].
func GetConversationGroups(ctx context.Context, db DB, queue string, n int, options ...ReceiveOption) ([]UUID, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	rows, err := db.Query(ctx, "select parley.get_conversation_groups(queue => $1, groups => $2, timeout => $3)",
		queue, min(n, 1<<31-1), r.timeout)
	if err != nil {
		return nil, pgdb.StatementError(err, "get conversation groups from queue "+queue)
	}
	groups, err := pgx.CollectRows(rows, pgx.RowTo[UUID])
	if err != nil {
		return nil, pgdb.StatementError(err, "get conversation groups from queue "+queue)
	}
	return groups, nil
}
