package parley

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// handle gives messages to the handler, and ends this side of conversations that the far side has ended.
func (execution *consumerExecution) handle(ctx context.Context, tx pgx.Tx, messages []Message) error {
	ctx, cancel := execution.bounded(ctx)
	defer cancel()
	if execution.HandleSystemMessages {
		return execution.call(len(messages), func() error { return execution.Handler(ctx, tx, messages) })
	}
	messages, ended := execution.separate(messages)
	if len(messages) > 0 {
		if err := execution.call(len(messages), func() error { return execution.Handler(ctx, tx, messages) }); err != nil {
			return err
		}
	}
	for _, handle := range ended {
		if err := endUnlessEnded(ctx, tx, handle); err != nil {
			return err
		}
	}
	return nil
}

// bounded gives a context for one call of the handler.
func (execution *consumerExecution) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if execution.HandlerTimeout > 0 {
		return context.WithTimeout(ctx, execution.HandlerTimeout)
	}
	return ctx, func() {}
}

// call makes one call of a handler with so many messages. A panic is its error, and the observer sees it end.
func (execution *consumerExecution) call(messages int, handler func() error) (err error) {
	began := time.Now()
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
		execution.observe(Turn{Queue: execution.Queue, Messages: messages, Took: time.Since(began), Err: err})
	}()
	return handler()
}

// separate takes the messages apart that say that a conversation is over.
func (execution *consumerExecution) separate(messages []Message) (others []Message, ended []UUID) {
	for _, message := range messages {
		switch {
		case message.IsError():
			execution.logConversationError(message)
		case !message.IsEndDialog():
			others = append(others, message)
			continue
		}
		if !slices.Contains(ended, message.ConversationHandle) {
			ended = append(ended, message.ConversationHandle)
		}
	}
	return others, ended
}

func (execution *consumerExecution) logConversationError(message Message) {
	logger := execution.Logger.With("service", message.ServiceName, "conversation_handle", message.ConversationHandle)
	cause, err := ParseError(message.MessageBody)
	if err != nil {
		logger.Warn("conversation ended with an error that cannot be read", "error", err)
		return
	}
	logger.Warn("conversation ended with an error", "code", cause.Code, "description", cause.Description)
}

// endUnlessEnded ends our side of a conversation that the handler may have ended already. The savepoint keeps the
// transaction usable when it has.
func endUnlessEnded(ctx context.Context, tx pgx.Tx, handle UUID) error {
	err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error { return EndConversation(ctx, savepoint, handle) })
	if number, ok := ErrorNumber(err); ok && (number == ConversationNotFound || number == EndNotAllowed) {
		return nil
	}
	return err
}

// panicError is a panic of a handler.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.value) }
