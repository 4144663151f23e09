package parley

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/jackc/pgx/v5"
)

// handle gives messages to the handler, and ends this side of conversations that the far side has ended.
func (execution *consumerExecution) handle(ctx context.Context, tx pgx.Tx, messages []Message) error {
	if execution.HandlerTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, execution.HandlerTimeout)
		defer cancel()
	}
	if execution.HandleSystemMessages {
		return execution.call(ctx, tx, messages)
	}
	messages, ended := execution.separate(messages)
	if len(messages) > 0 {
		if err := execution.call(ctx, tx, messages); err != nil {
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

func (execution *consumerExecution) call(ctx context.Context, tx pgx.Tx, messages []Message) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	return execution.Handler(ctx, tx, messages)
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
