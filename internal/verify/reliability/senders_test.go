package reliability_test

import (
	"testing"
)

func TestSenderIsNotBlockedByAReader(t *testing.T) {
	t.Parallel()
	for name, queue := range map[string]string{"OfTheFarSide": "target_queue", "OfItsOwnSide": "initiator_queue"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			initiator, target := b.admin.conversation("1")
			b.admin.send(target, "answer 1")
			reader, sender := b.session(t), b.session(t)
			reader.begin()
			if got := reader.receive(from{queue: queue}); len(got) != 1 {
				t.Fatalf("received %q", bodies(got))
			}
			sender.send(initiator, "2")
			sender.exec("select parley.send_batch($1::uuid, 'DEFAULT', array['3', '4'])", initiator)
			reader.rollback()
			wantBodies(t, b.admin.receive(from{}), "1", "2", "3", "4")
		})
	}
}

func TestSendersOfOneConversationDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, _ := b.admin.conversation("0")
	first, second := b.session(t), b.session(t)
	first.begin()
	first.send(initiator, "1")
	second.begin()
	second.send(initiator, "2")
	second.commit()
	wantBodies(t, b.admin.receive(from{}), "0", "2")
	first.commit()
	wantBodies(t, b.admin.receive(from{}), "1")
}

// Only one of them opens the target's side; keeps S3.
func TestFirstSendsAtOnceMakeOneTarget(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		how  string
		want []string
	}{
		"Commit":   {"commit", []string{"1", "2"}},
		"Rollback": {"rollback", []string{"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			initiator := b.admin.dialog()
			first, second := b.session(t), b.session(t)
			first.begin()
			first.send(initiator, "1")
			sending := startTry(b, second, func() error { return second.trySend(initiator, "2") })
			sending.awaitBlocked()
			first.exec(ends.how)
			sending.must()
			wantBodies(t, b.admin.receive(from{}), ends.want...)
			if n := ask[int](b.admin, "select count(*) from parley.conversation_endpoints"); n != 2 {
				t.Errorf("there are %d endpoints, want 2", n)
			}
		})
	}
}

func TestSendsOnSeveralConversationsAtOnceDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	one, other := b.admin.dialog(), b.admin.dialog()
	first, second := b.session(t), b.session(t)
	first.begin()
	const send = "select parley.send_to_all(array[$1, $2]::uuid[], 'DEFAULT', $3::text)"
	first.exec(send, one, other, "1")
	sending := startTry(b, second, func() error { return second.try(send, other, one, "2") })
	sending.awaitBlocked()
	first.commit()
	sending.must()
	if n := ask[int](b.admin, "select count(*) from parley_queue.target_queue"); n != 4 {
		t.Errorf("%d messages arrived, want 4", n)
	}
}

// Messages sent before the target exists go first, also when the sender commits only after the target was created; keeps S4.
func TestMessagesSentWhileTheTargetIsCreatedKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	handle := ask[string](b.admin, "select parley.begin_dialog('initiator', 'late target', allow_unknown_target => true)::text")
	sender := b.session(t)
	sender.begin()
	sender.send(handle, "1")
	b.admin.exec("select parley.create_service('late target', 'target_queue', '{DEFAULT}')")
	sender.commit()
	sender.send(handle, "2")
	b.admin.exec("select parley.fire_timers()")
	wantBodies(t, b.admin.receive(from{}), "1", "2")
}
