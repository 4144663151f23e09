package sql_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What has come back is received alone: so a bad message fails with others once, and is the only one that is counted up to the end.
func TestBadMessageAmongManyGroupsIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	for _, groups := range []int{8, 100} {
		t.Run(fmt.Sprint(groups, " groups"), func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.alter_queue('Answering', poison_rollbacks => 3)")
			handles := b.fill(20, 1)
			good := map[string]int{}
			rollbacks := 0
			tx := b.connection()
			for range 200 {
				tx.exec("begin")
				got := tx.many(100, groups)
				if slices.Contains(got, "7/0") {
					rollbacks++
					tx.rollback()
					continue
				}
				for _, body := range got {
					good[body]++
				}
				tx.commit()
				if len(good) == 19 && len(got) == 0 {
					break
				}
			}
			if len(good) != 19 || rollbacks != 3 {
				t.Errorf("%d good messages, %d rollbacks", len(good), rollbacks)
			}
			got := values[string](b.session, "select conversation_handle::text from parley.poison_conversations")
			if !slices.Equal(got, []string{b.farHandle(handles[7])}) {
				t.Errorf("set aside are %q", got)
			}
		})
	}
}

// Behind what has come back the others are received together again, and what is set aside is passed by.
func TestWhatHasComeBackIsReceivedAlone(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.fill(6, 1)
	tx := b.begin()
	tx.requireMany(2, 100, "0/0", "1/0")
	other := b.begin()
	other.requireMany(1, 100, "2/0")
	tx.rollback()
	other.rollback()
	b.requireMany(100, 100, "0/0")
	b.requireMany(100, 100, "1/0")
	b.requireMany(100, 100, "2/0")
	b.requireMany(100, 100, "3/0", "4/0", "5/0")
	b.poison("behind")
	b.fill(3, 1)
	b.requireMany(100, 100, "0/0", "1/0", "2/0")
	b.requireMany(100, 100)
}

func TestQueueIsDisabledByABadMessageAmongManyGroups(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')")
	b.fill(4, 1)
	for range 5 {
		tx := b.begin()
		tx.many(100, 100)
		tx.rollback()
	}
	b.refuses(9617, "select parley.receive('Answering', top => 100, groups => 100)")
}

// A transaction that goes back to a savepoint keeps all groups that it has received from (spec 5.6).
func TestRollbackToASavepointKeepsManyGroups(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.fill(4, 1)
	tx := b.begin()
	tx.exec("savepoint a")
	tx.requireMany(3, 100, "0/0", "1/0", "2/0")
	tx.exec("rollback to a")
	b.requireMany(100, 100, "3/0")
	b.requireMany(100, 100)
	tx.requireMany(100, 100, "0/0")
	tx.commit()
	b.requireMany(100, 100, "1/0")
}

// Nor does it matter which priority comes last, and that nothing was taken there.
func TestRollbackToASavepointKeepsGroupsOfAnyPriority(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_broker_priority('high', '//test/Work', 'ANY', 'ANY', 10)")
	b.fill(2, 1)
	tx := b.begin()
	tx.exec("savepoint a")
	tx.requireMany(100, 100, "0/0", "1/0")
	tx.exec("rollback to a")
	b.requireMany(100, 100)
	equal(b.session, true, "select parley.get_conversation_group('Answering') is null")
	tx.rollback()
	b.requireMany(100, 100, "0/0")
}

func TestOldSnapshotReceivesFromManyGroupsOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.fill(4, 1)
	old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	equal(old, 4, "select count(*) from parley.queue_contents('Answering')")
	b.requireMany(2, 100, "0/0", "1/0")
	_, err := old.db.Exec(t.Context(), "select parley.receive('Answering', 100, groups => 100)")
	if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "40001" {
		t.Errorf("got %v, want a serialization failure", err)
	}
	old.rollback()
	if got := append(b.many(100, 100), b.many(100, 100)...); !slices.Equal(got, []string{"2/0", "3/0"}) {
		t.Errorf("received %q", got)
	}
}

// Readers of many groups side by side, some of which go back to savepoints or roll back: each message once, and those of a conversation in order.
func TestReadersOfManyGroupsSideBySide(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	const conversations, each, readers = 60, 8, 8
	b.exec("select parley.alter_queue('Answering', poison_rollbacks => 15)")
	b.exec("create table received (number bigint generated always as identity, handle uuid, sequence bigint, body text)")
	var senders, all sync.WaitGroup
	senders.Go(func() {
		s := b.unhurried()
		handles := s.fill(conversations, each/2)
		for range each / 2 {
			for _, i := range rand.Perm(conversations) {
				s.send(handles[i], request, "more")
			}
		}
	})
	for reader := range readers {
		all.Go(func() {
			s := b.unhurried()
			random := rand.New(rand.NewPCG(uint64(reader), 1))
			const take = `
				insert into received (handle, sequence, body)
				select conversation_handle, message_sequence_number, parley.body_text(message_body)
				from parley.receive('Answering', top => $1, groups => $2)`
			for value[int](b.session, "select count(*) from received") < conversations*each {
				s.exec("begin")
				switch top, groups := 1+random.IntN(60), 1+random.IntN(30); random.IntN(6) {
				case 0:
					s.exec(take, top, groups)
					s.exec("rollback")
					continue
				case 1:
					s.exec("savepoint a")
					s.exec(take, top, groups)
					s.exec("rollback to a")
					s.exec(take, top, groups)
				case 2:
					for _, group := range s.groups(groups) {
						s.exec("savepoint a")
						s.exec(`
							insert into received (handle, sequence, body)
							select conversation_handle, message_sequence_number, parley.body_text(message_body)
							from parley.receive('Answering', top => $1, conversation_group_id => $2)`, top, group)
						s.exec([]string{"rollback to a", "release a"}[min(random.IntN(4), 1)])
					}
				case 3:
					s.exec(take, top, groups)
					s.exec("savepoint a")
					s.exec(take, top, groups)
				default:
					s.exec(take, top, groups)
				}
				s.exec("commit")
			}
		})
	}
	senders.Wait()
	all.Wait()
	equal(b.session, conversations*each, "select count(*) from received")
	equal(b.session, 0, `
		select count(*)
		from (select sequence, row_number() over (partition by handle order by number) - 1 as place from received) as r
		where r.sequence <> r.place`)
	if found := b.check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}
