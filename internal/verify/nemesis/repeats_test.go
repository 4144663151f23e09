//go:build unix

package nemesis_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/internal/verify/checker"
	"github.com/parley-broker/parley/parleytest"
)

// speech is one direction of one dialog, as its sender's database has numbered it.
type speech struct {
	run    transportstore.Run // without bodies
	bodies [][]byte
	ends   *transportstore.Run // the run of the EndDialog, if the speech has one
}

// piece gives the run of the messages from a number on.
func (s speech) piece(first, n int) transportstore.Run {
	if s.ends != nil && first == len(s.bodies) {
		return *s.ends
	}
	run := s.run
	run.FirstSequence = int64(first)
	run.Bodies = s.bodies[first : first+n]
	return run
}

// length counts the messages, the end too.
func (s speech) length() int {
	if s.ends != nil {
		return len(s.bodies) + 1
	}
	return len(s.bodies)
}

// speaking is a database that has dialogs to send.
type speaking struct {
	pool *pgxpool.Pool
	conn *pgx.Conn
	term int64
}

func newSpeaking(t testing.TB) *speaking {
	t.Helper()
	pool := parleytest.Database(t)
	s := &speaking{pool: pool, conn: connect(t, parleytest.DSN(t, pool))}
	t.Cleanup(func() { _ = s.conn.Close(context.Background()) })
	must(t, s.conn, "select parley.create_queue('queue')")
	must(t, s.conn, "select parley.create_service('speaker', 'queue', '{DEFAULT}')")
	must(t, s.conn, "select parley.grant('SEND', 'service', 'speaker', 'public')")
	must(t, s.conn, "select parley.create_route(name => 'listener', service_name => 'listener', address => 'tcp://listener:4022')")
	term, leads, err := activationstore.Lead(t.Context(), pool, "speaking", 0, time.Hour, 0)
	if err != nil || !leads {
		t.Fatalf("lead: %t, %v", leads, err)
	}
	s.term = term
	return s
}

// newListening makes a database in which the service listener is.
func newListening(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	conn := connect(t, parleytest.DSN(t, pool))
	defer conn.Close(context.Background())
	must(t, conn, "select parley.create_queue('queue')")
	must(t, conn, "select parley.create_service('listener', 'queue', '{DEFAULT}')")
	must(t, conn, "select parley.grant('SEND', 'service', 'listener', 'public')")
	return pool
}

// speak begins dialogs, sends bodies on them, ends some, and takes what comes of that to transmit.
func (s *speaking) speak(t testing.TB, dialogs [][]string, ends []bool) []speech {
	t.Helper()
	for i, bodies := range dialogs {
		handle := ask[string](t, s.conn, "select parley.begin_dialog('speaker', 'listener')::text")
		for _, body := range bodies {
			must(t, s.conn, "select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, body)
		}
		if ends[i] {
			must(t, s.conn, "select parley.end_conversation($1::uuid)", handle)
		}
	}
	var speeches []speech
	place := map[parley.UUID]int{}
	destinations, err := transportstore.ReadDestinations(t.Context(), s.pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, destination := range destinations {
		for {
			runs, err := transportstore.TakeRuns(t.Context(), s.pool, s.term, destination.ID, 7, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if len(runs) == 0 {
				break
			}
			for _, run := range runs {
				i, known := place[run.ConversationID]
				if !known {
					i = len(speeches)
					place[run.ConversationID] = i
					speeches = append(speeches, speech{run: run})
				}
				if int(run.FirstSequence) != len(speeches[i].bodies) {
					t.Fatalf("S4: run %d of %s begins with number %d", len(speeches[i].bodies), run.ConversationID, run.FirstSequence)
				}
				if strings.HasSuffix(run.MessageType, "/EndDialog") {
					speeches[i].ends = &run
					continue
				}
				speeches[i].bodies = append(speeches[i].bodies, run.Bodies...)
			}
		}
	}
	return speeches
}

func (s *speaking) speaker(t testing.TB) transportstore.Speaker {
	t.Helper()
	speaker, leads, err := transportstore.ReadSpeaker(t.Context(), s.pool, s.term)
	if err != nil || !leads {
		t.Fatalf("read the speaker: %t, %v", leads, err)
	}
	return speaker
}

// readHistory is the content of a listener's queue about a number of dialogs, received to the end.
func readHistory(t testing.TB, pool *pgxpool.Pool) (h checker.History) {
	t.Helper()
	for {
		rows, err := pool.Query(t.Context(), `
			select e.conversation_id::text, m.message_type_name, coalesce(m.message_body, '')
			from parley.receive('queue') as m
			join parley.conversation_endpoints as e using (conversation_handle)`)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		var dialog, kind string
		var body []byte
		if _, err := pgx.ForEachRow(rows, []any{&dialog, &kind, &body}, func() error {
			n++
			sum := md5.Sum(append([]byte(kind), body...))
			h.Received = append(h.Received, checker.Received{
				Direction: checker.Direction{Dialog: dialog, FromInitiator: true}, N: n, Seq: int64(len(h.Received)), Hash: hex.EncodeToString(sum[:]),
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return h
		}
	}
}

// Any part of a speech, any number of times, in any order, equals the whole once; keeps T4, T5.
func TestAnyRunAnyNumberOfTimesInAnyOrderEqualsSendingItOnce(t *testing.T) {
	t.Parallel()
	from, once, often := newSpeaking(t), newListening(t), newListening(t)
	rapid.Check(t, func(r *rapid.T) {
		dialogs := rapid.SliceOfN(rapid.SliceOfN(rapid.StringMatching("[a-z]{0,5}"), 1, 6), 1, 3).Draw(r, "dialogs")
		ends := rapid.SliceOfN(rapid.Bool(), len(dialogs), len(dialogs)).Draw(r, "ends")
		speeches := from.speak(t, dialogs, ends)
		if len(speeches) != len(dialogs) {
			r.Fatalf("%d dialogs were sent, %d taken", len(dialogs), len(speeches))
		}
		speaker := from.speaker(t)
		accept := func(pool *pgxpool.Pool, runs ...transportstore.Run) []transportstore.Result {
			results, err := transportstore.AcceptArrival(t.Context(), pool, transportstore.Arrival{Speaker: speaker, Runs: runs, Identities: make([]string, len(runs))})
			if err != nil {
				r.Fatalf("%v", err)
			}
			if len(results) != len(runs) {
				r.Fatalf("%d results answer %d runs", len(results), len(runs))
			}
			return results
		}
		whole := func(pool *pgxpool.Pool) {
			for _, s := range speeches {
				for next := 0; next < s.length(); {
					n := max(1, len(s.bodies)-next)
					result := accept(pool, s.piece(next, n))[0]
					if result.Outcome != transportstore.Accepted || result.Next < int64(next+n) {
						r.Fatalf("the run from %d of %d was answered %+v", next, n, result)
					}
					next = int(result.Next)
				}
			}
		}
		whole(once)

		next := make([]int64, len(speeches))
		for range rapid.IntRange(1, 8).Draw(r, "arrivals") {
			var runs []transportstore.Run
			var whose []int
			for range rapid.IntRange(1, 5).Draw(r, "runs") {
				i := rapid.IntRange(0, len(speeches)-1).Draw(r, "dialog")
				s := speeches[i]
				first := rapid.IntRange(0, s.length()-1).Draw(r, "first")
				n := 1
				if first < len(s.bodies) {
					n = rapid.IntRange(1, len(s.bodies)-first).Draw(r, "messages")
				}
				runs, whose = append(runs, s.piece(first, n)), append(whose, i)
			}
			// All runs of an arrival may be answered as of its beginning.
			before := slices.Clone(next)
			for j, result := range accept(often, runs...) {
				i, last := whose[j], runs[j].FirstSequence+int64(max(1, len(runs[j].Bodies)))
				switch {
				case result.Outcome != transportstore.Accepted && result.Outcome != transportstore.Expected:
					r.Fatalf("run %+v was answered %+v", runs[j], result)
				case result.Next < before[i] || result.Next > int64(speeches[i].length()):
					r.Fatalf("T4: after %d the next number is %d", before[i], result.Next)
				case result.Outcome == transportstore.Accepted && result.Next < last:
					r.Fatalf("the run to %d was accepted up to %d", last, result.Next)
				case result.Outcome == transportstore.Expected && runs[j].FirstSequence <= before[i]:
					r.Fatalf("the run from %d follows what is there, %d, and was answered %+v", runs[j].FirstSequence, before[i], result)
				}
				next[i] = max(next[i], result.Next)
			}
		}
		whole(often)
		for _, v := range checker.SameOutcome(readHistory(t, once), readHistory(t, often)) {
			r.Error(v)
		}
	})
}

// Fragments of a large message may come in any order too, cut anywhere, and its run before them.
func TestAnyFragmentAnyNumberOfTimesInAnyOrderEqualsSendingItOnce(t *testing.T) {
	t.Parallel()
	from, often := newSpeaking(t), newListening(t)
	large := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	number := 0
	rapid.Check(t, func(r *rapid.T) {
		number++
		body := strconv.Itoa(number) + large
		handle := ask[string](t, from.conn, "select parley.begin_dialog('speaker', 'listener')::text")
		must(t, from.conn, "select parley.send($1::uuid, 'DEFAULT', $2::text)", handle, body)
		destinations, err := transportstore.ReadDestinations(t.Context(), from.pool)
		if err != nil || len(destinations) != 1 {
			r.Fatalf("destinations %v, %v", destinations, err)
		}
		runs, err := transportstore.TakeRuns(t.Context(), from.pool, from.term, destinations[0].ID, 10, 1<<20)
		if err != nil || len(runs) != 1 || runs[0].Size != int64(len(body)) {
			r.Fatalf("%d runs, %v", len(runs), err)
		}
		run, speaker := runs[0], from.speaker(t)
		arrive := func() transportstore.Result {
			results, err := transportstore.AcceptArrival(t.Context(), often, transportstore.Arrival{
				Speaker: speaker, Runs: []transportstore.Run{run}, Identities: []string{""},
			})
			if err != nil {
				r.Fatal(err)
			}
			return results[0]
		}
		stored := int64(0)
		fragment := func(offset, length int64) {
			data, err := transportstore.ReadBodyPart(t.Context(), from.pool, run.EndpointID, run.FirstSequence, offset, int(length))
			if err != nil {
				r.Fatal(err)
			}
			now, err := transportstore.AcceptFragment(t.Context(), often, transportstore.Fragment{
				Speaker: speaker, ConversationID: run.ConversationID, FromInitiator: true, Sequence: run.FirstSequence,
				Offset: offset, Size: run.Size, Data: data, ToService: run.ToService, ToBroker: run.ToBroker,
			})
			if err != nil {
				r.Fatal(err)
			}
			if now < stored || now > run.Size {
				r.Fatalf("T4: %d bytes were stored, and then %d", stored, now)
			}
			stored = now
		}
		for range rapid.IntRange(0, 6).Draw(r, "fragments") {
			offset := rapid.Int64Range(0, run.Size-1).Draw(r, "offset")
			fragment(offset, rapid.Int64Range(1, min(1<<20, run.Size-offset)).Draw(r, "length"))
			if result := arrive(); result.Outcome == transportstore.Accepted && stored < run.Size {
				r.Fatalf("the run was accepted when %d of %d bytes were there", stored, run.Size)
			}
		}
		for stored < run.Size {
			before := stored
			fragment(stored, min(1<<20, run.Size-stored))
			if stored == before {
				r.Fatalf("nothing more is stored than %d bytes", stored)
			}
		}
		for range 2 {
			if result := arrive(); result.Outcome != transportstore.Accepted || result.Next != 1 {
				r.Fatalf("the run was answered %+v", result)
			}
		}
		sum := md5.Sum([]byte("DEFAULT" + body))
		got := readHistory(t, often).Received
		if len(got) != 1 || got[0].Hash != hex.EncodeToString(sum[:]) {
			r.Fatal(fmt.Sprint("received ", len(got), " messages, or another body"))
		}
	})
}
