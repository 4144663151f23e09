package reliability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/checker"
	accounts "github.com/parley-broker/parley/internal/verify/ledger"
)

// ledger is a fixture whose workload keeps account of itself. The tables do not depend on what a client learns of its commits.
type ledger struct {
	*fixture
	birth time.Time

	mu        sync.Mutex
	committed map[sending]time.Duration
	holders   map[string]holder
	conflicts map[*session]string
}

// sending names a message of a ledger.
type sending struct {
	handle string
	stream string
	n      int64
}

func newLedger(t testing.TB, b *fixture) *ledger {
	t.Helper()
	if err := accounts.Install(t.Context(), b.admin.conn); err != nil {
		t.Fatal(err)
	}
	return &ledger{
		fixture: b, birth: time.Now(),
		committed: map[sending]time.Duration{}, holders: map[string]holder{}, conflicts: map[*session]string{},
	}
}

// now is the clock of the stamps; it is never zero, which stands for unknown.
func (l *ledger) now() time.Duration { return time.Since(l.birth) + 1 }

// send sends the next message of a stream, which is to belong to one session at a time.
func (l *ledger) send(s *session, handle, stream string) (sending, error) {
	fill := strings.Repeat("x", rand.IntN(200))
	if rand.IntN(50) == 0 {
		fill = strings.Repeat("long ", 4000)
	}
	n, err := tryAsk[int64](s, "select n from ledger.send($1::uuid, $2, $3, $4)", handle, stream, fill, int64(l.now()))
	return sending{handle, stream, n}, err
}

// recordCommitted reports when a client knew of its commit.
func (l *ledger) recordCommitted(messages []sending) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range messages {
		l.committed[m] = now
	}
}

// holder is a session that has received from a group, and what.
type holder struct {
	s   *session
	got []delivery
}

// delivery holds the facts that a receiver of the ledger needs to go on.
type delivery struct {
	Handle string
	Group  string
	IsEnd  bool
}

// receive receives from a queue and enters what came. It fails if another session holds the group; keeps S9.
func (l *ledger) receive(s *session, queue string, top int) ([]delivery, error) {
	rows, err := s.conn.Query(context.Background(), "select handle::text, conversation_group::text, is_end from ledger.receive($1, nullif($2, 0))", queue, top)
	if err != nil {
		return nil, err
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[delivery])
	if err != nil {
		return nil, err
	}
	for _, d := range got {
		if d.Group != got[0].Group {
			s.t.Errorf("S10: one receive gave messages of groups %s and %s", got[0].Group, d.Group)
		}
	}
	if len(got) > 0 {
		l.hold(s, got)
	}
	return got, nil
}

// hold enters the holder of a group. The holder lets go of it here before the server does, so two entries at a time are two holders.
func (l *ledger) hold(s *session, got []delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := got[0].Group
	if other := l.holders[group]; other.s != nil && other.s != s {
		l.conflicts[other.s] = fmt.Sprintf("S9: sessions %d and %d hold a group at the same time\n%+v\n%+v", other.s.pid, s.pid, other.got, got)
	}
	l.holders[group] = holder{s, got}
}

// letGo is to be called before a session ends its transaction. When one of its statements failed, the server let go of the group at once,
// and that another session had it next proves nothing.
func (l *ledger) letGo(s *session, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text, ok := l.conflicts[s]; ok && !failed {
		s.t.Error(text)
	}
	delete(l.conflicts, s)
	for group, h := range l.holders {
		if h.s == s {
			delete(l.holders, group)
		}
	}
}

// history reads the ledger.
func (l *ledger) history(t testing.TB) checker.History {
	t.Helper()
	h, err := accounts.Read(t.Context(), l.session(t).conn)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range h.Sent {
		h.Sent[i].Committed = l.committed[sending{m.Handle, m.Stream, m.N}]
	}
	return h
}

func collect[T any](t testing.TB, s *session, sql string, scan pgx.RowToFunc[T]) []T {
	t.Helper()
	rows, err := s.conn.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, scan)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// verdict fails the test for each promise that was broken, in the eyes of either checker, and gives the history.
func (l *ledger) verdict(t testing.TB) checker.History {
	t.Helper()
	h := l.history(t)
	for i, v := range checker.Check(h) {
		if i == 20 {
			t.Error("and more")
			break
		}
		t.Error(v)
	}
	lines, err := accounts.Verdict(t.Context(), l.session(t).conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Errorf("by SQL, violations of %s", line)
	}
	return h
}

// drain receives all that is left, and ends what the other side has ended.
func (l *ledger) drain(t testing.TB, s *session) {
	t.Helper()
	for idle := 0; idle < 2; idle++ {
		for _, queue := range []string{"target_queue", "initiator_queue"} {
			for {
				s.begin()
				got, err := l.receive(s, queue, 0)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) > 0 {
					idle = 0
				}
				for _, d := range got {
					if d.IsEnd {
						s.exec("select ledger.end_conversation($1::uuid, null)", d.Handle)
					}
				}
				l.letGo(s, false)
				s.commit()
				if len(got) == 0 {
					break
				}
			}
		}
	}
}

// endAll ends every side that is still open, so that nothing may be left.
func (l *ledger) endAll(t testing.TB, s *session) {
	t.Helper()
	for {
		open := collect(t, s, "select conversation_handle::text from parley.conversation_endpoints where state not in ('DO', 'CD') limit 1", pgx.RowTo[string])
		if len(open) == 0 {
			return
		}
		s.exec("select ledger.end_conversation($1::uuid, null)", open[0])
		l.drain(t, s)
	}
}
