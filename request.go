package parley

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

const (
	// RequestGivenUp is the code of the Error that a target receives when a request was given up: nobody waits for the reply any more.
	RequestGivenUp = 408
	// lifetimeBeyond is how much longer than its time-out the dialog of a request lives when nobody ends it, as after a crash.
	lifetimeBeyond = 5 * time.Second
	// replyWait is for how long one statement waits for a reply. The wait cannot be cancelled without losing the connection.
	replyWait = 500 * time.Millisecond
	// replyPatience is how long a statement on the way may take beyond that.
	replyPatience = 10 * time.Second
)

var (
	// ErrNoReply reports that the other side has ended the conversation without a reply.
	ErrNoReply = errors.New("the other side has ended the conversation without a reply")
	// ErrRequestTimeout reports that no reply came in time.
	ErrRequestTimeout = errors.New("no reply in time")
)

// Beginner is a *pgx.Conn or a *pgxpool.Pool. It is no pgx.Tx: a request has to be committed before it can be answered.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// RequestMessage is the message that [Request] sends.
type RequestMessage struct {
	FromService, ToService string
	MessageType            string // "" means DEFAULT
	Body                   []byte
	Options                []DialogOption
}

func (r RequestMessage) String() string {
	return "request from " + r.FromService + " to " + r.ToService
}

// Request begins a dialog, sends a message, commits, waits for the reply, takes it and ends the conversation. The reply is the
// first message that comes back; what the other side sends behind it is thrown away. Each request has a conversation of its own, so
// any number of them may wait on the queue of one service, whose other readers should be none. It holds a connection while it
// waits; a [Requester] does not.
//
// After the time-out, or when ctx ends, the conversation is ended with error [RequestGivenUp], which the target receives. When even
// that is not possible, as after a crash, the dialog ends by its lifetime, five seconds behind the time-out unless [WithLifetime]
// is given: the target receives an Error then, and one waits in the queue of FromService.
//
// A reply is taken before the program has it: one that arrives while the program crashes is lost to it.
//
// Errors: a [*ConversationError] when an Error came back, [ErrNoReply], [ErrRequestTimeout], the error of ctx, and those of
// [BeginDialog] and [Send].
func Request(ctx context.Context, db Beginner, message RequestMessage, timeout time.Duration) (Message, error) {
	handle, err := beginRequest(ctx, db, message, timeout, nil)
	if err != nil {
		return Message{}, err
	}
	for end := time.Now().Add(timeout); ; {
		wait := min(replyWait, time.Until(end))
		if ctx.Err() != nil || wait <= 0 {
			return giveUpRequest(ctx, db, message, handle)
		}
		reply, err := takeReply(ctx, db, handle, wait)
		if reply != nil || err != nil {
			return finishRequest(message, reply, err)
		}
	}
}

// beginRequest sends the message of a request and gives the handle of its conversation, which sending knows before others can answer.
func beginRequest(
	ctx context.Context, db Beginner, message RequestMessage, timeout time.Duration, sending func(UUID),
) (handle UUID, err error) {
	if timeout <= 0 {
		return handle, fmt.Errorf("%s: the time-out must be positive", message)
	}
	messageType := message.MessageType
	if messageType == "" {
		messageType = DefaultMessageType
	}
	options := append([]DialogOption{WithLifetime(timeout + lifetimeBeyond)}, message.Options...)
	err = inTransaction(ctx, db, func(tx pgx.Tx) (err error) {
		handle, err = BeginDialog(ctx, tx, message.FromService, message.ToService, options...)
		if err != nil {
			return err
		}
		if sending != nil {
			sending(handle)
		}
		return Send(ctx, tx, handle, messageType, message.Body)
	})
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		return handle, fmt.Errorf("%s: %w", message, err)
	}
	return handle, nil
}

// takeReply waits for a reply, takes it and ends the conversation; nil when there is none yet. It goes on when ctx ends.
func takeReply(ctx context.Context, db Beginner, handle UUID, wait time.Duration) (reply *Message, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+replyPatience)
	defer cancel()
	err = inTransaction(ctx, db, func(tx pgx.Tx) error {
		const statement = "select " + pgdb.MessageColumns + " from parley.receive_reply($1, timeout => $2)"
		rows, err := tx.Query(ctx, statement, handle, pgdb.Milliseconds(wait))
		if err != nil {
			return pgdb.StatementError(err, "receive the reply")
		}
		messages, err := pgx.CollectRows(rows, scanMessage)
		if err != nil {
			return pgdb.StatementError(err, "receive the reply")
		}
		if len(messages) > 0 && !messages[0].IsDialogTimer() {
			reply = &messages[0]
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("conversation %s: %w", handle, err)
	}
	return reply, nil
}

// giveUpRequest ends the conversation of a request that nobody waits for any more, unless its reply has just come.
func giveUpRequest(ctx context.Context, db Beginner, message RequestMessage, handle UUID) (Message, error) {
	if ctx.Err() == nil {
		if reply, err := takeReply(ctx, db, handle, 0); reply != nil || err != nil {
			return finishRequest(message, reply, err)
		}
	}
	failure := ErrRequestTimeout
	if ctx.Err() != nil {
		failure = context.Cause(ctx)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyPatience)
	defer cancel()
	err := inTransaction(ending, db, func(tx pgx.Tx) error {
		return EndConversationWithError(ending, tx, handle, RequestGivenUp, "The request was given up: nobody waits for the reply any more.")
	})
	if number, ok := ErrorNumber(err); ok && number == ConversationNotFound {
		err = nil // its lifetime is over, and somebody has ended it
	}
	return Message{}, errors.Join(fmt.Errorf("%s: conversation %s: %w", message, handle, failure), err)
}

// finishRequest judges what came back.
func finishRequest(message RequestMessage, reply *Message, err error) (Message, error) {
	switch {
	case err != nil:
		return Message{}, fmt.Errorf("%s: %w", message, err)
	case reply.IsEndDialog():
		return Message{}, fmt.Errorf("%s: conversation %s: %w", message, reply.ConversationHandle, ErrNoReply)
	case reply.IsError():
		failure, err := ParseError(reply.MessageBody)
		if err != nil {
			return Message{}, fmt.Errorf("%s: %w", message, err)
		}
		return Message{}, fmt.Errorf("%s: conversation %s: %w", message, reply.ConversationHandle, failure)
	}
	return *reply, nil
}

// inTransaction commits what was done without an error. At READ COMMITTED, so that a wait sees what others commit.
func inTransaction(ctx context.Context, db Beginner, work func(tx pgx.Tx) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if err := work(tx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.Rollback(undo)
		return err
	}
	// A commit that is cancelled may have happened: then nobody would end the conversation.
	committing, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyPatience)
	defer cancel()
	if err := tx.Commit(committing); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
