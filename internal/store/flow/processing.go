package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The stages of messages for orchestrations.
const (
	StageProcess = "PROCESS"
	StageKilled  = "KILLED" // hosts have died of it three times
)

// Begun is an instance at the beginning of a step, as parley_flow._p_begin_step gives it.
type Begun struct {
	Key        string // of the deliveries for it
	Instance   int64
	Version    int
	Status     string
	Attempts   int
	IsRetryDue bool
	State      *string
	Waits      json.RawMessage
	Timers     json.RawMessage
	Events     json.RawMessage
	Activities json.RawMessage
}

// BeginStep locks and gives the instances for which deliveries with these keys were claimed.
func BeginStep(ctx context.Context, db pgdb.DB, host, orchestration string, keys []string) ([]Begun, error) {
	return collect[Begun](ctx, db, "begin steps of "+orchestration, `
		select key, instance_id, version, status, attempts, is_retry_due, state, coalesce(waits, '[]'), coalesce(timers, '[]'),
			coalesce(events, '[]'), coalesce(activities, '[]')
		from parley_flow._p_begin_step(host => $1::text, orchestration => $2::text, keys => $3::text[])`, host, orchestration, keys)
}

// Advance has the changes of a persistence point, of many instances.
type Advance struct {
	Leases, Items []int64 // deliveries that are over
	Ended         []int64 // messages of which a delivery each was taken
	EndedSteps    []int32 // of which step each is, from 1 on; 0 of none
	Details       []*string
	// An element each for each message that is published.
	CopiedIDs                       []*int64
	Bodies                          [][]byte
	Types, Promoted, Written, Ports []*string
	Parents                         []*int64
	PublishingSteps                 []int32
	ContentTypes, Charsets          []*string // of bodies
	Epoch                           int64     // 0: the host has not matched
	MatchedMessages                 []int32
	MatchedPorts                    []int64
	// An element each for each instance that has a row, or gets one.
	Steps          []json.RawMessage
	States         []*string
	Unread, Starts []json.RawMessage
}

// array writes objects as one array; nil for none.
func array(objects []json.RawMessage) (*string, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	written, err := json.Marshal(objects)
	if err != nil {
		return nil, err
	}
	text := string(written)
	return &text, nil
}

// Commit makes true what steps have brought, in the transaction of db, or by this statement alone.
func (a *Advance) Commit(ctx context.Context, db pgdb.DB, host, orchestration string) ([]int64, error) {
	steps, err := array(a.Steps)
	if err != nil {
		return nil, err
	}
	unread, err := array(a.Unread)
	if err != nil {
		return nil, err
	}
	starts, err := array(a.Starts)
	if err != nil {
		return nil, err
	}
	return one[[]int64](ctx, db, "record steps of "+orchestration, `select parley_flow._p_advance(
		host => $1::text, orchestration => $2::text, leases => $3::bigint[], items => $4::bigint[], ended => $5::bigint[],
		ended_steps => $6::integer[], details => $7::text[]::jsonb[], copied_ids => $8::bigint[], bodies => $9::bytea[],
		message_types => $10::text[], promoted => $11::text[]::jsonb[], written => $12::text[]::jsonb[], parents => $13::bigint[],
		send_ports => $14::text[], publishing_steps => $15::integer[], epoch => nullif($16::bigint, 0),
		matched_messages => $17::integer[], matched_ports => $18::bigint[], steps => $19::jsonb, states => $20::text[],
		unread => $21::jsonb, starts => $22::jsonb, content_types => $23::text[], charsets => $24::text[]
	)`, host, orchestration, a.Leases, a.Items, a.Ended, a.EndedSteps, a.Details, a.CopiedIDs, a.Bodies, a.Types, a.Promoted, a.Written,
		a.Parents, a.Ports, a.PublishingSteps, a.Epoch, a.MatchedMessages, a.MatchedPorts, steps, a.States, unread, starts,
		a.ContentTypes, a.Charsets)
}

// AskWorker puts the message of an activity into a queue, not before a time, with the rights that the transaction has.
func AskWorker(ctx context.Context, db pgdb.DB, queue, body string, at *time.Time) error {
	_, err := db.Exec(ctx, "select parley.put(queue => $1::text, body => $2::text, deliver_at => $3::timestamptz)", queue, body, at)
	if err != nil {
		return pgdb.StatementError(err, "ask a worker by queue "+queue)
	}
	return nil
}

// Held is a message that an instance holds, or has not taken.
type Held struct {
	Message                  int64
	Type                     *string
	Promoted, Written, Parts json.RawMessage
	Size                     int64
	Content                  int64 // 0 where Body has it
	Body                     []byte
	ReceivedAt               time.Time
}

// MessagesOf gives messages that instances of a host hold, or have not taken.
func MessagesOf(ctx context.Context, db pgdb.DB, host string, messages []int64) ([]Held, error) {
	return collect[Held](ctx, db, "read messages of instances", `
		select message_id, message_type, coalesce(promoted, '{}'), coalesce(written, '{}'), coalesce(parts, 'null'), size,
			coalesce(content_id, 0), body, received_at
		from parley_flow._p_messages_of(host => $1::text, messages => $2::bigint[])`, host, messages)
}

// ReadHeldBody gives chunks of a body of a message that the host has claimed, or an instance holds; both ends included.
func ReadHeldBody(ctx context.Context, db pgdb.DB, host string, message, content int64, from, to int) ([]Chunk, error) {
	return collect[Chunk](ctx, db, "read a body", `
		select number, body, chunks, bytes from parley_flow._p_read_held_body(
			host => $1::text, message_id => $2::bigint, content_id => $3::bigint, from_number => $4::integer, to_number => $5::integer
		)
		order by number`, host, message, content, from, to)
}

// FireTimers wakes instances whose timers are due, and gives when the next is; zero: none.
func FireTimers(ctx context.Context, db pgdb.DB, host string) (woken int, next time.Time, err error) {
	var at *time.Time
	err = db.QueryRow(ctx, "select woken, next_at from parley_flow._p_fire_timers(host => $1::text)", host).Scan(&woken, &at)
	if err != nil {
		return 0, next, pgdb.StatementError(err, "wake instances")
	}
	if at != nil {
		next = *at
	}
	return woken, next, nil
}

// Program gives the settings of an orchestration in a version; nil where there is none.
func Program(ctx context.Context, db pgdb.DB, host, orchestration string, version int) (json.RawMessage, error) {
	found, err := one[*json.RawMessage](ctx, db, "read version of "+orchestration,
		"select parley_flow._p_program(host => $1::text, orchestration => $2::text, version => $3::integer)", host, orchestration, version)
	if err != nil || found == nil {
		return nil, err
	}
	return *found, nil
}
