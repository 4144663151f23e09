package reliability_test

import (
	"context"
	"testing"
)

const (
	move         = "select parley.move_conversation($1::uuid, $2::uuid)"
	beginInGroup = "select parley.begin_dialog('initiator', 'target', related_conversation_group => $1::uuid)::text"
	aGroup       = "6f1d3c1e-0000-4000-8000-000000000001"
)

func TestDialogsBegunAtOnceInOneNewGroupShareIt(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"commit", "rollback"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			first, second := b.session(t), b.session(t)
			first.begin()
			one := ask[string](first, beginInGroup, aGroup)
			beginning := start(b, second, func() (string, error) { return tryAsk[string](second, beginInGroup, aGroup) })
			beginning.awaitBlocked()
			first.exec(how)
			other := beginning.must()
			if got := b.admin.group(other); got != aGroup {
				t.Errorf("the second dialog is in group %s", got)
			}
			want := 1
			if how == "commit" {
				want = 2
				if got := b.admin.group(one); got != aGroup {
					t.Errorf("the first dialog is in group %s", got)
				}
			}
			if n := ask[int](b.admin, "select count(*) from parley.conversation_endpoints"); n != want {
				t.Errorf("there are %d endpoints, want %d", n, want)
			}
		})
	}
}

func TestMoveWaitsForTheReaderOfEitherGroup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Old", "New"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			_, moved := b.admin.conversation("1")
			_, resident := b.admin.conversation("2")
			group := b.admin.group(resident)
			reader, mover := b.session(t), b.session(t)
			reader.begin()
			held := map[string]string{"Old": moved, "New": resident}[name]
			reader.receive(from{handle: held})
			moving := startTry(b, mover, func() error { return mover.try(move, moved, group) })
			moving.awaitBlocked()
			reader.rollback()
			moving.must()
			wantBodies(t, b.admin.receive(from{group: group}), "1", "2")
		})
	}
}

func TestReaderSkipsBothGroupsOfAMoveAndThenFindsTheConversation(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, moved := b.admin.conversation("1")
	_, resident := b.admin.conversation("2")
	mover, reader := b.session(t), b.session(t)
	mover.begin()
	mover.exec(move, moved, b.admin.group(resident))
	wantBodies(t, reader.receive(from{}))
	mover.commit()
	wantBodies(t, reader.receive(from{}), "1", "2")
}

func TestReaderThatWaitsForAConversationFollowsItsMove(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, moved := b.admin.conversation("1")
	_, resident := b.admin.conversation("2")
	group := b.admin.group(resident)
	mover, reader, other := b.session(t), b.session(t), b.session(t)
	mover.begin()
	mover.exec(move, moved, group)
	reader.begin()
	reading := start(b, reader, func() ([]message, error) { return reader.tryReceive(context.Background(), from{handle: moved}) })
	reading.awaitBlocked()
	mover.commit()
	wantBodies(t, reading.must(), "1")
	other.begin()
	wantBodies(t, other.receive(from{}))
	reader.rollback()
	wantBodies(t, other.receive(from{}), "1", "2")
}

// A statement that waited for the group of a conversation, while that was moved to another group that a reader holds, must wait for the
// reader too; keeps S3, S9.
func TestStatementsFollowAConversationThatMovesToAGroupAReaderHolds(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"End":   "select parley.end_conversation($1::uuid) where $2::uuid is not null",
		"Move":  move,
		"Timer": "select parley.begin_conversation_timer($1::uuid, 3600) where $2::uuid is not null",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			_, last := b.admin.conversation("elsewhere")
			lastGroup := b.admin.group(last)
			// When the move commits, the reader and the statement both go for the group. Mostly the reader is first, as it waits for that group
			// already; when not, the test has shown nothing and is done again.
			for range 20 {
				_, moved := b.admin.conversation("1")
				_, resident := b.admin.conversation("2")
				group := b.admin.group(resident)
				mover, acting, reader := b.session(t), b.session(t), b.session(t)
				mover.begin()
				mover.exec(move, moved, group)
				reader.begin()
				reading := start(b, reader, func() ([]message, error) { return reader.tryReceive(context.Background(), from{group: group}) })
				reading.awaitBlocked()
				waiting := startTry(b, acting, func() error { return acting.try(statement, moved, lastGroup) })
				waiting.awaitBlocked()
				mover.commit()
				got := reading.must()
				if len(got) == 2 && !waiting.isDone() {
					wantBodies(t, got, "1", "2")
					waiting.awaitBlocked()
					reader.rollback()
					waiting.must()
					return
				}
				waiting.must()
				reader.commit()
			}
			t.Error("the statement never waited for the reader")
		})
	}
}
