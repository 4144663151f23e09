package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// Message is a message to be published.
type Message struct {
	// Body is the content; Content gives it in its place, read to its end into memory.
	Body    []byte
	Content io.Reader
	// Type is the message type, such as http://shop.example/orders#Order; empty: none.
	Type string
	// Properties are promoted, by which messages are routed, and Written are carried only. They are texts, numbers and booleans by names
	// such as http://shop.example/properties#PoNumber; nil is what is not there. One of more than 8,192 bytes is not promoted.
	Properties, Written map[string]any
}

// Outcome is the end of a publication.
type Outcome string

// The outcomes.
const (
	// Published messages are on their way to at least one send port.
	Published Outcome = "PUBLISHED"
	// Suspended messages matched no subscription, and wait for an operator.
	Suspended Outcome = "SUSPENDED"
	// FailedRouted messages matched no subscription but those for failed messages, which got them.
	FailedRouted Outcome = "FAILED_ROUTED"
	// Repeated messages have a key that was used before: nothing was published.
	Repeated Outcome = "REPEATED"
)

// Publication is a message that was published; as JSON it is a stable format.
type Publication struct {
	MessageID int64   `json:"message_id"` // of the first message, where it is Repeated
	Outcome   Outcome `json:"outcome"`
}

// publishing holds the options of a publication.
type publishing struct{ receivePort *string }

// PublishOption changes how messages are published.
type PublishOption func(*publishing)

// As publishes messages as those of a receive port: filters on ReceivePortName find them, and the right to publish to that port, or to its
// application, is enough.
func As(receivePort string) PublishOption {
	return func(p *publishing) { p.receivePort = &receivePort }
}

// Publish publishes a message. That it matches no subscription is no error: its outcome says so.
//
// Errors: an [Error] with number [PermissionDenied], [PortNotFound], [NotConfigured], [Malformed] or [QuotaExceeded].
func Publish(ctx context.Context, db parley.DB, message Message, options ...PublishOption) (Publication, error) {
	return publishOne(ctx, db, message, nil, options)
}

// PublishOnce publishes a message under an idempotency key, of 1 to 1,000 bytes, unless this role has published one under it before: then
// the outcome is [Repeated], and nothing is published. Keys are remembered for as long as parley_flow.retentions says.
//
// Errors: as [Publish], and [KeyOfAnother] where the first message has another body.
func PublishOnce(ctx context.Context, db parley.DB, key string, message Message, options ...PublishOption) (Publication, error) {
	return publishOne(ctx, db, message, &key, options)
}

func publishOne(ctx context.Context, db parley.DB, message Message, key *string, options []PublishOption) (Publication, error) {
	published, err := publish(ctx, db, []Message{message}, key, options)
	if err != nil {
		return Publication{}, err
	}
	if len(published) != 1 {
		return Publication{}, fmt.Errorf("publish a message: %d outcomes of one message", len(published))
	}
	return published[0], nil
}

// PublishBatch publishes messages in one statement, all or none, and gives their outcomes in order. A thousand in one call cost a fraction
// of as many calls of [Publish].
//
// Errors: as [Publish].
func PublishBatch(ctx context.Context, db parley.DB, messages []Message, options ...PublishOption) ([]Publication, error) {
	return publish(ctx, db, messages, nil, options)
}

func publish(ctx context.Context, db parley.DB, messages []Message, key *string, options []PublishOption) ([]Publication, error) {
	var p publishing
	for _, option := range options {
		option(&p)
	}
	bodies, types := make([][]byte, len(messages)), make([]*string, len(messages))
	properties, written := make([]string, len(messages)), make([]string, len(messages))
	for i, m := range messages {
		var err error
		if bodies[i], err = m.read(); err != nil {
			return nil, fmt.Errorf("publish message %d: %w", i+1, err)
		}
		if m.Type != "" {
			types[i] = &m.Type
		}
		if properties[i], err = object(m.Properties); err != nil {
			return nil, fmt.Errorf("publish message %d: write its properties: %w", i+1, err)
		}
		if written[i], err = object(m.Written); err != nil {
			return nil, fmt.Errorf("publish message %d: write its properties: %w", i+1, err)
		}
	}
	rows, err := db.Query(ctx, `
		select p.message_id, p.outcome
		from parley_flow.publish_each(
			bodies => $1::bytea[], properties => $2::text[]::jsonb[], message_types => $3::text[], receive_port => $4::text,
			written => $5::text[]::jsonb[], idempotency_key => $6::text
		) as p
		order by p.n`, bodies, properties, types, p.receivePort, written, key)
	if err != nil {
		return nil, statementError(err)
	}
	published, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Publication])
	if err != nil {
		return nil, statementError(err)
	}
	return published, nil
}

// read gives the body, which is empty and never nil where there is none.
func (m Message) read() ([]byte, error) {
	switch {
	case m.Content != nil && m.Body != nil:
		return nil, errors.New("it has a Body and a Content: give one of them")
	case m.Content != nil:
		body, err := io.ReadAll(m.Content)
		if err != nil {
			return nil, fmt.Errorf("read its content: %w", err)
		}
		return body, nil
	case m.Body == nil:
		return []byte{}, nil
	}
	return m.Body, nil
}

// object writes properties as JSON.
func object(properties map[string]any) (string, error) {
	if properties == nil {
		return "{}", nil
	}
	text, err := json.Marshal(properties)
	return string(text), err
}
