package simple_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// takeOneByOne takes so many messages, each in a transaction of its own.
func takeOneByOne(b *sqltest.Broker, count int) {
	b.Helper()
	b.Exec(fmt.Sprintf(`do $$
		begin
			for n in 1..%d loop
				perform from parley.take('jobs');
				commit;
			end loop;
		end $$`, count))
}

// entriesRead gives how many entries of the two indexes of messages a TAKE reads, dead ones included.
func entriesRead(b *sqltest.Broker) int {
	b.Helper()
	const read = `select (pg_stat_get_xact_tuples_returned('parley._p_message_lane_position_idx'::regclass)
		+ pg_stat_get_xact_tuples_returned('parley._p_message_endpoint_id_position_idx'::regclass))::int`
	tx := b.Begin()
	defer tx.Rollback()
	before := sqltest.Value[int](tx, read)
	tx.Exec("select from parley.take('jobs')")
	return sqltest.Value[int](tx, read) - before
}

// A message that somebody works on for long keeps the server from forgetting what is taken meanwhile. TAKE does not walk past all of that.
func TestTakeStaysAsFastBehindAMessageThatIsHeldForLong(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	putNumbered(b.Session, 3000)
	holder := b.Begin()
	holder.RequireTaken(1, "1")
	takeOneByOne(b, 2500)
	// A hint is recorded after what it rests on was asked twice, which a slow machine does seldom.
	parleytest.Until(t, "a TAKE reads few entries of the index where thousands were taken behind one that is held", func() bool {
		putNumbered(b.Session, 100)
		takeOneByOne(b, 100)
		var reads []int
		for range 9 {
			reads = append(reads, entriesRead(b))
		}
		slices.Sort(reads) // one call in twenty looks at all, or records where the next one begins
		return reads[4] <= 1000
	})
	holder.Rollback()
	b.RequireTaken(1, "1")
}

// resumeOf gives the number of the first message that TAKE looks at; 0 where it begins with the first of all.
func resumeOf(b *sqltest.Broker) int {
	b.Helper()
	return sqltest.Value[int](b.Session, `select coalesce((
		select h.resume_position / 1024 from parley._p_scan_hint as h order by h.hint_id desc limit 1), 0)::int`)
}

// Of what stands before where TAKE begins, the first is taken next when it comes back, and the others when nothing else is there.
func TestWhatComesBackBeforeWhereTakeBeginsIsTaken(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	putNumbered(b.Session, 2000)
	first, second := b.Begin(), b.Begin()
	first.RequireTaken(1, "1")
	second.RequireTaken(1, "2")
	takeOneByOne(b, 1998)
	parleytest.Until(t, "TAKE begins later", func() bool {
		putNumbered(b.Session, 300)
		takeOneByOne(b, 300)
		return resumeOf(b) >= 256
	})
	b.RequireTaken(1)
	second.Rollback()
	b.RequireTaken(1, "2")
	b.Put("new")
	first.Rollback()
	b.RequireTaken(1, "1")
	b.RequireTaken(2, "new")
}

// TAKE never begins behind a message that is free, behind one that waits for the first of its key, or behind one whose sender has not
// committed yet.
func TestTakeBeginsBehindNothingThatWaits(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(b *sqltest.Broker) (release func()){
		"behind the first of its key": func(b *sqltest.Broker) func() {
			b.Exec("select parley.put('jobs', 'held', key => 'k'), parley.put('jobs', 'waits', key => 'k')")
			holder := b.Begin()
			holder.RequireTaken(1, "held")
			return holder.Commit
		},
		"not committed": func(b *sqltest.Broker) func() {
			b.Put("held")
			holder := b.Begin()
			holder.RequireTaken(1, "held")
			sender := b.Begin()
			sender.Put("waits")
			return func() {
				holder.Commit()
				sender.Commit()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewJobs(t)
			release := wait(b)
			putNumbered(b.Session, 2000)
			takeOneByOne(b, 1500)
			if resume := resumeOf(b); resume > 2 {
				t.Errorf("TAKE begins with message %d", resume)
			}
			// Scans begin behind the safe position once the message that is held is gone.
			safe := sqltest.Value[int](b.Session, "select coalesce(max(safe_position) / 1024, 0)::int from parley._p_scan_hint")
			if name == "not committed" && safe > 2 {
				t.Errorf("all before message %d is said to be committed", safe)
			}
			release()
			b.RequireTaken(1, "waits")
		})
	}
}

// besideBusyKeys gives a queue in which a session holds the first messages of two keys, with some hundred behind each.
func besideBusyKeys(t *testing.T) (b *sqltest.Broker, holder sqltest.Session) {
	t.Helper()
	b = sqltest.NewJobs(t)
	b.PutKeyed("a:1", "b:1")
	for n := range 10 {
		key := []string{"a", "b"}[n%2]
		b.Exec("select parley.put_batch('jobs', array(select $1 || ':' || n from generate_series($2::int, $2 + 99) as n), key => $1)", key, 2+n/2*100)
	}
	holder = b.Begin()
	holder.RequireTaken(2, "a:1", "b:1")
	return b, holder
}

// The same where the message that is held has a key, and others of that key wait: what has no key is taken past all of them, and TAKE does
// not walk past what was taken so.
func TestTakeStaysAsFastBehindBusyKeysThatAreHeldForLong(t *testing.T) {
	t.Parallel()
	b, holder := besideBusyKeys(t)
	putNumbered(b.Session, 3000)
	takeOneByOne(b, 2500)
	parleytest.Until(t, "a TAKE reads few entries of the indexes where thousands were taken past busy keys", func() bool {
		putNumbered(b.Session, 100)
		takeOneByOne(b, 100)
		var reads []int
		for range 9 {
			reads = append(reads, entriesRead(b))
		}
		slices.Sort(reads)
		return reads[4] <= 1000
	})
	holder.Rollback()
	b.RequireTaken(1, "a:1")
}

// keyless gives the number of the first message without a key that TAKE looks at behind the first rows; 0 where that is any.
func keyless(b *sqltest.Broker) int {
	b.Helper()
	return sqltest.Value[int](b.Session, `select coalesce((
		select h.keyless_position / 1024 from parley._p_scan_hint as h order by h.hint_id desc limit 1), 0)::int`)
}

// A key that comes free behind one that does not gets its turn, although what has no key is always there.
func TestAKeyThatComesFreeIsTakenBesideWhatHasNoKey(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.PutKeyed("a:1", "b:1", "a:2", "b:2")
	first, second := b.Begin(), b.Begin()
	defer first.Rollback()
	first.RequireTaken(1, "a:1")
	second.RequireTaken(1, "b:1")
	parleytest.Until(t, "TAKE begins later with what has no key", func() bool {
		putNumbered(b.Session, 600)
		takeOneByOne(b, 600)
		return keyless(b) > 1000
	})
	putNumbered(b.Session, 500)
	second.Commit()
	for range 400 {
		if got := b.Take(1); len(got) == 1 && got[0] == "b:2" {
			return
		}
	}
	t.Error("the message of the free key was not among four hundred")
}

// A message without a key that comes back before where TAKE begins with those is taken when nothing else is free.
func TestWhatComesBackWithoutAKeyPastBusyKeysIsTaken(t *testing.T) {
	t.Parallel()
	b, holder := besideBusyKeys(t)
	defer holder.Rollback()
	b.Put("back")
	failed := b.Begin()
	failed.RequireTaken(1, "back")
	parleytest.Until(t, "TAKE begins later with what has no key", func() bool {
		putNumbered(b.Session, 600)
		takeOneByOne(b, 600)
		return keyless(b) > 2000
	})
	b.RequireTaken(1)
	failed.Rollback()
	b.RequireTaken(1, "back")
}

// VACUUM forgets who took a message that came back. Then it looks as if nobody had, and stands before where TAKE begins.
func TestWhatCameBackWithoutAKeyIsTakenWhenItsRowIsFrozen(t *testing.T) {
	t.Parallel()
	b, holder := besideBusyKeys(t)
	b.Put("back")
	failed := b.Begin()
	failed.RequireTaken(1, "back")
	parleytest.Until(t, "TAKE begins later with what has no key", func() bool {
		putNumbered(b.Session, 600)
		takeOneByOne(b, 600)
		return keyless(b) > 2000
	})
	failed.Rollback()
	holder.Commit()
	b.Exec("vacuum (freeze) parley._p_message")
	other := b.Begin()
	defer other.Rollback()
	other.RequireTaken(2, "a:2", "b:2")
	parleytest.Until(t, "the message that came back is taken", func() bool {
		return slices.Equal(b.Take(1), []string{"back"})
	})
}

// TAKE never begins, with what has no key, behind a message whose sender has not committed yet.
func TestTakePastBusyKeysBeginsBehindNothingThatWaits(t *testing.T) {
	t.Parallel()
	b, holder := besideBusyKeys(t)
	defer holder.Rollback()
	sender := b.Begin()
	sender.Put("waits")
	putNumbered(b.Session, 2500)
	takeOneByOne(b, 2500)
	if first := keyless(b); first > 1003 {
		t.Errorf("TAKE begins with message %d", first)
	}
	sender.Commit()
	b.RequireTaken(1, "waits")
}

// A message that is claimed past busy keys is in no other hands, also when the server has forgotten who locked its row.
func TestClaimGetsPastMessagesOfBusyKeys(t *testing.T) {
	t.Parallel()
	b, holder := besideBusyKeys(t)
	b.Put("free 1", "free 2")
	b.PutKeyed("c:1", "c:2")
	for _, want := range []string{"free 1", "free 2", "c:1", ""} {
		sqltest.Equal(b.Session, want, "select coalesce((select parley.body_text(c.body) from parley.claim('jobs') as c), '')")
	}
	holder.Commit()
	b.Exec("vacuum (freeze) parley._p_message")
	other := b.Begin()
	defer other.Rollback()
	other.RequireTaken(2, "a:2", "b:2")
	b.RequireTaken(1)
}
