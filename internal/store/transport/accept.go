package transport

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// AcceptArrival takes in what another broker has sent, in one transaction, and answers each run, in their order. With an error
// nothing is known about the outcome: the same runs may come again, and have the effect of one.
func AcceptArrival(ctx context.Context, db pgdb.DB, arrival Arrival) ([]Result, error) {
	n := len(arrival.Runs)
	if len(arrival.Identities) != n {
		return nil, fmt.Errorf("parley: accept messages: %d runs with %d identities", n, len(arrival.Identities))
	}
	speaker := arrival.Speaker
	arguments := []any{speaker.Instance, speaker.Epoch, speaker.Term, speaker.Token}
	for _, c := range arrivalColumns {
		arguments = append(arguments, c.values(arrival))
	}
	rows, err := db.Query(ctx, acceptStatement, arguments...)
	if err != nil {
		return nil, pgdb.StatementError(err, "accept messages")
	}
	results := make([]Result, n)
	answered := 0
	var ordinal int
	var r Result
	_, err = pgx.ForEachRow(rows, []any{&ordinal, &r.Outcome, &r.Next, &r.ErrorNumber, &r.Description, &r.Broker, &r.Epoch}, func() error {
		if ordinal < 1 || ordinal > n {
			return fmt.Errorf("the database answers run %d of %d", ordinal, n)
		}
		results[ordinal-1] = r
		answered++
		return nil
	})
	switch {
	case err != nil:
		return nil, pgdb.StatementError(err, "accept messages")
	case answered != n:
		return nil, fmt.Errorf("parley: accept messages: the database has answered %d of %d runs", answered, n)
	}
	return results, nil
}

// arrivalColumn is an argument of _p_accept_runs: one array, with what each run of an arrival has of something.
type arrivalColumn struct {
	name, kind string
	values     func(Arrival) any
}

// arrivalColumns are all of them. Arrays cost the database half a microsecond for a run of eight columns, where one array of a
// composite type costs two, as pgx can send it as text alone, and JSON seven; taking a run in costs some twenty.
var arrivalColumns = []arrivalColumn{
	{"conversation_ids", "uuid[]", uuids(func(r *Run) pgdb.UUID { return r.ConversationID })},
	{"from_initiators", "boolean[]", each(func(r *Run) bool { return r.FromInitiator })},
	{"first_sequences", "bigint[]", each(func(r *Run) int64 { return r.FirstSequence })},
	{"message_types", "text[]", each(func(r *Run) string { return r.MessageType })},
	{"body_counts", "integer[]", each(func(r *Run) int32 { return int32(len(r.Bodies)) })},
	{"body_sizes", "bigint[]", each(func(r *Run) int64 { return r.Size })},
	{"bodies", "bytea[]", allBodies},
	{"from_services", "text[]", each(func(r *Run) string { return r.FromService })},
	{"to_services", "text[]", each(func(r *Run) string { return r.ToService })},
	{"contracts", "text[]", each(func(r *Run) string { return r.Contract })},
	{"to_brokers", "uuid[]", uuids(func(r *Run) pgdb.UUID { return r.ToBroker })},
	{"ends_at", "timestamptz[]", each(func(r *Run) *time.Time { return timeOrNull(r.EndsAt) })},
	{"trace_contexts", "text[]", each(func(r *Run) string { return r.TraceContext })},
	{"identities", "text[]", func(a Arrival) any { return a.Identities }},
	{"are_encrypted", "boolean[]", each(func(r *Run) bool { return r.IsEncrypted })},
	{"probes_given", "bigint[]", each(func(r *Run) *int64 { return ofProbe(r, func(p *Probe) *int64 { return &p.Given }) })},
	{"probes_expected", "bigint[]", each(func(r *Run) *int64 { return ofProbe(r, func(p *Probe) *int64 { return &p.Expected }) })},
	{"sealed_at", "timestamptz[]", each(func(r *Run) *time.Time { return timeOrNull(r.SealedAt) })},
}

// acceptStatement calls _p_accept_runs with the speaker and the columns of an arrival.
var acceptStatement = func() string {
	var call strings.Builder
	for i, c := range arrivalColumns {
		fmt.Fprintf(&call, ", %s => $%d::%s", c.name, 5+i, c.kind)
	}
	return `
		select r.ordinal, r.outcome, r.next_sequence, coalesce(r.error_number, 0), coalesce(r.description, ''), b.service_broker_guid, b.epoch
		from parley._p_accept_runs(
			broker_instance => $1::uuid, epoch => $2::bigint, term => $3::bigint, token => $4::uuid` + call.String() + `
		) as r
		cross join parley._p_broker as b`
}()

// each gives a value of every run.
func each[T any](of func(*Run) T) func(Arrival) any {
	return func(a Arrival) any { return collect(a, of) }
}

func uuids(of func(*Run) pgdb.UUID) func(Arrival) any {
	return func(a Arrival) any { return pgdb.UUIDTexts(collect(a, of)) }
}

func collect[T any](a Arrival, of func(*Run) T) []T {
	values := make([]T, len(a.Runs))
	for i := range a.Runs {
		values[i] = of(&a.Runs[i])
	}
	return values
}

func allBodies(a Arrival) any {
	bodies := [][]byte{}
	for _, run := range a.Runs {
		bodies = append(bodies, run.Bodies...)
	}
	return bodies
}

// ofProbe gives a field of a run's probe, null for a run that carries messages.
func ofProbe(r *Run, field func(*Probe) *int64) *int64 {
	if r.Probe == nil {
		return nil
	}
	return field(r.Probe)
}

// timeOrNull gives null for a time that is not given.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// AcceptFragment stores a part of a large message, and returns how many bytes of it are stored without a hole from the first:
// where to go on. It returns -1 when the message is not wanted; the result of the run has the reason.
func AcceptFragment(ctx context.Context, db pgdb.DB, f Fragment) (stored int64, err error) {
	var count *int64
	err = db.QueryRow(ctx, `
		select parley._p_accept_fragment(
			broker_instance => $1::uuid, epoch => $2::bigint, term => $3::bigint, token => $4::uuid,
			conversation_id => $5::uuid, from_initiator => $6::boolean, sequence => $7::bigint, first_byte => $8::bigint,
			size => $9::bigint, data => $10::bytea, to_service => $11::text, to_broker => $12::uuid, identity => $13::text,
			sealed_at => $14::timestamptz
		)`,
		f.Speaker.Instance, f.Speaker.Epoch, f.Speaker.Term, f.Speaker.Token, f.ConversationID, f.FromInitiator, f.Sequence, f.Offset, f.Size,
		f.Data, f.ToService, f.ToBroker, f.Identity, timeOrNull(f.SealedAt)).Scan(&count)
	if err != nil {
		return 0, pgdb.StatementError(err, "accept a part of a message")
	}
	if count == nil {
		return -1, nil
	}
	return *count, nil
}
