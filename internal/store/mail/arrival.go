package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	rows, err := db.Query(ctx, "select a.id from parley_mail._p_accept(envelopes => $1::text[]::jsonb[], bodies => $2::bytea[]) as a (id)",
		envelopes, bodies)
	if err != nil {
		return nil, pgdb.StatementError(err, "accept messages")
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, pgdb.StatementError(err, "accept messages")
	}
	return ids, nil
}

// PutBody stores a whole body, in the transaction in which its message is accepted, and gives the number that the message will have.
func PutBody(ctx context.Context, db pgdb.DB, body []byte) (message, content int64, err error) {
	err = db.QueryRow(ctx, "select message_id, content_id from parley_mail._p_put_body($1::bytea)", body).Scan(&message, &content)
	if err != nil {
		return 0, 0, pgdb.StatementError(err, "store the body of a message")
	}
	return message, content, nil
}

// BeginBody begins a body that is written chunk by chunk, and gives the number that its message will have.
func BeginBody(ctx context.Context, db pgdb.DB, chunkBytes int) (message, content int64, err error) {
	err = db.QueryRow(ctx, "select message_id, content_id from parley_mail._p_begin_body($1::integer)", chunkBytes).Scan(&message, &content)
	if err != nil {
		return 0, 0, pgdb.StatementError(err, "begin the body of a message")
	}
	return message, content, nil
}

// AppendBody adds the chunk of a number, from 0 on, to a body that was begun.
func AppendBody(ctx context.Context, db pgdb.DB, content int64, number int, chunk []byte) error {
	if _, err := db.Exec(ctx, `
		select parley_mail._p_append_body(
			content_id => $1::bigint, number => $2::integer, body => $3::bytea
		)`, content, number, chunk); err != nil {
		return pgdb.StatementError(err, "write a chunk of a message")
	}
	return nil
}

// FinishBody ends a body, in the transaction in which its message is accepted.
func FinishBody(ctx context.Context, db pgdb.DB, content, size int64, sha256 []byte) error {
	if _, err := db.Exec(ctx, `
		select parley_mail._p_finish_body(
			content_id => $1::bigint, bytes => $2::bigint, sha256 => $3::bytea
		)`, content, size, sha256); err != nil {
		return pgdb.StatementError(err, "finish the body of a message")
	}
	return nil
}

// Categorized counts the work of the categorizer: messages that have next hops, those that failed, and how many of these were set aside.
type Categorized struct {
	Messages, Failed, SetAside int
	// Resolved counts the findings of the categorizer.
	Resolved Resolved
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
	var begun *int64
	err = db.QueryRow(ctx, "select parley_mail._p_begin_categorizing($1::integer, $2::integer)", items, wait.Milliseconds()).Scan(&begun)
	if err != nil {
		return Categorized{}, pgdb.StatementError(err, "begin to categorize messages")
	}
	if begun == nil {
		return Categorized{}, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workPatience)
	defer cancel()
	r := &c.Resolved
	err = db.QueryRow(ctx, `select categorized, failed, set_aside, failed_recipients, loop_recipients, chipped, created,
		unresolved_recipients, unresolved_senders from parley_mail._p_categorize_begun($1::bigint)`, *begun).
		Scan(&c.Messages, &c.Failed, &c.SetAside, &r.FailedRecipients, &r.LoopRecipients, &r.Chipped, &r.Created,
			&r.UnresolvedRecipients, &r.UnresolvedSenders)
	if err != nil {
		// No session died. When this fails too, the next categorizer takes it for a death, of which a message survives one. When this fails
		// too, whoever comes next takes it for a death, of which a message survives one.
		_, _ = db.Exec(ctx, "select parley_mail._p_give_back_begun($1::bigint)", *begun)
		return Categorized{}, pgdb.StatementError(err, "categorize messages")
	}
	return c, nil
}

// Configuration reads the whole configuration, with secrets: {"version", "ranges", "objects"}.
func Configuration(ctx context.Context, db pgdb.DB) (configuration json.RawMessage, err error) {
	if err := db.QueryRow(ctx, "select parley_mail._p_configuration()").Scan(&configuration); err != nil {
		return nil, pgdb.StatementError(err, "read the configuration of mail")
	}
	return configuration, nil
}
