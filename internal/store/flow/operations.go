package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Kinds whose objects have a state.
const (
	KindSendPort = "send port"
	KindGroup    = "send port group"
)

// ChangeState starts, stops, enlists or unenlists a send port, starts, enlists or unenlists a group, and enables or disables a receive
// location. False: it was so before.
func ChangeState(ctx context.Context, db pgdb.DB, operation, name, kind string) (bool, error) {
	what := operation + " " + name
	switch operation {
	case "start":
		return one[bool](ctx, db, what, "select parley_flow.start($1::text, $2::text)", name, kind)
	case "enlist":
		return one[bool](ctx, db, what, "select parley_flow.enlist($1::text, $2::text)", name, kind)
	case "unenlist":
		return one[bool](ctx, db, what, "select parley_flow.unenlist($1::text, $2::text)", name, kind)
	case "stop":
		return one[bool](ctx, db, what, "select parley_flow.stop($1::text, $2::text)", name, kind)
	case "enable":
		return one[bool](ctx, db, what, "select parley_flow.enable($1::text)", name)
	}
	return one[bool](ctx, db, what, "select parley_flow.disable($1::text)", name)
}

// KindsOf gives the kinds of which there is an object with a name.
func KindsOf(ctx context.Context, db pgdb.DB, name string) ([]string, error) {
	return one[[]string](ctx, db, "find "+name, `
		select coalesce(array_agg(d.kind order by d.kind), '{}') from parley_flow.definitions as d where d.name = $1`, name)
}

// Filter chooses suspended messages: an object of conditions, as parley_flow.suspended_matching takes it. The empty one is all of them.
type Filter map[string]any

func (f Filter) json() (json.RawMessage, error) {
	if f == nil {
		f = Filter{}
	}
	return json.Marshal(f)
}

// Suspended is a message that waits for an operator.
type Suspended struct {
	SuspensionID int64     `json:"suspension_id"`
	MessageID    int64     `json:"message_id"`
	Stage        string    `json:"stage"`
	Application  *string   `json:"application"`
	ReceivePort  *string   `json:"receive_port"`
	Location     *string   `json:"location"`
	SendPort     *string   `json:"send_port"`
	Code         string    `json:"code"`
	Error        *string   `json:"error"`
	IsResumable  bool      `json:"is_resumable"`
	Attempts     int       `json:"attempts"`
	OrderKey     *string   `json:"order_key"`
	HoldsUpOrder bool      `json:"holds_up_order"`
	MessageType  *string   `json:"message_type"`
	Size         int64     `json:"size"`
	CauseID      *int64    `json:"cause_id"`
	SuspendedAt  time.Time `json:"suspended_at"`
	Remedy       *string   `json:"remedy"`
}

// FindSuspended gives suspended messages, the oldest first, behind the suspension that was seen last.
func FindSuspended(ctx context.Context, db pgdb.DB, filter Filter, top int, after int64) ([]Suspended, error) {
	conditions, err := filter.json()
	if err != nil {
		return nil, err
	}
	return collect[Suspended](ctx, db, "find suspended messages", `
		select suspension_id, message_id, stage, application, receive_port, location, send_port, code, error, is_resumable, attempts, order_key,
			holds_up_order, message_type, size, cause_id, suspended_at, remedy
		from parley_flow.suspended_matching(filter => $1::jsonb, top => $2::integer, after => $3::bigint)`, conditions, top, after)
}

// SuspendedGroup is how many messages are suspended at one place for one reason.
type SuspendedGroup struct {
	Application *string   `json:"application"`
	Stage       string    `json:"stage"`
	Location    *string   `json:"location"`
	SendPort    *string   `json:"send_port"`
	Code        string    `json:"code"`
	MessageType *string   `json:"message_type"`
	Messages    int64     `json:"messages"`
	Bytes       int64     `json:"bytes"`
	Oldest      time.Time `json:"oldest"`
	Newest      time.Time `json:"newest"`
	Sample      int64     `json:"sample"`
}

// SuspendedGroups counts suspended messages by where and why they failed, the largest group first.
func SuspendedGroups(ctx context.Context, db pgdb.DB, filter Filter) ([]SuspendedGroup, error) {
	conditions, err := filter.json()
	if err != nil {
		return nil, err
	}
	return collect[SuspendedGroup](ctx, db, "count suspended messages", `
		select application, stage, location, send_port, code, message_type, messages, bytes::bigint, oldest, newest, sample
		from parley_flow.suspended_groups($1::jsonb)`, conditions)
}

// Resume has suspended messages tried again, and gives how many were; at most so many a second, 0 for no limit. A dry run only
// counts.
func Resume(ctx context.Context, db pgdb.DB, suspensions []int64, rate int, dryRun bool) (int, error) {
	return one[int](ctx, db, "resume suspended messages", `
		select parley_flow.resume_suspended(
			filter => jsonb_build_object('suspensions', $1::bigint[]), top => 2147483647, dry_run => $3::boolean, rate => nullif($2::integer, 0)
		)`, suspensions, rate, dryRun)
}

// Terminate gives suspended messages up, and gives how many were. A dry run only counts.
func Terminate(ctx context.Context, db pgdb.DB, suspensions []int64, dryRun bool) (int, error) {
	return one[int](ctx, db, "terminate suspended messages", `
		select parley_flow.terminate_suspended(
			filter => jsonb_build_object('suspensions', $1::bigint[]), top => 2147483647, dry_run => $2::boolean
		)`, suspensions, dryRun)
}

// Resubmit puts another message in the place of a suspended one, and gives its number. A nil body is the same, a property of
// nil is removed.
func Resubmit(ctx context.Context, db pgdb.DB, suspension int64, body []byte, properties map[string]*string) (int64, error) {
	var promoted json.RawMessage
	if len(properties) > 0 {
		var err error
		if promoted, err = json.Marshal(properties); err != nil {
			return 0, err
		}
	}
	return one[int64](ctx, db, "resubmit a suspended message", `
		select parley_flow.resubmit(suspension_id => $1::bigint, body => $2::bytea, properties => $3::jsonb)`, suspension, body, promoted)
}

// ReadMessage gives a part of a message, from 1 on.
func ReadMessage(ctx context.Context, db pgdb.DB, message int64, part int) ([]byte, error) {
	return one[[]byte](ctx, db, "read a message", "select parley_flow.read_message($1::bigint, $2::integer)", message, part)
}

// Property is a property of a message.
type Property struct {
	Name       string          `json:"name"`
	Value      json.RawMessage `json:"value"`
	IsPromoted bool            `json:"is_promoted"`
	Type       string          `json:"type"`
}

// ReadProperties gives all properties of a message.
func ReadProperties(ctx context.Context, db pgdb.DB, message int64) ([]Property, error) {
	return collect[Property](ctx, db, "read the properties of a message", `
		select name, value, is_promoted, type from parley_flow.read_properties($1::bigint)`, message)
}

// Parts gives of how many parts a message is; 1 also of one that is not seen by the caller.
func Parts(ctx context.Context, db pgdb.DB, message int64) (int, error) {
	return one[int](ctx, db, "read the parts of a message", `
		select coalesce((select parts from parley_flow.messages where message_id = $1::bigint), 1)`, message)
}

// Publication is a message to publish.
type Publication struct {
	Body                     []byte
	Properties, Written      map[string]string
	MessageType, ReceivePort string
	IdempotencyKey           string
}

// Publish publishes a message in the transaction of db, and gives its number and outcome.
func Publish(ctx context.Context, db pgdb.DB, p Publication) (id int64, outcome string, err error) {
	properties, err := json.Marshal(p.Properties)
	if err != nil {
		return 0, "", err
	}
	var written json.RawMessage
	if len(p.Written) > 0 {
		if written, err = json.Marshal(p.Written); err != nil {
			return 0, "", err
		}
	}
	err = db.QueryRow(ctx, `
		select e.message_id, e.outcome
		from parley_flow.publish_each(
			bodies => array[$1::bytea], properties => array[$2::jsonb], message_types => array[nullif($3::text, '')],
			receive_port => nullif($4::text, ''), written => array[$5::jsonb], idempotency_key => nullif($6::text, '')
		) as e`, p.Body, json.RawMessage(properties), p.MessageType, p.ReceivePort, written, p.IdempotencyKey).Scan(&id, &outcome)
	if err != nil {
		return 0, "", pgdb.StatementError(err, "publish a message")
	}
	return id, outcome, nil
}
