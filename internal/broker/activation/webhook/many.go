package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// manyEnvelope is the body of a request of a webhook with several groups, however many conversations it has.
type manyEnvelope struct {
	Queue         string     `json:"queue"`
	Conversations []envelope `json:"conversations"`
}

// conversationRefusal is a conversation for which an accepted request asks what cannot be.
type conversationRefusal struct {
	first  parley.Message
	reason *refusal
}

// deliverMany is deliver for several groups: one request has messages of a conversation of each. When it is not accepted all of them
// are given back, and come alone.
func (r *reader) deliverMany(ctx context.Context, claim parley.DeliveryClaim) (bool, error) {
	asked := time.Now()
	messages, err := parley.NextDelivery(ctx, r.pool, claim, r.BatchSize, r.Groups)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	posted, over := r.partByConversation(messages)
	answers, err := r.postMany(ctx, claim, posted, len(posted)+len(over), asked)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return true, r.delayAll(ctx, claim, posted, refused)
	}
	var outcome manyOutcome
	if err == nil {
		err = pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			outcome, err = r.recordMany(ctx, tx, claim, posted, over, answers)
			return err
		})
	}
	if err != nil {
		return r.giveBack(ctx, claim, err, "conversations", len(posted)+len(over))
	}
	for _, one := range outcome.refusals {
		err = errors.Join(err, r.delay(ctx, claim, one.first, one.reason))
	}
	if outcome.left != nil {
		_, _ = r.giveBack(ctx, claim, outcome.left, "conversations", len(posted)+len(over))
	}
	return err == nil, err
}

// postMany posts messages of several conversations, and gives the answer for each. Without any there is nothing to post.
func (r *reader) postMany(
	ctx context.Context, claim parley.DeliveryClaim, posted [][]parley.Message, claimed int, asked time.Time,
) (map[parley.UUID]answer, error) {
	if len(posted) == 0 {
		return nil, nil
	}
	held, end := r.hold(ctx, claim, claimed, asked)
	a, err := r.post(held, r.manyDelivery(posted))
	if err := cmp.Or(end(), err); err != nil {
		return nil, err
	}
	answers, err := a.forEach(posted)
	if err != nil {
		return nil, &refusal{cause: err, isAttempt: true}
	}
	return answers, nil
}

// manyOutcome holds the conversations of an accepted request that could not be recorded.
type manyOutcome struct {
	refusals []conversationRefusal
	left     error // errOvertaken or errLost, of a conversation that comes again; nil when there is none
}

// recordMany receives what was accepted, and ends our side of what is over. Each conversation is behind a savepoint: one that asks for
// what cannot be, that was lost, or that another sender has come in front of, takes no others along.
func (r *reader) recordMany(
	ctx context.Context, tx pgx.Tx, claim parley.DeliveryClaim, posted [][]parley.Message, over []parley.Message,
	answers map[parley.UUID]answer,
) (outcome manyOutcome, err error) {
	record := func(first parley.Message, what func(tx pgx.Tx) error) error {
		err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			return recordIn(ctx, savepoint, claim, first.ConversationHandle, what)
		})
		if refused, ok := errors.AsType[*refusal](err); ok {
			outcome.refusals = append(outcome.refusals, conversationRefusal{first, refused})
			return nil
		}
		if errors.Is(err, errOvertaken) || errors.Is(err, errLost) {
			outcome.left = err
			return nil
		}
		return err
	}
	for _, messages := range posted {
		err := record(messages[0], func(savepoint pgx.Tx) error {
			return r.accept(ctx, savepoint, messages, answers[messages[0].ConversationHandle])
		})
		if err != nil {
			return outcome, err
		}
	}
	for _, last := range over {
		if err := record(last, func(savepoint pgx.Tx) error { return r.end(ctx, savepoint, last) }); err != nil {
			return outcome, err
		}
	}
	return outcome, nil
}

// partByConversation gives the messages to be posted of each conversation, and the messages that say that one is over.
func (r *reader) partByConversation(messages []parley.Message) (posted [][]parley.Message, over []parley.Message) {
	for begin := 0; begin < len(messages); {
		end := begin + 1
		for end < len(messages) && messages[end].ConversationHandle == messages[begin].ConversationHandle {
			end++
		}
		if ordinary := r.toPost(messages[begin:end]); len(ordinary) > 0 {
			posted = append(posted, ordinary)
		} else {
			over = append(over, messages[begin])
		}
		begin = end
	}
	return posted, over
}

func (r *reader) manyDelivery(posted [][]parley.Message) delivery {
	d := r.dialogDelivery(posted[0])
	sum := sha256.New()
	count := 0
	e := manyEnvelope{Queue: r.queue}
	for _, messages := range posted {
		e.Conversations = append(e.Conversations, newEnvelope("", messages))
		count += len(messages)
		for _, message := range messages {
			sum.Write(message.MessageID[:])
		}
	}
	if len(posted) > 1 {
		// The same first message may come with others the next time: that is another request.
		d.id = posted[0][0].MessageID.String() + "-" + hex.EncodeToString(sum.Sum(nil)[:16])
	}
	d.envelope = e
	d.headers["Parley-Message-Count"] = strconv.Itoa(count)
	d.headers["Parley-Conversation-Count"] = strconv.Itoa(len(posted))
	return d
}

// forEach gives the wishes of the answer for each conversation. A wish that names no conversation is for the only one.
func (a answer) forEach(posted [][]parley.Message) (map[parley.UUID]answer, error) {
	answers := map[parley.UUID]answer{}
	handles := map[string]parley.UUID{}
	for _, messages := range posted {
		handles[messages[0].ConversationHandle.String()] = messages[0].ConversationHandle
	}
	if a.asks() {
		if len(posted) > 1 || len(a.Conversations) > 0 {
			return nil, errors.New("read the answer: what it asks for is of no conversation; name each in conversations")
		}
		answers[posted[0][0].ConversationHandle] = a
	}
	for _, one := range a.Conversations {
		handle, ok := handles[one.ConversationHandle]
		if !ok {
			return nil, fmt.Errorf("read the answer: conversation %q was not in the request, or is there twice", one.ConversationHandle)
		}
		delete(handles, one.ConversationHandle)
		answers[handle] = one.answer
	}
	return answers, nil
}

// delayAll gives back conversations that were refused together: each comes alone after that. One by itself waits.
func (r *reader) delayAll(ctx context.Context, claim parley.DeliveryClaim, posted [][]parley.Message, refused *refusal) error {
	if len(posted) == 1 {
		err := r.delay(ctx, claim, posted[0][0], refused)
		r.release(ctx, claim) // those that are over
		return err
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	err := pgx.BeginFunc(undo, r.pool, func(tx pgx.Tx) error {
		for _, messages := range posted {
			_, err := parley.FailDelivery(undo, tx, parley.DeliveryFailure{
				Claim: claim, ConversationHandle: messages[0].ConversationHandle, Error: refused.Error(),
				IsAttempt: refused.isAttempt, Retry: refused.retry, Answer: refused.answer, IsTogether: true,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.release(ctx, claim)
	if err != nil {
		return err
	}
	r.logger.Warn("webhook did not accept messages of several conversations; each comes alone now",
		"conversations", len(posted), "error", refused)
	return r.recordRefusal(refused)
}
