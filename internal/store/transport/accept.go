package transport

import (
	"context"
	"fmt"
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
	a := arrivalColumns{bodies: [][]byte{}}
	for i, run := range arrival.Runs {
		a.add(run, arrival.Identities[i])
	}
	rows, err := db.Query(ctx, `
		select r.ordinal, r.outcome, r.next_sequence, coalesce(r.error_number, 0), coalesce(r.description, ''), b.service_broker_guid, b.epoch
		from parley._p_accept_runs($1::uuid, $2::bigint, $3::bigint, $4::uuid, $5::uuid[], $6::boolean[], $7::bigint[], $8::text[],
			$9::integer[], $10::bigint[], $11::bytea[], $12::text[], $13::text[], $14::text[], $15::uuid[], $16::timestamptz[], $17::text[],
			$18::text[], $19::boolean[], $20::bigint[], $21::bigint[], $22::timestamptz[]) as r
		cross join parley._p_broker as b`,
		arrival.Speaker.Instance, arrival.Speaker.Epoch, arrival.Speaker.Term, arrival.Speaker.Token,
		pgdb.UUIDTexts(a.conversations), a.fromInitiators, a.firsts, a.types, a.counts, a.sizes, a.bodies,
		a.fromServices, a.toServices, a.contracts, pgdb.UUIDTexts(a.toBrokers), a.endsAt,
		a.traces, a.identities, a.encrypted, a.given, a.expected, a.sealedAt)
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

// arrivalColumns holds runs as the database takes them: column by column.
type arrivalColumns struct {
	conversations, toBrokers                                       []pgdb.UUID
	fromInitiators, encrypted                                      []bool
	firsts, sizes                                                  []int64
	types, fromServices, toServices, contracts, traces, identities []string
	counts                                                         []int32
	bodies                                                         [][]byte
	endsAt, sealedAt                                               []*time.Time
	given, expected                                                []*int64
}

func (a *arrivalColumns) add(run Run, identity string) {
	a.conversations, a.toBrokers = append(a.conversations, run.ConversationID), append(a.toBrokers, run.ToBroker)
	a.fromInitiators, a.encrypted = append(a.fromInitiators, run.FromInitiator), append(a.encrypted, run.IsEncrypted)
	a.firsts, a.sizes = append(a.firsts, run.FirstSequence), append(a.sizes, run.Size)
	a.types, a.traces = append(a.types, run.MessageType), append(a.traces, run.TraceContext)
	a.fromServices, a.toServices = append(a.fromServices, run.FromService), append(a.toServices, run.ToService)
	a.contracts, a.identities = append(a.contracts, run.Contract), append(a.identities, identity)
	a.counts = append(a.counts, int32(len(run.Bodies)))
	a.bodies = append(a.bodies, run.Bodies...)
	a.endsAt, a.sealedAt = append(a.endsAt, timeOrNull(run.EndsAt)), append(a.sealedAt, timeOrNull(run.SealedAt))
	var given, expected *int64
	if run.Probe != nil {
		given, expected = &run.Probe.Given, &run.Probe.Expected
	}
	a.given, a.expected = append(a.given, given), append(a.expected, expected)
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
		select parley._p_accept_fragment($1::uuid, $2::bigint, $3::bigint, $4::uuid, $5::uuid, $6::boolean, $7::bigint, $8::bigint, $9::bigint,
			$10::bytea, $11::text, $12::uuid, $13::text, $14::timestamptz)`,
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
