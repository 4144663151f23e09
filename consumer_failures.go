package parley

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
)

// handlerError is a failure to handle messages, as opposed to one of the broker or of the connection.
type handlerError struct {
	group         UUID
	conversations []UUID
	messages      int     // that were received together
	taken         []int64 // instead of conversations, messages of a simple queue
	claimed       *Claimed
	isCutOff      bool // of a claim: the consumer was stopped, which says nothing about its messages
	cause         error
}

// newHandlerError is for a failure with messages of one group, or of all groups that were received together: then nobody knows
// which was bad, and none is reported. Each comes alone after that.
func newHandlerError(messages []Message, together int, cause error) *handlerError {
	failed := &handlerError{group: messages[0].ConversationGroupID, messages: together, cause: cause}
	for _, message := range messages {
		if message.ConversationGroupID != failed.group {
			failed.conversations = nil
			return failed
		}
		if !slices.Contains(failed.conversations, message.ConversationHandle) {
			failed.conversations = append(failed.conversations, message.ConversationHandle)
		}
	}
	return failed
}

// record reports the failure to the broker. Of several messages of a simple queue nobody knows which was bad.
func (e *handlerError) record(ctx context.Context, db DB, queue string) error {
	if e.isCutOff {
		return ReleaseDelivery(ctx, db, DeliveryClaim{Queue: queue, ID: e.claimed.ID})
	}
	if e.claimed != nil {
		_, err := GiveBack(ctx, db, e.claimed, e.cause)
		return err
	}
	if _, hasJudged := errors.AsType[*judgment](e.cause); hasJudged {
		return e.recordJudgment(ctx, db, queue)
	}
	switch len(e.taken) {
	case 0:
		return RecordFailure(ctx, db, e.cause, e.conversations...)
	case 1:
		_, err := RecordMessageFailure(ctx, db, queue, e.taken[0], e.cause)
		return err
	}
	return nil
}

// subject is whose messages failed, for the log.
func (e *handlerError) subject() slog.Attr {
	if len(e.taken) > 0 {
		return slog.Any("message_ids", e.taken)
	}
	return slog.String("conversation_group_id", e.group.String())
}

func (e *handlerError) Error() string { return e.cause.Error() }

func (e *handlerError) Unwrap() error { return e.cause }

// handled counts down what is received alone. Readers side by side may count past zero: then they are back to batches.
func (execution *consumerExecution) handled(messages []Message) {
	if len(messages) > 0 && execution.singles.Load() > 0 {
		execution.singles.Add(-int64(len(messages)))
	}
}

// separateFailed has as many messages received alone as have just failed together: one of them is bad, and any of them may be.
func (execution *consumerExecution) separateFailed(messages int) {
	for {
		planned := execution.singles.Load()
		if planned >= int64(messages) || execution.singles.CompareAndSwap(planned, int64(messages)) {
			return
		}
	}
}

// settle reports what has failed, if anything, and says how long to wait before the next transaction.
func (execution *consumerExecution) settle(
	ctx, work context.Context, logger *slog.Logger, givenBack []*handlerError, err error, failures int,
) (wait time.Duration) {
	for _, failed := range givenBack {
		execution.separateFailed(failed.messages)
		execution.report(work, logger, failed)
		wait = execution.judge(ctx, work, logger, failed, failures)
	}
	if err == nil {
		return wait
	}
	if failed, ok := errors.AsType[*handlerError](err); ok {
		execution.separateFailed(failed.messages)
	}
	execution.report(work, logger, err)
	return execution.judge(ctx, work, logger, err, failures)
}

// report records in the database why messages could not be handled, also after the time of grace and with a connection of its own.
// A failure that is not reported is still counted, but without its reason.
func (execution *consumerExecution) report(work context.Context, logger *slog.Logger, err error) {
	failed, ok := errors.AsType[*handlerError](err)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), rollbackTimeout)
	defer cancel()
	if err := failed.record(ctx, execution.Pool, execution.Queue); err != nil {
		logger.Warn("the failure could not be reported to the broker", "error", err)
	}
}

// judge logs why a transaction was not committed, and says how long to wait before the next.
func (execution *consumerExecution) judge(ctx, work context.Context, logger *slog.Logger, err error, failures int) time.Duration {
	retry := backoff.Consumer.Pause(failures)
	var failed *handlerError
	var panicked *panicError
	number, _ := ErrorNumber(err)
	if work.Err() != nil {
		execution.cutOff.Add(1)
	}
	switch {
	case errors.As(err, &panicked):
		logger.Error("handler panicked; its messages are in the queue again",
			"panic", panicked.value, "stack", string(panicked.stack), "retry_in", retry)
	case errors.As(err, &failed):
		logger.Warn("handler failed; its messages are in the queue again",
			slog.Any("error", failed.cause), failed.subject(), slog.Duration("retry_in", retry))
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		// Stopped before anything was received.
	case number == QueueDisabled:
		retry = backoff.Jitter(disabledPolls*execution.PollInterval, backoff.Consumer.Jitter)
		if !execution.disabled.Swap(true) {
			logger.Error("queue is disabled; trying until it is enabled", "error", err, "retry_in", retry)
		}
	default:
		logger.Error("nothing could be received", "error", err, "retry_in", retry)
	}
	return retry
}
