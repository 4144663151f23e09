package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The outcomes of requests.
const (
	RequestGiven   = "GIVEN"   // its client got the answer
	RequestRefused = "REFUSED" // the pipeline of the response refused the answer
	RequestExpired = "EXPIRED" // its client has gone, or was told that there is none
	RequestVoid    = "VOID"    // no answer can come
)

// Answer is the answer to a request.
type Answer struct {
	Request                      int64
	Message, Interchange, Parent int64
	Type                         *string
	ReceivedAt                   time.Time
	Size                         int64
	Promoted, Written, Parts     json.RawMessage
	Content                      int64 // 0 where Body has it
	Body                         []byte
	Failure                      string // why nothing answers the request; empty for an answer
}

// Claimed gives an answer as a message that is sent.
func (a Answer) Claimed() *Claimed {
	return &Claimed{
		Message: a.Message, Interchange: a.Interchange, Parent: a.Parent, Type: a.Type, ReceivedAt: a.ReceivedAt, Size: a.Size,
		Promoted: a.Promoted, Written: a.Written, Parts: a.Parts, Content: a.Content, Body: a.Body, Request: a.Request,
	}
}

// Answers gives the answers that have come to requests for which clients wait in a node; nil stands for all.
func Answers(ctx context.Context, db pgdb.DB, host, node string, requests []int64) ([]Answer, error) {
	return collect[Answer](ctx, db, "read answers", `
		select request_id, coalesce(message_id, 0), coalesce(interchange_id, 0), coalesce(parent_id, 0), message_type,
			coalesce(received_at, 'epoch'),
			coalesce(size, 0), coalesce(promoted, '{}'),
			coalesce(written, '{}'), coalesce(parts, 'null'), coalesce(content_id, 0), body, coalesce(failure, '')
		from parley_flow._p_answers(host => $1::text, node => $2::text, requests => $3::bigint[])`, host, node, requests)
}

// EndRequests records what became of requests; the slices have an element for each.
func EndRequests(ctx context.Context, db pgdb.DB, host, node string, requests []int64, outcomes, errors []string) error {
	_, err := one[int](ctx, db, "end requests", `select parley_flow._p_end_requests(
		host => $1::text, node => $2::text, requests => $3::bigint[], outcomes => $4::text[], errors => $5::text[])`,
		host, node, requests, outcomes, errors)
	return err
}

// AnswerChannel gives the channel on which a node is notified of answers.
func AnswerChannel(ctx context.Context, db pgdb.DB, node string) (string, error) {
	return one[string](ctx, db, "ask for the channel of answers", "select parley_flow._p_channel_of_node(node => $1::text)", node)
}

// CompleteAnswered records that messages were sent, as [Complete] does, and publishes what their destinations have answered. Inputs of
// answers says of which message each is, from 1 on.
func CompleteAnswered(
	ctx context.Context, db pgdb.DB, host string, leases, items []int64, details []*string, answers Received,
) error {
	_, err := one[int](ctx, db, "record what was sent and answered", `select parley_flow._p_complete_answered(
		host => $1::text, leases => $2::bigint[], items => $3::bigint[], details => $4::text[]::jsonb[], answered => $5::integer[],
		bodies => $6::bytea[], promoted => $7::text[]::jsonb[], message_types => $8::text[], written => $9::text[]::jsonb[],
		contents => $10::bigint[], parts => $11::text[]::jsonb[], failure_codes => $12::text[], failure_errors => $13::text[]
	)`, host, leases, items, details, answers.Inputs, answers.Bodies, answers.Promoted, answers.Types, answers.Written, answers.Contents,
		answers.Parts, answers.FailureCodes, answers.FailureErrors)
	return err
}
