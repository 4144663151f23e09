package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/pgdb"
)

// Arriving is a message that arrived and is to be accepted.
type Arriving struct {
	Envelope message.Envelope
	// MessageID and ContentID are those of [PutBody] or [BeginBody]; both are 0 where Body has the whole message.
	MessageID, ContentID int64
	// Size is that of the body in bytes.
	Size int64
	Body []byte
}

// MarshalJSON writes the envelope as the database takes it.
func (a Arriving) MarshalJSON() ([]byte, error) {
	addresses, notify, originals := message.Columns(a.Envelope.Recipients)
	return json.Marshal(struct {
		message.Envelope
		Recipients         []string  `json:"recipients"`
		Notify             []*string `json:"notify,omitempty"`
		OriginalRecipients []*string `json:"original_recipients,omitempty"`
		MessageID          int64     `json:"message_id,omitempty"`
		ContentID          int64     `json:"content_id,omitempty"`
		Size               int64     `json:"size,omitempty"`
	}{a.Envelope, addresses, notify, originals, a.MessageID, a.ContentID, a.Size})
}

// Accept accepts messages that arrived, and gives their numbers in their order. With the commit they are ours.
func Accept(ctx context.Context, db pgdb.DB, messages []Arriving) ([]int64, error) {
	envelopes, bodies := make([]string, len(messages)), make([][]byte, len(messages))
	for i, arriving := range messages {
		envelope, err := json.Marshal(arriving)
		if err != nil {
			return nil, fmt.Errorf("accept messages: write the envelope: %w", err)
		}
		envelopes[i], bodies[i] = string(envelope), arriving.Body
	}
	return values[int64](ctx, db, "accept messages", `
		select a.id from parley_mail._p_accept(envelopes => $1::text[]::jsonb[], bodies => $2::bytea[]) as a (id)`, envelopes, bodies)
}

// begun is a body whose message is accepted in the same transaction.
type begun struct{ MessageID, ContentID int64 }

// PutBody stores a whole body, in the transaction in which its message is accepted, and gives the number that the message will have.
func PutBody(ctx context.Context, db pgdb.DB, body []byte) (message, content int64, err error) {
	put, err := row[begun](ctx, db, "store the body of a message", `
		select message_id, content_id from parley_mail._p_put_body(body => $1::bytea)`, body)
	return put.MessageID, put.ContentID, err
}

// BeginBody begins a body that is written chunk by chunk, and gives the number that its message will have.
func BeginBody(ctx context.Context, db pgdb.DB, chunkBytes int) (message, content int64, err error) {
	began, err := row[begun](ctx, db, "begin the body of a message", `
		select message_id, content_id from parley_mail._p_begin_body(chunk_bytes => $1::integer)`, chunkBytes)
	return began.MessageID, began.ContentID, err
}

// AppendBody adds the chunk of a number, from 0 on, to a body that was begun.
func AppendBody(ctx context.Context, db pgdb.DB, content int64, number int, chunk []byte) error {
	return run(ctx, db, "write a chunk of a message", `
		select parley_mail._p_append_body(
			content_id => $1::bigint, number => $2::integer, body => $3::bytea
		)`, content, number, chunk)
}

// FinishBody ends a body, in the transaction in which its message is accepted.
func FinishBody(ctx context.Context, db pgdb.DB, content, size int64, sha256 []byte) error {
	return run(ctx, db, "finish the body of a message", `
		select parley_mail._p_finish_body(
			content_id => $1::bigint, bytes => $2::bigint, sha256 => $3::bytea
		)`, content, size, sha256)
}

// Categorized counts the work of the categorizer: messages that have next hops, those that failed, how many of these were set aside, and
// what it found.
type Categorized struct {
	Messages, Failed, SetAside int
	Resolved
}

// Resolved counts recipients that the categorizer gave up, messages that it cut or made, and addresses of ours that the directory does not
// know.
type Resolved struct {
	FailedRecipients, LoopRecipients, Chipped, Created, UnresolvedRecipients, UnresolvedSenders int
}

// workPatience bounds work on messages that has begun: it is not cut off when a daemon stops, because a message on which somebody was
// cut off twice is taken for poison.
const workPatience = 30 * time.Second

// Categorize categorizes messages that wait, at most so many items of the submission queue, and waits for one as long as wait. It is two
// transactions: the first records the messages on which it works, so that a death can be laid to one of them. db is no transaction.
func Categorize(ctx context.Context, db pgdb.DB, items int, wait time.Duration) (c Categorized, err error) {
	run, err := value[*int64](ctx, db, "begin to categorize messages", `
		select parley_mail._p_begin_categorizing(messages => $1::integer, timeout => $2::integer)`, items, wait.Milliseconds())
	if err != nil || run == nil {
		return Categorized{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workPatience)
	defer cancel()
	c, err = row[Categorized](ctx, db, "categorize messages", `
		select categorized as messages, failed, set_aside, failed_recipients, loop_recipients, chipped, created,
			unresolved_recipients, unresolved_senders
		from parley_mail._p_categorize_begun(run_id => $1::bigint)`, *run)
	if err != nil {
		// No session died. When this fails too, the next categorizer takes it for a death, of which a message survives one.
		_, _ = db.Exec(ctx, "select parley_mail._p_give_back_begun(run_id => $1::bigint)", *run)
	}
	return c, err
}

// Configuration reads the whole configuration, with secrets: {"version", "ranges", "objects"}.
func Configuration(ctx context.Context, db pgdb.DB) (configuration json.RawMessage, err error) {
	return value[json.RawMessage](ctx, db, "read the configuration of mail", "select parley_mail._p_configuration()")
}
