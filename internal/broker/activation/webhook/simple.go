package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// keyHeaderBytesMax bounds what of a key stands in a header; the envelope has any.
const keyHeaderBytesMax = 1000

// simpleEnvelope is the body of a request in format envelope for a simple queue: messages of one key, or without keys.
type simpleEnvelope struct {
	Queue    string          `json:"queue"`
	Key      *string         `json:"key"`
	Messages []simpleContent `json:"messages"`
}

// simpleContent is one message in such an envelope.
type simpleContent struct {
	MessageID    int64     `json:"message_id"` // the same at each attempt, and unique in the queue
	Priority     int16     `json:"priority"`
	EnqueuedAt   time.Time `json:"enqueued_at"`
	BodyEncoding string    `json:"body_encoding"` // text, base64 or none
	Body         *string   `json:"body"`
}

// deliverSimple is deliver for a simple queue: it claims messages, posts them, and takes what was accepted.
func (r *reader) deliverSimple(ctx context.Context, claim parley.DeliveryClaim) (bool, error) {
	asked := time.Now()
	messages, err := parley.NextMessageDelivery(ctx, r.pool, claim, r.BatchSize)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	err = r.handOverSimple(ctx, claim, messages, asked)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return true, r.delaySimple(ctx, claim, messages, refused)
	}
	if err != nil {
		return r.giveBack(ctx, claim, err, "message_id", messages[0].MessageID, "messages", len(messages))
	}
	return true, nil
}

// handOverSimple posts messages, which were asked for at a time, and takes them when they were accepted.
func (r *reader) handOverSimple(
	ctx context.Context, claim parley.DeliveryClaim, messages []parley.TakenMessage, asked time.Time,
) error {
	held, end := r.hold(ctx, claim, len(messages), asked)
	answer, err := r.post(held, r.simpleDelivery(messages))
	if err := cmp.Or(end(), err); err != nil {
		return err
	}
	if answer.asks() || len(answer.Conversations) > 0 {
		return &refusal{cause: errors.New("the answer asks for what cannot be: a message of a simple queue has no conversation " +
			"in which to reply, or to end"), isAttempt: true}
	}
	return pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		isOurs, err := parley.FinishMessageDelivery(ctx, tx, claim, messages)
		if err == nil && !isOurs {
			err = errLost
		}
		return err
	})
}

func (r *reader) simpleDelivery(messages []parley.TakenMessage) delivery {
	first := messages[0]
	d := delivery{
		id:        requestID(fmt.Sprintf("%s-%d-%d", r.BrokerInstance, r.queueID, first.MessageID), len(messages)),
		firstBody: first.Body,
		headers: map[string]string{
			"Parley-Message-Id":       strconv.FormatInt(first.MessageID, 10),
			"Parley-Message-Priority": strconv.Itoa(int(first.Priority)),
			"Parley-Message-Count":    strconv.Itoa(len(messages)),
			"Parley-Message-Attempt":  strconv.Itoa(int(first.Attempt)),
		},
	}
	if first.Key != nil && len(*first.Key) <= keyHeaderBytesMax {
		d.headers["Parley-Message-Key"] = headerText(*first.Key)
	}
	if first.TraceContext != nil {
		d.traceContext = *first.TraceContext
	}
	envelope := simpleEnvelope{Queue: r.queue, Key: first.Key}
	for _, message := range messages {
		c := simpleContent{MessageID: message.MessageID, Priority: message.Priority, EnqueuedAt: message.EnqueuedAt}
		c.BodyEncoding, c.Body = encodeBody(message.Body)
		envelope.Messages = append(envelope.Messages, c)
	}
	d.envelope = envelope
	return d
}

// delaySimple lets refused messages wait. It fails when the web address seems to be unavailable.
func (r *reader) delaySimple(
	ctx context.Context, claim parley.DeliveryClaim, messages []parley.TakenMessage, refused *refusal,
) error {
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	failed, err := parley.FailMessageDelivery(undo, r.pool, messages, parley.DeliveryFailure{
		Claim: claim, Error: refused.Error(), IsAttempt: refused.isAttempt, IsFinal: refused.isFinal,
		Retry: refused.retry, Answer: refused.answer,
	})
	about := []any{"message_id", messages[0].MessageID, "messages", len(messages)}
	if err != nil || failed.IsLost {
		_, err := r.giveBack(ctx, claim, cmp.Or(err, errLost), about...)
		return err
	}
	logger := r.logger.With(about...).With("error", refused, "attempts", failed.Attempts)
	if refused.answer != "" {
		logger = logger.With("answer", refused.answer)
	}
	switch {
	case failed.IsSetAside:
		logger.Error("message is set aside: the webhook refused it too often; see parley poison messages")
	case refused.isAttempt && len(messages) > 1:
		logger.Warn("webhook did not accept messages; each comes alone now")
	default:
		logger.Warn("webhook did not accept a message; it waits")
	}
	return r.recordRefusal(refused)
}
