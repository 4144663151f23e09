package receive_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A message that has come back is received alone: so a bad message fails with others once, and is the only one that is counted up to the
// end.
func TestBadMessageAmongManyGroupsIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	for _, groups := range []int{8, 100} {
		t.Run(fmt.Sprint(groups, " groups"), func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 3)")
			handles := b.Fill(20, 1)
			good := map[string]int{}
			rollbacks := 0
			tx := b.Connection()
			for range 200 {
				tx.Exec("begin")
				got := many(tx, 100, groups)
				if slices.Contains(got, "7/0") {
					rollbacks++
					tx.Rollback()
					continue
				}
				for _, body := range got {
					good[body]++
				}
				tx.Commit()
				if len(good) == 19 && len(got) == 0 {
					break
				}
			}
			if len(good) != 19 || rollbacks != 3 {
				t.Errorf("%d good messages, %d rollbacks", len(good), rollbacks)
			}
			got := sqltest.Values[string](b.Session, "select conversation_handle::text from parley.poison_conversations")
			if !slices.Equal(got, []string{b.FarHandle(handles[7])}) {
				t.Errorf("set aside are %q", got)
			}
		})
	}
}

// Behind what has come back the others are received together again, and what is set aside is passed by.
func TestWhatHasComeBackIsReceivedAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Fill(6, 1)
	tx := b.Begin()
	requireMany(tx, 2, 100, "0/0", "1/0")
	other := b.Begin()
	requireMany(other, 1, 100, "2/0")
	tx.Rollback()
	other.Rollback()
	requireMany(b.Session, 100, 100, "0/0")
	requireMany(b.Session, 100, 100, "1/0")
	requireMany(b.Session, 100, 100, "2/0")
	requireMany(b.Session, 100, 100, "3/0", "4/0", "5/0")
	b.Poison("behind")
	b.Fill(3, 1)
	requireMany(b.Session, 100, 100, "0/0", "1/0", "2/0")
	requireMany(b.Session, 100, 100)
}

func TestQueueIsDisabledByABadMessageAmongManyGroups(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
	b.Fill(4, 1)
	for range 5 {
		tx := b.Begin()
		many(tx, 100, 100)
		tx.Rollback()
	}
	b.Refuses(9617, "select parley.receive('Answering', top => 100, groups => 100)")
}

// A transaction that goes back to a savepoint keeps all groups that it has received from (spec 5.6).
func TestRollbackToASavepointKeepsManyGroups(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Fill(4, 1)
	tx := b.Begin()
	tx.Exec("savepoint a")
	requireMany(tx, 3, 100, "0/0", "1/0", "2/0")
	tx.Exec("rollback to a")
	requireMany(b.Session, 100, 100, "3/0")
	requireMany(b.Session, 100, 100)
	requireMany(tx, 100, 100, "0/0")
	tx.Commit()
	requireMany(b.Session, 100, 100, "1/0")
}

// Nor does it matter which priority comes last, and that nothing was taken there.
func TestRollbackToASavepointKeepsGroupsOfAnyPriority(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_broker_priority('high', '//test/Work', 'ANY', 'ANY', 10)")
	b.Fill(2, 1)
	tx := b.Begin()
	tx.Exec("savepoint a")
	requireMany(tx, 100, 100, "0/0", "1/0")
	tx.Exec("rollback to a")
	requireMany(b.Session, 100, 100)
	sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering') is null")
	tx.Rollback()
	requireMany(b.Session, 100, 100, "0/0")
}

func TestOldSnapshotReceivesFromManyGroupsOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Fill(4, 1)
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	sqltest.Equal(old, 4, "select count(*) from parley.queue_contents('Answering')")
	requireMany(b.Session, 2, 100, "0/0", "1/0")
	_, err := old.DB.Exec(t.Context(), "select parley.receive('Answering', 100, groups => 100)")
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "40001" {
		t.Errorf("got %v, want a serialization failure", err)
	}
	old.Rollback()
	if got := append(many(b.Session, 100, 100), many(b.Session, 100, 100)...); !slices.Equal(got, []string{"2/0", "3/0"}) {
		t.Errorf("received %q", got)
	}
}

// Readers of many groups side by side, some of which go back to savepoints or roll back: each message once, and those of a conversation in order.
func TestReadersOfManyGroupsSideBySide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const conversations, each, readers = 60, 8, 8
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 15)")
	b.Exec("create table received (number bigint generated always as identity, handle uuid, sequence bigint, body text)")
	var senders, all sync.WaitGroup
	senders.Go(func() {
		s := b.Unhurried()
		handles := s.Fill(conversations, each/2)
		for range each / 2 {
			for _, i := range rand.Perm(conversations) {
				s.Send(handles[i], sqltest.Request, "more")
			}
		}
	})
	for reader := range readers {
		all.Go(func() {
			s := b.Unhurried()
			random := rand.New(rand.NewPCG(uint64(reader), 1))
			const take = `
				insert into received (handle, sequence, body)
				select conversation_handle, message_sequence_number, parley.body_text(message_body)
				from parley.receive('Answering', top => $1, groups => $2)`
			for sqltest.Value[int](b.Session, "select count(*) from received") < conversations*each {
				s.Exec("begin")
				switch top, groups := 1+random.IntN(60), 1+random.IntN(30); random.IntN(6) {
				case 0:
					s.Exec(take, top, groups)
					s.Exec("rollback")
					continue
				case 1:
					s.Exec("savepoint a")
					s.Exec(take, top, groups)
					s.Exec("rollback to a")
					s.Exec(take, top, groups)
				case 2:
					for _, group := range lockGroups(s, groups) {
						s.Exec("savepoint a")
						s.Exec(`
							insert into received (handle, sequence, body)
							select conversation_handle, message_sequence_number, parley.body_text(message_body)
							from parley.receive('Answering', top => $1, conversation_group_id => $2)`, top, group)
						s.Exec([]string{"rollback to a", "release a"}[min(random.IntN(4), 1)])
					}
				case 3:
					s.Exec(take, top, groups)
					s.Exec("savepoint a")
					s.Exec(take, top, groups)
				default:
					s.Exec(take, top, groups)
				}
				s.Exec("commit")
			}
		})
	}
	senders.Wait()
	all.Wait()
	sqltest.Equal(b.Session, conversations*each, "select count(*) from received")
	sqltest.Equal(b.Session, 0, `
		select count(*)
		from (select sequence, row_number() over (partition by handle order by number) - 1 as place from received) as r
		where r.sequence <> r.place`)
	if found := b.Check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}
