package conversation_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// makeKeysOld lets the time for which keys count go by.
func makeKeysOld(s sqltest.Session) {
	s.Helper()
	s.Exec("update parley._p_deduplication_key set expires_at = clock_timestamp() - interval '1 second'")
}

func TestBeginDialogWithAKeyIsAnsweredWithTheFirst(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first := sqltest.Value[string](b.Session, sqltest.BeginOnce, "a")
	sqltest.Equal(b.Session, first, sqltest.BeginOnce, "a")
	if first == sqltest.Value[string](b.Session, sqltest.BeginOnce, "b") {
		t.Error("another key gives the same dialog")
	}
	sqltest.Equal(b.Session, first, sqltest.BeginAndSendOnce, "a", "x")
	requireAnswered(b.Session)
	second := sqltest.Value[string](b.Session, sqltest.BeginAndSendOnce, "c", "x")
	sqltest.Equal(b.Session, second, sqltest.BeginAndSendOnce, "c", "other")
	requireAnswered(b.Session, sqltest.Request+" x")
	third := sqltest.Value[string](b.Session, sqltest.SendAndEndOnce, "d", "y")
	sqltest.Equal(b.Session, third, sqltest.SendAndEndOnce, "d", "y")
	requireAnswered(b.Session, sqltest.Request+" y", sqltest.EndDialog+" ")
	makeKeysOld(b.Session)
	if second == sqltest.Value[string](b.Session, sqltest.BeginAndSendOnce, "c", "again") {
		t.Error("a key counts for ever")
	}
	requireAnswered(b.Session, sqltest.Request+" again")
}

func TestSendOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	sqltest.Equal(b.Session, false, sqltest.SendOnce, handle, "a", "k")
	b.Exec("select parley.fire_timers()") // which forgets keys, but none that counts
	sqltest.Equal(b.Session, true, sqltest.SendOnce, handle, "other", "k")
	// Over all conversations of the service.
	sqltest.Equal(b.Session, true, sqltest.SendOnce, b.Dialog(), "a", "k")
	sqltest.Equal(b.Session, true, `
		select s.is_duplicate and s.conversation_handle = $1::uuid and s.message_id = (select max(position) from parley._p_message)
		from parley.send($1::uuid, '//test/Request', 'a', deduplication_key => 'k') as s`, handle)
	requireAnswered(b.Session, sqltest.Request+" a")
	sqltest.Equal(b.Session, true, `
		select s.delayed_id = d.delayed_id
		from parley.send($1::uuid, '//test/Request', 'later', deduplication_key => 'l', deliver_at => clock_timestamp() + interval '1 hour') as s
		cross join lateral (select s.delayed_id from parley.send($1::uuid, '//test/Request', 'later', deduplication_key => 'l') as s) as d`, handle)
	sqltest.Equal(b.Session, 1, "select count(*) from parley.delayed_sends")
	for _, key := range []any{"", strings.Repeat("k", 257)} {
		b.Refuses(8402, sqltest.SendOnce, handle, "x", key)
	}
	// The time is the service's.
	b.Exec("select parley.alter_service('//test/Asker', deduplication_seconds => 7)")
	makeKeysOld(b.Session)
	sqltest.Equal(b.Session, false, sqltest.SendOnce, handle, "again", "k")
	sqltest.Equal(b.Session, 7, "select extract(epoch from expires_at - used_at)::integer from parley._p_deduplication_key where key = 'k'")
	b.Refuses(8402, "select parley.alter_service('//test/Asker', deduplication_seconds => 0)")
	// A key of a dialog is none of a message.
	b.Exec(sqltest.BeginOnce, "of a dialog")
	sqltest.Equal(b.Session, false, sqltest.SendOnce, handle, "a", "of a dialog")
}

func TestPutOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	sqltest.Equal(b.Session, false, sqltest.PutOnce, "a", "k")
	sqltest.Equal(b.Session, true, sqltest.PutOnce, "b", "k")
	id := sqltest.Value[int64](b.Session, "select (parley.put('jobs', 'a'::text, deduplication_key => 'k')).message_id")
	sqltest.Equal(b.Session, id, "select message_id from parley.take('jobs')")
	b.RequireTaken(1)
	b.Exec("select parley.put('jobs', 'later'::text, deduplication_key => 'l', deliver_at => now() + interval '1 hour')")
	sqltest.Equal(b.Session, true, `
		select s.is_duplicate and s.delayed_id = d.delayed_id
		from parley.put('jobs', 'later'::text, deduplication_key => 'l') as s, parley.delayed_messages as d`)
	b.Exec("select parley.alter_queue('jobs', deduplication_seconds => 60)")
	sqltest.Equal(b.Session, 60, "select deduplication_seconds from parley.service_queues where name = 'jobs'")
	makeKeysOld(b.Session)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_deduplication_key")
	sqltest.Equal(b.Session, false, sqltest.PutOnce, "c", "k")
	b.RequireTaken(1, "c")
}

// The second of two with a key waits for the first, and acts itself when the first did not.
func TestKeyIsUsedByTwoSessionsAtOnce(t *testing.T) {
	t.Parallel()
	for _, commits := range []bool{true, false} {
		b := sqltest.NewJobs(t)
		first := b.Begin()
		sqltest.Equal(first, false, sqltest.PutOnce, "first", "k")
		second := b.Connection()
		answer := make(chan bool, 1)
		go func() {
			answer <- sqltest.Value[bool](second, sqltest.PutOnce, "second", "k")
		}()
		b.WaitUntil("select exists (select from pg_stat_activity where wait_event = 'transactionid' and datname = current_database())")
		want := "first"
		if commits {
			first.Commit()
		} else {
			first.Rollback()
			want = "second"
		}
		if duplicate := <-answer; duplicate != commits {
			t.Errorf("commits %v: the second is a duplicate: %v", commits, duplicate)
		}
		b.RequireTaken(2, want)
	}
}

func TestKeyAtRepeatableReadIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.Exec("select 1 from parley.simple_queues")
	sqltest.Equal(b.Session, false, sqltest.PutOnce, "a", "k")
	if _, err := old.DB.Exec(t.Context(), sqltest.PutOnce, "b", "k"); err == nil {
		t.Error("an old snapshot puts again")
	}
	old.Rollback()
	b.RequireTaken(2, "a")
}

func TestKeysAreOfThoseWhoMaySend(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	handle := b.Dialog()
	b.Exec(sqltest.BeginOnce, "k")
	b.Exec(sqltest.SendOnce, handle, "x", "k")
	b.Exec(sqltest.PutOnce, "x", "k")
	outsider := b.As(b.Role("outsider"))
	for _, key := range []string{"k", "unused"} {
		outsider.Refuses(229, sqltest.BeginOnce, key)
		outsider.Refuses(229, sqltest.BeginAndSendOnce, key, "x")
		outsider.Refuses(229, sqltest.SendAndEndOnce, key, "x")
		outsider.Refuses(229, sqltest.SendOnce, handle, "x", key)
		outsider.Refuses(229, sqltest.PutOnce, "x", key)
	}
}

func TestDeduplicationKeysAreShownToWhoMayReceive(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.put('jobs', 'a'::text, deduplication_key => 'k')")
	b.Exec("select parley.put('jobs', 'a'::text, deduplication_key => 'k')")
	const shown = "select count(*) from parley.deduplication_keys where queue_name = 'jobs' and service_name is null and action = 'PUT' and key = 'k'"
	sqltest.Equal(b.Session, 1, shown+" and message_id is not null and expires_at > used_at")
	outsider := b.As(b.Role("outsider"))
	sqltest.Equal(outsider, 0, shown)
	makeKeysOld(b.Session)
	sqltest.Equal(b.Session, 0, shown)
}
