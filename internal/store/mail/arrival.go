package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Arriving is a message that arrived and is to be accepted. Fields that are empty are left to the database.
type Arriving struct {
	// MessageID and ContentID are those of [PutBody] or [BeginBody]; both are 0 where Body has the whole message.
	MessageID int64  `json:"message_id,omitempty"`
	ContentID int64  `json:"content_id,omitempty"`
	Body      []byte `json:"-"`
	// Sender is "" for the null sender.
	Sender string `json:"sender"`
	// Recipients, Notify and OriginalRecipients have an element for each recipient; null where nothing was said.
	Recipients         []string  `json:"recipients"`
	Notify             []*string `json:"notify,omitempty"`
	OriginalRecipients []*string `json:"original_recipients,omitempty"`
	// Return is FULL, HDRS or "".
	Return     string `json:"ret,omitempty"`
	EnvelopeID string `json:"envid,omitempty"`
	// Priority is 0 for high, 1 for normal, 2 for low; nil is normal.
	Priority *int `json:"priority,omitempty"`
	// Source is SMTP, HTTP, PICKUP, REPLAY or DSN.
	Source          string `json:"source"`
	Connector       string `json:"connector,omitempty"`
	SourceIP        string `json:"source_ip,omitempty"`
	Helo            string `json:"helo,omitempty"`
	AuthenticatedAs string `json:"authenticated_as,omitempty"`
	// Directionality is ORIGINATING for a sender of ours, INCOMING or "" for others.
	Directionality   string `json:"directionality,omitempty"`
	Size             int64  `json:"size,omitempty"`
	HeaderMessageID  string `json:"header_message_id,omitempty"`
	Subject          string `json:"subject,omitempty"`
	IsEightBit       bool   `json:"is_eight_bit,omitempty"`
	HasUTF8Addresses bool   `json:"has_utf8_addresses,omitempty"`
	// HasVERP is whether each recipient has a return path of its own.
	HasVERP   bool            `json:"has_verp,omitempty"`
	Verdicts  json.RawMessage `json:"verdicts,omitempty"`
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
	// ParentMessageID is, of a report, the message that it is about.
	ParentMessageID  int64      `json:"parent_message_id,omitempty"`
	NetworkMessageID string     `json:"network_message_id,omitempty"`
	ReceivedAt       *time.Time `json:"received_at,omitempty"`
	// IdempotencyKey: a message that was accepted under it before is the same.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// ContentHash is, in hexadecimal, that of what has to be the same under the key; "" for anything.
	ContentHash string `json:"content_hash,omitempty"`
	// ServerIP is the address of ours at which it came, ReceiveMS how many milliseconds that took, and Identity a UUID that another copy of
	// the message has too.
	ServerIP  string `json:"server_ip,omitempty"`
	ReceiveMS *int64 `json:"receive_ms,omitempty"`
	Identity  string `json:"identity,omitempty"`
	// Quarantine is why it is set aside for an operator; "" when it is not.
	Quarantine string `json:"quarantine,omitempty"`
	// RefusedStatus and RefusedReason say why nobody gets it and its sender a report; "" when it goes on.
	RefusedStatus string `json:"refused_status,omitempty"`
	RefusedReason string `json:"refused_reason,omitempty"`
}

// Accept accepts messages that arrived, and gives their numbers in their order. With the commit they are ours.
func Accept(ctx context.Context, db pgdb.DB, messages []Arriving) ([]int64, error) {
	envelopes, bodies := make([]string, len(messages)), make([][]byte, len(messages))
	for i, message := range messages {
		envelope, err := json.Marshal(message)
		if err != nil {
			return nil, fmt.Errorf("accept messages: write the envelope: %w", err)
		}
		envelopes[i], bodies[i] = string(envelope), message.Body
	}
	rows, err := db.Query(ctx, "select a.id from parley_mail._p_accept_envelopes($1::text[]::jsonb[], $2::bytea[]) as a (id)",
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
