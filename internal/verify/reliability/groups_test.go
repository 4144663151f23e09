package reliability_test

import (
	"context"
	"fmt"
	"testing"
)

// Keeps S9.
func TestTwoReceiversNeverHoldOneGroup(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.admin.conversation("a1", "a2")
	b.admin.conversation("b1")
	first, second, third := b.session(t), b.session(t), b.session(t)
	first.begin()
	wantBodies(t, first.receive(from{top: 1}), "a1")
	second.begin()
	wantBodies(t, second.receive(from{}), "b1")
	third.begin()
	wantBodies(t, third.receive(from{}))
	first.commit()
	wantBodies(t, third.receive(from{}), "a2")
}

func TestLockedGroupIsSkipped(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"ByReceive":              "select parley.receive('target_queue', top => 1)",
		"ByGetConversationGroup": "select parley.get_conversation_group('target_queue')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.admin.conversation(many(beyondFirstScan)...)
			b.admin.conversation("free")
			holder, reader := b.session(t), b.session(t)
			holder.begin()
			holder.exec(lock)
			wantBodies(t, reader.receive(from{}), "free")
			wantBodies(t, reader.receive(from{}))
		})
	}
}

func TestNamedGroupIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		how  string
		want []string
	}{
		"UntilCommit":   {"commit", []string{"2", "3"}},
		"UntilRollback": {"rollback", []string{"1", "2", "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			_, target := b.admin.conversation("1", "2", "3")
			holder, reader := b.session(t), b.session(t)
			holder.begin()
			wantBodies(t, holder.receive(from{top: 1}), "1")
			group := b.admin.group(target)
			waiting := start(b, reader, func() ([]message, error) { return reader.tryReceive(context.Background(), from{group: group}) })
			waiting.awaitBlocked()
			holder.exec(ends.how)
			wantBodies(t, waiting.must(), ends.want...)
		})
	}
}

func TestNamedConversationIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, target := b.admin.conversation("1", "2")
	holder, reader := b.session(t), b.session(t)
	holder.begin()
	holder.receive(from{top: 1})
	waiting := start(b, reader, func() ([]message, error) { return reader.tryReceive(context.Background(), from{handle: target}) })
	waiting.awaitBlocked()
	holder.rollback()
	wantBodies(t, waiting.must(), "1", "2")
}

// A group that was found locked is remembered; when several of those are free again, a reader takes one and leaves the others.
func TestReceiveLocksOnlyTheGroupItReturns(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	const groups = 5
	for range groups {
		b.admin.conversation(many(beyondFirstScan)...)
	}
	holders := b.lockGroups(t, groups)
	b.passBy(t, 600)
	for _, h := range holders {
		h.rollback()
	}
	for i := range groups {
		reader := b.session(t)
		reader.begin()
		if got := reader.receive(from{}); len(got) != beyondFirstScan {
			t.Fatalf("reader %d of %d received %d messages while %d groups are free", i, groups, len(got), groups-i)
		}
	}
}

// Keeps S10.
func TestGroupsThatWereLockedComeBackInTheirOrder(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	// The group that is older has the later message.
	older, _ := b.admin.conversation("opening older")
	younger, _ := b.admin.conversation("opening younger")
	b.admin.receive(from{})
	b.admin.receive(from{})
	b.admin.send(younger, "first")
	b.admin.send(older, "second")
	for range beyondFirstScan {
		b.admin.send(older, "more")
	}
	holders := b.lockGroups(t, 2)
	b.passBy(t, 600)
	for _, h := range holders {
		h.rollback()
	}
	wantBodies(t, b.admin.receive(from{}), "first")
	wantBodies(t, b.admin.receive(from{top: 1}), "second")
}

// The messages of a locked group wait; that readers pass them by for long must not make them unreachable.
func TestMessagesOfALockedGroupAreThereWhenItIsFree(t *testing.T) {
	t.Parallel()
	for how, lock := range map[string]string{
		"GetConversationGroup": "select parley.get_conversation_group('target_queue') where $1::uuid is not null",
		"Timer":                "select parley.begin_conversation_timer($1::uuid, 3600)",
		"RelatedDialog":        "select parley.begin_dialog('target', 'initiator', related_conversation => $1::uuid)",
	} {
		for _, count := range []int{1, beyondFirstScan} {
			t.Run(fmt.Sprint(how, count), func(t *testing.T) {
				t.Parallel()
				b := newFixture(t)
				b.passBy(t, 300)
				_, target := b.admin.conversation(many(count)...)
				holder := b.session(t)
				holder.begin()
				holder.exec(lock, target)
				b.passBy(t, 600)
				holder.rollback()
				wantBodies(t, b.admin.receive(from{}), many(count)...)
			})
		}
	}
}

// beyondFirstScan is more messages than a reader reads before it scans with a hint.
const beyondFirstScan = 50

// many gives n bodies.
func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("message ", i)
	}
	return out
}

// lockGroups locks the next n groups of the target's queue, each by a session of its own, and leaves their messages.
func (b *fixture) lockGroups(t testing.TB, n int) []*session {
	t.Helper()
	holders := make([]*session, n)
	for i := range holders {
		holders[i] = b.session(t)
		holders[i].begin()
		if ask[*string](holders[i], "select parley.get_conversation_group('target_queue')::text") == nil {
			t.Fatalf("there are less than %d groups to lock", n)
		}
	}
	return holders
}

// passBy lets messages of another conversation through the target's queue, one by one, so that readers record how far they have got.
func (b *fixture) passBy(t testing.TB, n int) {
	t.Helper()
	s := b.session(t)
	s.exec("set synchronous_commit = off")
	s.exec("create temporary table passing as select parley.begin_dialog('initiator', 'target') as handle")
	s.exec(fmt.Sprintf(`do $$
		declare
			v_handle uuid := (select handle from passing);
			v_body bytea;
		begin
			for i in 1 .. %d loop
				perform parley.send(v_handle, 'DEFAULT', i::text);
				commit;
				select r.message_body into v_body from parley.receive('target_queue', top => 1) as r;
				if v_body is distinct from convert_to(i::text, 'UTF8') then
					raise 'received %% instead of %%', v_body, i;
				end if;
				commit;
			end loop;
		end $$`, n))
}
