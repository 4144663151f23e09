package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
)

const (
	// retryPoll is how often a queue is polled in which conversations wait after a failure. It is also how late
	// a message of another conversation may be seen then.
	retryPoll = 250 * time.Millisecond
	// stopTimeout is how long a request may go on after the reader was asked to stop.
	stopTimeout = 5 * time.Second
	// undoTimeout bounds the statements that clean up after a failure.
	undoTimeout = 5 * time.Second
	// unavailableMax is after how many requests in a row to which there was no proper answer the reader fails.
	unavailableMax = 5
)

// reader delivers messages of a queue, one request at a time.
type reader struct {
	definition
	pool    *pgxpool.Pool
	queue   string
	queueID int
	url     *url.URL
	client  *http.Client
	shared  *shared
	// requests has room for as many as may be under way at once, of all readers of the database.
	requests chan struct{}
	lease    time.Duration // of claims
	logger   *slog.Logger
}

// Run delivers until there is nothing to deliver, now or later. While conversations wait after a failure it stays: the
// engine could not distinguish them from others, and would start one reader after the other.
func (r *reader) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		delivered, err := r.deliver(ctx)
		if err == nil && !delivered {
			var waits bool
			if waits, err = r.rest(ctx); err == nil && !waits {
				return nil
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// rest waits until there may be something to deliver again. It returns false when there is nothing to wait for.
func (r *reader) rest(ctx context.Context) (bool, error) {
	if _, waits, err := r.timeToNext(ctx); err != nil || !waits {
		return false, err
	}
	select {
	case r.shared.turn <- struct{}{}:
		defer func() { <-r.shared.turn }()
	case <-ctx.Done():
		return false, nil
	}
	for {
		// The reader that had the turn before may have gone because there is much to do.
		if delivered, err := r.deliver(ctx); delivered || err != nil {
			return true, err
		}
		wait, waits, err := r.timeToNext(ctx)
		if err != nil || !waits {
			return false, err
		}
		timer := time.NewTimer(max(time.Millisecond, min(wait, retryPoll)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, nil
		}
	}
}

// timeToNext reports when something that waits after a failure may be delivered again; false when nothing waits.
func (r *reader) timeToNext(ctx context.Context) (time.Duration, bool, error) {
	if r.IsSimple {
		return parley.TimeToNextMessageDelivery(ctx, r.pool, r.queue)
	}
	return parley.TimeToNextDelivery(ctx, r.pool, r.queue)
}

// deliver claims messages, posts them, and records what became of them. No transaction is open meanwhile. It reports whether there was
// anything to deliver, accepted or not.
func (r *reader) deliver(ctx context.Context) (bool, error) {
	select {
	case r.requests <- struct{}{}:
		defer func() { <-r.requests }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	work, cancel := outlive(ctx, stopTimeout)
	defer cancel()
	claim := parley.NewDeliveryClaim(r.queue, r.lease)
	switch {
	case r.IsSimple:
		return r.deliverSimple(work, claim)
	case r.Groups > 1:
		return r.deliverMany(work, claim)
	}
	asked := time.Now()
	messages, err := parley.NextDelivery(work, r.pool, claim, r.BatchSize, 1)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	err = r.handOver(work, claim, messages, asked)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return true, r.delay(work, claim, messages[0], refused)
	}
	if err != nil {
		return r.giveBack(work, claim, err,
			"conversation_handle", messages[0].ConversationHandle, "message_id", messages[0].MessageID)
	}
	return true, nil
}

// handOver posts messages of a conversation, which were asked for at a time, and does what the answer says.
func (r *reader) handOver(ctx context.Context, claim parley.DeliveryClaim, messages []parley.Message, asked time.Time) error {
	last := messages[0]
	if messages = r.toPost(messages); len(messages) == 0 {
		return r.record(ctx, claim, last.ConversationHandle, func(tx pgx.Tx) error { return r.end(ctx, tx, last) })
	}
	held, end := r.hold(ctx, claim, 1, asked)
	answer, err := r.post(held, r.dialogDelivery(messages))
	if err := cmp.Or(end(), err); err != nil {
		return err
	}
	return r.record(ctx, claim, last.ConversationHandle, func(tx pgx.Tx) error { return r.accept(ctx, tx, messages, answer) })
}

// toPost gives those of the messages of a conversation that are posted; none when the first says that it is over.
func (r *reader) toPost(messages []parley.Message) []parley.Message {
	for i, message := range messages {
		if !r.SystemMessages && (message.IsEndDialog() || message.IsError()) {
			return messages[:i]
		}
	}
	return messages
}

// accept receives messages of a conversation and does what the answer says. Replies go first: when the broker refuses one, nothing was
// received yet, and so the rollback that follows counts as none of the messages.
func (r *reader) accept(ctx context.Context, tx pgx.Tx, messages []parley.Message, a answer) error {
	if err := r.reply(ctx, tx, messages[0].ConversationHandle, a); err != nil {
		return err
	}
	same, err := parley.FinishDelivery(ctx, tx, r.queue, messages)
	if err != nil {
		return err
	}
	if !same {
		return errOvertaken
	}
	return r.endAsAsked(ctx, tx, messages[0].ConversationHandle, a)
}

// end ends our side of a conversation that the far side has ended.
func (r *reader) end(ctx context.Context, tx pgx.Tx, last parley.Message) error {
	if last.IsError() {
		cause, err := parley.ParseError(last.MessageBody)
		if err != nil {
			cause = &parley.ConversationError{Description: err.Error()}
		}
		r.logger.Warn("conversation ended with an error",
			"conversation_handle", last.ConversationHandle, "code", cause.Code, "description", cause.Description)
	}
	same, err := parley.FinishDelivery(ctx, tx, r.queue, []parley.Message{last})
	if err != nil {
		return err
	}
	if !same {
		return errOvertaken
	}
	return parley.EndConversation(ctx, tx, last.ConversationHandle)
}

// post makes the request.
func (r *reader) post(work context.Context, d delivery) (answer, error) {
	ctx, cancel := context.WithTimeout(work, r.timeout())
	defer cancel()
	var wasSent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { wasSent.Store(true) }})
	request, err := r.newRequest(ctx, d)
	if err != nil {
		return answer{}, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return answer{}, judgeError(work, err, wasSent.Load(), r.timeout())
	}
	defer response.Body.Close()
	body, err := readAnswer(response.Body)
	if refused := judge(response, time.Now()); refused != nil {
		refused.answer = r.excerpt(body)
		return answer{}, refused
	}
	if err != nil {
		return answer{}, judgeError(work, err, true, r.timeout())
	}
	r.shared.recordAnswer()
	a, err := parseAnswer(response.Header.Get("Content-Type"), body)
	if err != nil {
		return answer{}, &refusal{cause: err, isAttempt: true, answer: r.excerpt(body)}
	}
	return a, nil
}

// reply sends the replies of the answer. A reply that the broker refuses is the answer's fault.
func (r *reader) reply(ctx context.Context, tx pgx.Tx, handle parley.UUID, a answer) error {
	for _, reply := range a.Replies {
		body, err := reply.bytes()
		if err == nil {
			err = parley.Send(ctx, tx, handle, reply.MessageType, body)
		}
		if err != nil {
			return blame(err)
		}
	}
	return nil
}

// endAsAsked ends the conversation where the answer asks for that. An end that the broker would refuse, the answer was refused for before.
func (r *reader) endAsAsked(ctx context.Context, tx pgx.Tx, handle parley.UUID, a answer) error {
	switch {
	case a.EndWithError != nil:
		return blame(parley.EndConversationWithError(ctx, tx, handle, a.EndWithError.Code, a.EndWithError.Description))
	case a.End:
		return blame(parley.EndConversation(ctx, tx, handle))
	}
	return nil
}

func blame(err error) error {
	if _, isBroker := parley.ErrorNumber(err); isBroker {
		return &refusal{cause: fmt.Errorf("the answer asks for what cannot be: %w", err), isAttempt: true}
	}
	return err
}

// delay lets a refused conversation wait. It fails when the web address seems to be unavailable.
func (r *reader) delay(ctx context.Context, claim parley.DeliveryClaim, message parley.Message, refused *refusal) error {
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	failed, err := parley.FailDelivery(undo, r.pool, parley.DeliveryFailure{
		Claim: claim, ConversationHandle: message.ConversationHandle, Error: refused.Error(),
		IsAttempt: refused.isAttempt, IsFinal: refused.isFinal, Retry: refused.retry, Answer: refused.answer,
	})
	about := []any{"conversation_handle", message.ConversationHandle, "message_id", message.MessageID}
	if err != nil || failed.IsLost {
		_, err := r.giveBack(ctx, claim, cmp.Or(err, errLost), about...)
		return err
	}
	logger := r.logger.With(about...).With("error", refused, "attempts", failed.Attempts)
	if refused.answer != "" {
		logger = logger.With("answer", refused.answer)
	}
	if failed.IsSetAside {
		logger.Error("conversation is set aside: the webhook refused its message too often; see parley poison list")
	} else {
		logger.Warn("webhook did not accept a message; its conversation waits")
	}
	return r.recordRefusal(refused)
}

// recordRefusal fails when the web address seems to be unavailable.
func (r *reader) recordRefusal(refused *refusal) error {
	if refused.isAttempt {
		r.shared.recordAnswer()
	} else if r.shared.recordUnavailable() {
		return fmt.Errorf("the web address is not available: %w", refused.cause)
	}
	return nil
}

// outlive gives a context that goes on for a while after ctx has ended, for a request that is under way.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-work.Done():
		}
		cancel()
	})
	return work, func() {
		stop()
		cancel()
	}
}
