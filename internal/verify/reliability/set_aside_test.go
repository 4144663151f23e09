package reliability_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// failUntilSetAside receives the poison that stands first as often as it takes until its conversation is set aside, and rolls back.
func (b *fixture) failUntilSetAside(t testing.TB, body string) {
	t.Helper()
	s := b.session(t)
	for range 5 {
		s.begin()
		wantBodies(t, s.receive(from{top: 1}), body)
		s.rollback()
	}
}

// setAside returns the handles of conversations that are set aside, with rollbacks and waiting messages.
func (b *fixture) setAside(t testing.TB) []string {
	t.Helper()
	return ask[[]string](b.admin, `
		select coalesce(array_agg(format('%s %s %s', conversation_handle, rollbacks, waiting_messages) order by set_aside_since), '{}')
		from parley.poison_conversations`)
}

func (b *fixture) wantSetAside(t testing.TB, want ...string) {
	t.Helper()
	if got := b.setAside(t); !slices.Equal(got, want) {
		t.Fatalf("set aside: %q, want %q", got, want)
	}
}

// Keeps S8, S15.
func TestFifthFailureSetsTheConversationAsideAndOthersGoOn(t *testing.T) {
	t.Parallel()
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			_, poison := b.admin.conversation("poison", "after")
			b.admin.conversation("fine")
			b.failToReceive(t, 5, "poison", fail)
			wantBodies(t, b.admin.receive(from{}), "fine")
			b.wantSetAside(t, poison+" 5 2")
			wantBodies(t, b.admin.receive(from{}))
		})
	}
}

func TestNumberOfRollbacksThatSetAsideIsASetting(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2, 15} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.admin.exec("select parley.alter_queue('target_queue', poison_rollbacks => $1)", limit)
			_, poison := b.admin.conversation("poison")
			b.failToReceive(t, limit, "poison", failures["Rollback"])
			wantBodies(t, b.admin.receive(from{}))
			b.wantSetAside(t, fmt.Sprint(poison, " ", limit, " 1"))
		})
	}
}

// The reader that sets aside may fail as well; then another does it.
func TestConversationIsSetAsideAgainWhenThatWasRolledBack(t *testing.T) {
	t.Parallel()
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			_, poison := b.admin.conversation("poison", "after")
			b.admin.conversation("fine")
			b.failUntilSetAside(t, "poison")
			b.failToReceive(t, 3, "fine", fail)
			b.wantSetAside(t)
			wantBodies(t, b.admin.receive(from{}), "fine")
			b.wantSetAside(t, poison+" 5 2")
		})
	}
}

func TestRetryPutsBackInOrderAndForgetsTheCount(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, poison := b.admin.conversation("0", "1", "2")
	b.failUntilSetAside(t, "0")
	wantBodies(t, b.admin.receive(from{}))
	b.admin.send(initiator, "3")
	wantBodies(t, b.admin.receive(from{}))
	b.admin.send(initiator, "4")
	if n := ask[int](b.admin, "select parley.retry_poison($1::uuid)", poison); n != 5 {
		t.Errorf("%d messages were put back, want 5", n)
	}
	b.wantSetAside(t)
	b.admin.send(initiator, "5")
	b.failToReceive(t, 4, "0", failures["Rollback"])
	got := b.admin.receive(from{})
	wantBodies(t, got, "0", "1", "2", "3", "4", "5")
	for i, m := range got {
		if m.Sequence != int64(i) {
			t.Errorf("message %d has number %d", i, m.Sequence)
		}
	}
	// It is a conversation like any other again.
	if !ask[bool](b.admin, "select is_plain from parley._p_endpoint where conversation_handle = $1::uuid", poison) {
		t.Error("the conversation takes the long way for ever")
	}
}

// A sender that has sent and not committed keeps its place.
func TestRetryWaitsForSendersThatAreUnderWay(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, poison := b.admin.conversation("0")
	b.failUntilSetAside(t, "0")
	wantBodies(t, b.admin.receive(from{}))
	early, late := b.session(t), b.session(t)
	early.begin()
	early.send(initiator, "1")
	operator := b.session(t)
	operator.begin()
	retry := startTry(b, operator, func() error { return operator.try("select parley.retry_poison($1::uuid)", poison) })
	retry.awaitBlocked()
	early.commit()
	retry.must()
	sending := startTry(b, late, func() error { return late.trySend(initiator, "2") })
	sending.awaitBlocked()
	operator.commit()
	sending.must()
	wantBodies(t, b.admin.receive(from{}), "0", "1", "2")
}

func TestSendersNoticeNothingOfSettingAside(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, poison := b.admin.conversation("0")
	b.admin.conversation("fine")
	b.failUntilSetAside(t, "0")
	reader, sender := b.session(t), b.session(t)
	sender.exec("set lock_timeout = '5s'")
	reader.begin()
	wantBodies(t, reader.receive(from{}), "fine")
	sender.send(initiator, "1")
	reader.commit()
	sender.send(initiator, "2")
	sender.exec("select parley.send_batch($1::uuid, 'DEFAULT', '{3,4}'::text[])", initiator)
	b.wantSetAside(t, poison+" 5 5")
	wantBodies(t, b.admin.receive(from{}))
	b.admin.exec("select parley.retry_poison($1::uuid)", poison)
	wantBodies(t, b.admin.receive(from{}), "0", "1", "2", "3", "4")
}

// Readers that commit what they can handle, and roll back all else, get through whatever number of poisonous messages stands in front.
func TestManyPoisonConversationsAtOnceAreAllSetAside(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*fixture, *session){
		"ReadersCommitAnEmptyReceive": func(_ *fixture, s *session) { s.commit() },
		"ReadersRollBackAnEmptyReceive": func(b *fixture, s *session) {
			s.rollback()
			b.admin.exec("select parley.fire_timers()")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			const poisonous, fine = 7, 3
			order := rand.Perm(poisonous + fine)
			for _, i := range order {
				b.admin.conversation(map[bool]string{true: "poison", false: "fine"}[i < poisonous])
			}
			s := b.session(t)
			handled, rounds := 0, 0
			for len(b.setAside(t)) < poisonous || handled < fine {
				if rounds++; rounds > 20*poisonous {
					t.Fatalf("order %v: after %d rounds %d are handled, set aside %q", order, rounds, handled, b.setAside(t))
				}
				s.begin()
				switch got := bodies(s.receive(from{top: 1})); {
				case len(got) == 0:
					leave(b, s)
				case got[0] == "fine":
					handled++
					s.commit()
				default:
					s.rollback()
				}
			}
			if handled != fine {
				t.Errorf("%d of %d were handled", handled, fine)
			}
		})
	}
}

func TestTwoReadersAndAPoisonConversation(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, poison := b.admin.conversation("poison")
	const fine = 40
	for i := range fine {
		b.admin.conversation(fmt.Sprint(i))
	}
	seen := make(chan string, 1000)
	var readers []*running[struct{}]
	for range 2 {
		s := b.session(t)
		readers = append(readers, startTry(b, s, func() error {
			for {
				if err := s.try("begin"); err != nil {
					return err
				}
				got, err := s.tryReceive(context.Background(), from{top: 1, timeout: 300})
				if err != nil {
					return err
				}
				end := "commit"
				if len(got) > 0 {
					seen <- got[0].Body
					if got[0].Body == "poison" {
						end = "rollback"
					}
				}
				if err := s.try(end); err != nil || len(got) == 0 {
					return err
				}
			}
		}))
	}
	for _, r := range readers {
		r.must()
	}
	close(seen)
	counts := map[string]int{}
	for body := range seen {
		counts[body]++
	}
	if len(counts) != fine+1 || counts["poison"] != 5 {
		t.Errorf("%d different messages were received, poison %d times: %v", len(counts), counts["poison"], counts)
	}
	b.wantSetAside(t, poison+" 5 1")
}

// Other conversations of a group that has one set aside are received.
func TestGroupGoesOnWithoutTheConversationThatIsSetAside(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, poison := b.admin.conversation("poison")
	other, fine := b.admin.conversation("fine")
	b.admin.exec("select parley.move_conversation($1::uuid, $2::uuid)", fine, b.admin.group(poison))
	b.failUntilSetAside(t, "poison")
	wantBodies(t, b.admin.receive(from{}), "fine")
	b.wantSetAside(t, poison+" 5 1")
	b.admin.send(other, "finer")
	group := ask[string](b.admin, "select parley.get_conversation_group('target_queue')::text")
	if group != b.admin.group(poison) {
		t.Errorf("got group %q", group)
	}
	wantBodies(t, b.admin.receive(from{group: group}), "finer")
	wantBodies(t, b.admin.receive(from{group: group}))
	wantBodies(t, b.admin.receive(from{handle: poison}))
	if !ask[bool](b.admin, "select parley.get_conversation_group('target_queue') is null") {
		t.Error("a group with nothing but what is set aside was given out")
	}
	b.admin.exec("select parley.retry_poison($1::uuid)", poison)
	wantBodies(t, b.admin.receive(from{}), "poison")
}

func (s *session) rowsVisited() int64 {
	s.t.Helper()
	return ask[int64](s, "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where schemaname = 'parley' and relname = '_p_message'")
}

// The rest of the backlog after setting aside costs a reader some hundreds of rows at most, and is passed by.
func TestBacklogOfAPoisonConversationDoesNotSlowOthers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it sends 100,000 messages")
	}
	b := newFixture(t)
	initiator, poison := b.admin.conversation("0")
	const backlog, others = 100_000, 400
	b.admin.exec(`
		insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
		select nextval(q.position_sequence) * 1024, e.endpoint_id, clock_timestamp(), parley._p_lane(q.queue_id, 5), 14, convert_to(n::text, 'UTF8')
		from parley._p_queue as q, parley._p_endpoint as e, generate_series(1, $1::int) as n
		where q.lookup_name = 'target_queue' and e.conversation_handle = $2::uuid`, backlog-1, poison)
	b.admin.exec("analyze parley._p_message")
	for i := range others {
		b.admin.conversation(fmt.Sprint("other ", i))
	}
	b.failUntilSetAside(t, "0")
	reader := b.session(t)
	var visited, walks int64
	for i := range others {
		reader.begin()
		// The server does not report what it has not added up yet.
		before := reader.rowsVisited()
		wantBodies(t, reader.receive(from{top: 1}), fmt.Sprint("other ", i))
		rows := reader.rowsVisited() - before
		reader.commit()
		visited += rows
		if rows > 5_000 {
			walks++
		}
	}
	t.Logf("%d rows visited by %d readers, %d of them walked", visited, others, walks)
	if walks > 4 || visited > 6*backlog {
		t.Errorf("%d rows were visited by %d readers, %d of them walked over what is set aside", visited, others, walks)
	}
	b.wantSetAside(t, poison+" 5 10000")
	wantBodies(t, b.admin.receive(from{}))
	if n := ask[int](b.admin, "select parley.retry_poison($1::uuid)", poison); n != backlog {
		t.Errorf("%d messages were put back, want %d", n, backlog)
	}
	b.admin.send(initiator, "last")
	if !ask[bool](b.admin, `
		select count(*) = $1 + 1 and bool_and(message_sequence_number = number) and bool_and(message_body = convert_to(
				case when number = $1 then 'last' else number::text end, 'UTF8'))
		from (select *, row_number() over () - 1 as number from parley.receive('target_queue')) as r`, backlog) {
		t.Error("the order was not kept")
	}
}
