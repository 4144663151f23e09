//go:build unix

package nemesis_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// bytesOf deals out the bytes of a fuzzer as what an arrival is made of; when they are used up it deals zeros.
type bytesOf struct{ rest []byte }

func (b *bytesOf) byte() byte {
	if len(b.rest) == 0 {
		return 0
	}
	v := b.rest[0]
	b.rest = b.rest[1:]
	return v
}

func (b *bytesOf) below(n int) int { return int(b.byte()) % n }

func (b *bytesOf) number() int64 {
	switch b.below(6) {
	case 0, 1, 2:
		return int64(b.below(5))
	case 3:
		return transportstore.Unsequenced - int64(b.below(3))
	case 4:
		return -int64(b.below(3))
	}
	var v [8]byte
	for i := range v {
		v[i] = b.byte()
	}
	return int64(binary.BigEndian.Uint64(v[:]))
}

// text deals one of what is known here, or any text that a protocol buffer can carry: UTF-8.
func (b *bytesOf) text(known ...string) string {
	if n := b.below(len(known) + 1); n < len(known) {
		return known[n]
	}
	return strings.ToValidUTF8(string(b.data(b.below(12))), "?")
}

func (b *bytesOf) data(n int) []byte {
	v := make([]byte, n)
	for i := range v {
		v[i] = b.byte()
	}
	return v
}

func (b *bytesOf) uuid(known ...parley.UUID) (v parley.UUID) {
	if n := b.below(len(known) + 1); n < len(known) {
		return known[n]
	}
	copy(v[:], b.data(b.below(17)))
	return v
}

// run deals a run that may fit a conversation that is there, or nearly.
func (b *bytesOf) run(fits transportstore.Run, own parley.UUID) transportstore.Run {
	run := transportstore.Run{
		ConversationID: b.uuid(fits.ConversationID),
		FromInitiator:  b.below(4) > 0,
		FirstSequence:  b.number(),
		MessageType: b.text("DEFAULT", "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog",
			"http://schemas.microsoft.com/SQL/ServiceBroker/Error", "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer"),
		FromService: b.text(fits.FromService), ToService: b.text(fits.ToService), Contract: b.text("DEFAULT"),
		ToBroker: b.uuid(own, parley.UUID{}), Priority: int16(b.below(11)), TraceContext: b.text(""),
		EnqueuedAt: time.Unix(int64(b.below(3))*1e9, 0),
		Owner:      b.text("postgres"), IsEncrypted: b.below(8) == 0,
	}
	if b.below(4) == 0 {
		run.EndsAt = time.Unix(int64(b.below(4))*1e9, 0)
	}
	switch b.below(8) {
	case 0:
		run.Size = b.number()
	case 1:
		run.Probe = &transportstore.Probe{Given: b.number(), Expected: b.number()}
	default:
		for range b.below(4) {
			run.Bodies = append(run.Bodies, b.data(b.below(6)))
		}
	}
	return run
}

// The database answers each run from outside and breaks no rule of its own; no sender can stop the batches of others by what it sends under
// its own.
func FuzzArrival(f *testing.F) {
	from, pool := newSpeaking(f), newListening(f)
	speeches := from.speak(f, [][]string{{"one", "two", "three"}}, []bool{false})
	speaker := from.speaker(f)
	// The listener has the first message of a conversation.
	if _, err := transportstore.AcceptArrival(f.Context(), pool, transportstore.Arrival{
		Speaker: speaker, Runs: []transportstore.Run{speeches[0].piece(0, 1)}, Identities: []string{""},
	}); err != nil {
		f.Fatal(err)
	}
	var own parley.UUID
	if err := pool.QueryRow(f.Context(), "select service_broker_guid from parley._p_broker").Scan(&own); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x02\x00\x01\x00\x03\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01"))
	f.Add([]byte("\x01\x03\x00\x01\x01\x02\x02\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05\x05"))
	f.Add([]byte("\x02\x01\x03\x03\x03\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b := &bytesOf{raw}
		as := speaker
		if b.below(3) == 0 {
			as = transportstore.Speaker{Instance: b.uuid(speaker.Instance, own), Epoch: b.number(), Term: b.number(), Token: b.uuid(speaker.Token)}
		}
		batch := transport.Batch{Passage: transport.Outset(), Speaker: as}
		arrival := transportstore.Arrival{}
		for range 1 + b.below(4) {
			batch.Runs = append(batch.Runs, b.run(speeches[0].run, own))
			arrival.Identities = append(arrival.Identities, []string{"", "peer:abc", "role:postgres", "certificate:x"}[b.below(4)])
		}
		// A batch that cannot be expressed in a frame does not come in.
		payload, err := wire.EncodeBatch(batch)
		if err != nil {
			return
		}
		if batch, err = wire.DecodeBatch(payload); err != nil {
			return
		}
		arrival.Speaker, arrival.Runs = batch.Speaker, batch.Runs
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		for range 2 {
			results, err := transportstore.AcceptArrival(t.Context(), tx, arrival)
			if err != nil {
				if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
					t.Fatalf("%+v was answered with %s: %s, at %s", arrival, pgErr.Code, pgErr.Message, pgErr.Where)
				}
				t.Fatalf("%+v: %v", arrival, err)
			}
			for i, result := range results {
				switch result.Outcome {
				case transportstore.Accepted, transportstore.Expected, transportstore.Held, transportstore.Refused, transportstore.Gone, transportstore.Unroutable, transportstore.Superseded:
				default:
					t.Fatalf("run %+v was answered %+v", arrival.Runs[i], result)
				}
			}
		}
		fragment := transportstore.Fragment{
			Speaker: as, ConversationID: b.uuid(speeches[0].run.ConversationID), FromInitiator: b.below(2) == 0, Sequence: b.number(),
			Offset: b.number(), Size: b.number(), Data: b.data(b.below(9)), ToService: b.text("listener"), ToBroker: b.uuid(own),
		}
		if payload, err = wire.EncodeFragment(fragment, transport.Outset()); err == nil {
			if fragment, _, err = wire.DecodeFragment(payload); err == nil {
				if _, err := transportstore.AcceptFragment(t.Context(), tx, fragment); err != nil {
					t.Fatalf("%+v: %v", fragment, err)
				}
			}
		}
		wantSound(t, tx)
	})
}

// wantSound asks the broker's own check for faults.
func wantSound(t testing.TB, tx pgx.Tx) {
	t.Helper()
	rows, err := tx.Query(t.Context(), "select to_jsonb(c)::text from parley.check_broker() as c where c.level <> 'INFO'")
	if err != nil {
		t.Fatal(err)
	}
	faults, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) > 0 {
		t.Errorf("the broker is not sound any more: %s", strings.Join(faults, "\n"))
	}
}
