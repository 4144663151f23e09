package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

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
func (r *reader) deliverMany(ctx context.Context) (bool, error) {
	work, cancel := outlive(ctx, stopTimeout)
	defer cancel()
	var posted [][]parley.Message
	var refusals []conversationRefusal
	found := false
	err := pgx.BeginTxFunc(work, r.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		messages, err := parley.NextDeliveries(work, tx, r.queue, r.BatchSize, r.Groups)
		if err != nil || len(messages) == 0 {
			return err
		}
		found = true
		var over []parley.Message
		posted, over = r.partByConversation(messages)
		answers := map[parley.UUID]answer{}
		if len(posted) > 0 {
			a, err := r.post(work, r.manyDelivery(posted))
			if err != nil {
				return err
			}
			if answers, err = a.forEach(posted); err != nil {
				return &refusal{cause: err, isAttempt: true}
			}
		}
		if refusals, err = r.acceptAll(work, tx, posted, answers); err != nil {
			return err
		}
		for _, last := range over {
			err := pgx.BeginFunc(work, tx, func(savepoint pgx.Tx) error { return r.end(work, savepoint, last) })
			if err != nil && !errors.Is(err, errOvertaken) {
				return err
			}
		}
		return nil
	})
	if refused, ok := errors.AsType[*refusal](err); ok {
		return true, r.delayAll(ctx, posted, refused)
	}
	for _, one := range refusals {
		if err == nil {
			err = r.delay(ctx, one.first, one.reason)
		}
	}
	return err == nil && found, err
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

// acceptAll receives what was accepted, each conversation behind a savepoint: one that asks for what cannot be, or that another sender has
// come in front of, takes no others along.
func (r *reader) acceptAll(
	ctx context.Context, tx pgx.Tx, posted [][]parley.Message, answers map[parley.UUID]answer,
) (refusals []conversationRefusal, err error) {
	for _, messages := range posted {
		err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			return r.accept(ctx, savepoint, messages, answers[messages[0].ConversationHandle])
		})
		if refused, ok := errors.AsType[*refusal](err); ok {
			refusals = append(refusals, conversationRefusal{messages[0], refused})
		} else if err != nil && !errors.Is(err, errOvertaken) {
			return nil, err
		}
	}
	return refusals, nil
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
func (r *reader) delayAll(ctx context.Context, posted [][]parley.Message, refused *refusal) error {
	if len(posted) == 1 {
		return r.delay(ctx, posted[0][0], refused)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		for _, messages := range posted {
			_, _, err := parley.FailDelivery(ctx, tx, parley.DeliveryFailure{
				Queue: r.queue, ConversationHandle: messages[0].ConversationHandle, Error: refused.Error(),
				IsAttempt: refused.isAttempt, Retry: refused.retry, Answer: refused.answer, IsTogether: true,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.logger.Warn("webhook did not accept messages of several conversations; each comes alone now",
		"conversations", len(posted), "error", refused)
	return r.recordRefusal(refused)
}
