package sqltest

import (
	"encoding/json"
	"slices"
	"testing"
)

// blocksRead runs a statement and returns how many blocks it, and what it calls, read.
func (s Session) blocksRead(statement string, arguments ...any) int {
	s.Helper()
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	text := Value[string](s, "explain (analyze, buffers, format json) "+statement, arguments...)
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		s.Fatalf("the plan cannot be read: %v\n%s", err, text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// RequireFewReads runs a statement some times and requires that one of them reads few blocks. The first one also plans, and any may have
// to read the catalog again: other databases of the server fill the queue of invalidations that all sessions share, and overflow it.
func (s Session) RequireFewReads(most int, statement string, arguments ...any) {
	s.Helper()
	reads := make([]int, 4)
	for n := range reads {
		reads[n] = s.blocksRead(statement, arguments...)
	}
	if slices.Min(reads) > most {
		s.Errorf("%s reads %d blocks, at most %d are needed", Clip(statement), reads, most)
	}
}

// EntriesRead runs a statement in a transaction of its own, and gives how many entries of indexes it reads, and rows of tables that it
// reads from end to end, dead ones included.
func (s Session) EntriesRead(statement string, arguments ...any) int {
	s.Helper()
	const read = `select sum(pg_stat_get_xact_tuples_returned(c.oid))::int
		from pg_class as c where c.relnamespace = 'parley'::regnamespace and c.relkind in ('r', 'i')`
	s.Exec("begin")
	before := Value[int](s, read)
	s.Exec(statement, arguments...)
	after := Value[int](s, read)
	s.Exec("commit")
	return after - before
}

// BlockedHints counts the hints that name conversations whose groups are locked.
const BlockedHints = "select count(*) from parley._p_scan_hint where cardinality(blocked_endpoints) > 0"

// BesideALockedGroup gives a queue in which a reader holds the group of a conversation with some messages, each a row, and the initiators
// of two other conversations, without any.
func BesideALockedGroup(t *testing.T, rows int) (b *Broker, holder Session, other, third string) {
	t.Helper()
	b = NewWorld(t)
	held, heldTarget := b.Conversation()
	other, _ = b.Conversation()
	third, _ = b.Conversation()
	for range 3 {
		b.Receive("Answering")
	}
	b.Exec("select parley.send($1::uuid, $2, 'held ' || n) from generate_series(0, $3::int - 1) as g (n)", held, Request, rows)
	holder = b.Begin()
	holder.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", heldTarget)
	return b, holder, other, third
}

// Find has a reader scan past the holder some times, which takes nothing.
func (b *Broker) Find(times int) {
	b.Helper()
	reader := b.Connection()
	for range times {
		reader.scanPast()
	}
}

// scanPast finds a group, in a transaction of its own.
func (s Session) scanPast() {
	s.Helper()
	s.Exec("begin")
	if group := Value[string](s, "select coalesce(parley.get_conversation_group('Answering')::text, '')"); group == "" {
		s.Fatal("the other group was not found")
	}
	s.Commit()
}

// FindUntilHinted has a reader scan past the holder until it has left a hint. Only so many read the senders under way at a time.
func (b *Broker) FindUntilHinted() {
	b.Helper()
	reader := b.Connection()
	for range 2000 {
		if reader.scanPast(); Value[int](b.Session, BlockedHints) > 0 {
			return
		}
	}
	b.Fatal("there is no hint")
}
