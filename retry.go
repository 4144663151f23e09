package parley

import (
	"context"
	"errors"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Retried has the time of the next attempt after a failure that was reported.
type Retried struct {
	// RetryAt is when the next attempt is at the earliest; nil when the work need not wait, or is set aside.
	RetryAt *time.Time
	// IsSetAside reports whether it was set aside, because it has failed as often as the policy of its queue allows.
	IsSetAside bool
	// IsGone reports that nothing was recorded: the message is gone, or others have it and report themselves.
	IsGone bool
}

// judgment is an error of a handler that says what is to become of the work.
type judgment struct {
	cause   error
	delay   *time.Duration
	isFinal bool
}

func (j *judgment) Error() string { return j.cause.Error() }

func (j *judgment) Unwrap() error { return j.cause }

// RetryAfter makes an error that a handler of a [Consumer] or a [SimpleConsumer] returns say for how long the work waits for its next
// attempt, up to 7 days, whatever the retry policy of the queue.
func RetryAfter(delay time.Duration, cause error) error {
	return &judgment{cause: cause, delay: &delay}
}

// Final makes an error that a handler returns say that another attempt would be in vain: the work is set aside at once.
func Final(cause error) error { return &judgment{cause: cause, isFinal: true} }

// RetryMessage reports that the work on a message of a simple queue failed, and has it wait for its next attempt: by the retry policy of
// the queue, or as [RetryAfter] and [Final] say. Call it after the rollback, which may be one to a savepoint before [Take] in the same
// transaction. A [SimpleConsumer] does it by itself.
//
// Errors: as [RecordMessageFailure].
func RetryMessage(ctx context.Context, db DB, queue string, messageID int64, failure error) (Retried, error) {
	sqlstate, text := pgdb.DescribeFailure(failure)
	verdict, _ := errors.AsType[*judgment](failure)
	if verdict != nil && verdict.isFinal {
		return failed(ctx, db, "fail a message of queue "+queue, `
			select parley.fail(queue => $1::text, message_id => $2::bigint, error => $3::text, sqlstate => $4::text)`,
			queue, messageID, text, sqlstate)
	}
	return retried(ctx, db, "retry a message of queue "+queue, `
		select r.retry_at, r.is_set_aside
		from parley.retry(
			queue => $1::text, message_id => $2::bigint, error => $3::text, sqlstate => $4::text,
			delay => $5::float8 * interval '1 second'
		) as r`, queue, messageID, text, sqlstate, verdict.seconds())
}

// RetryConversation reports that the work on the first message of a conversation failed, and has the conversation wait, as [RetryMessage]
// does a message.
//
// Errors: an [Error] with number [ConversationNotFound] or [PermissionDenied].
func RetryConversation(ctx context.Context, db DB, handle UUID, failure error) (Retried, error) {
	sqlstate, text := pgdb.DescribeFailure(failure)
	verdict, _ := errors.AsType[*judgment](failure)
	if verdict != nil && verdict.isFinal {
		return failed(ctx, db, "fail conversation "+handle.String(), `
			select parley.fail_conversation(conversation_handle => $1::uuid, error => $2::text, sqlstate => $3::text)`,
			handle, text, sqlstate)
	}
	return retried(ctx, db, "retry conversation "+handle.String(), `
		select r.retry_at, r.is_set_aside
		from parley.retry_conversation(
			conversation_handle => $1::uuid, error => $2::text, sqlstate => $3::text, delay => $4::float8 * interval '1 second'
		) as r`, handle, text, sqlstate, verdict.seconds())
}

// seconds is the delay that an error asks for; nil leaves it to the policy.
func (j *judgment) seconds() *float64 {
	if j == nil || j.delay == nil {
		return nil
	}
	seconds := j.delay.Seconds()
	return &seconds
}

func retried(ctx context.Context, db DB, what, statement string, arguments ...any) (Retried, error) {
	var done Retried
	var isSetAside *bool
	if err := db.QueryRow(ctx, statement, arguments...).Scan(&done.RetryAt, &isSetAside); err != nil {
		return Retried{}, pgdb.StatementError(err, what)
	}
	done.IsGone = isSetAside == nil
	done.IsSetAside = isSetAside != nil && *isSetAside
	return done, nil
}

func failed(ctx context.Context, db DB, what, statement string, arguments ...any) (Retried, error) {
	var isSetAside bool
	if err := db.QueryRow(ctx, statement, arguments...).Scan(&isSetAside); err != nil {
		return Retried{}, pgdb.StatementError(err, what)
	}
	return Retried{IsSetAside: isSetAside, IsGone: !isSetAside}, nil
}

// recordJudgment does what an error of a handler says, where it concerns one message or conversation.
func (e *handlerError) recordJudgment(ctx context.Context, db DB, queue string) error {
	if len(e.taken) == 1 {
		_, err := RetryMessage(ctx, db, queue, e.taken[0], e.cause)
		return err
	}
	for _, handle := range e.conversations {
		if _, err := RetryConversation(ctx, db, handle, e.cause); err != nil {
			return err
		}
	}
	return nil
}

// CancelMessage withdraws a message that waits in a simple queue, and reports whether it did: not when it is gone or somebody has it in
// his hands. With running it also takes one from under a worker that has claimed it.
//
// Errors: as [Put].
func CancelMessage(ctx context.Context, db DB, queue string, messageID int64, running bool) (bool, error) {
	return changeDelayed(ctx, db, "cancel a message", `
		select parley.cancel(queue => $1::text, message_id => $2::bigint, running => $3::boolean)`, queue, messageID, running)
}
