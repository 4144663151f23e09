package reliability_test

import "testing"

// Keeps S2, S11.
func TestEndWaitsForSendersInFlightAndComesAfterTheirMessages(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, target := b.admin.conversation("1")
	sender, ender := b.session(t), b.session(t)
	sender.begin()
	sender.send(initiator, "2")
	ending := startTry(b, ender, func() error { return ender.tryEnd(initiator) })
	ending.awaitBlocked()
	sender.send(initiator, "3")
	sender.commit()
	ending.must()
	got := b.admin.receive(from{})
	wantBodies(t, got, "1", "2", "3", "")
	if got[3].Type != typeEndDialog {
		t.Errorf("the last message is of type %s", got[3].Type)
	}
	b.admin.end(target)
	b.wantNothingLeft(t)
}

// Keeps S11.
func TestSendThatWaitsForEndIsRefused(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, _ := b.admin.conversation("1")
	sender, ender := b.session(t), b.session(t)
	ender.begin()
	ender.end(initiator)
	sending := startTry(b, sender, func() error { return sender.trySend(initiator, "2") })
	sending.awaitBlocked()
	ender.commit()
	if _, err := sending.result(); code(err) != broker(8429) {
		t.Errorf("got %v, want error 8429", err)
	}
	if got := b.admin.receive(from{}); len(got) != 2 || got[1].Type != typeEndDialog {
		t.Errorf("received %+v, want one message and the end", got)
	}
}

func TestSendThatWaitsForAnEndThatIsRolledBackIsDelivered(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, _ := b.admin.conversation("1")
	sender, ender := b.session(t), b.session(t)
	ender.begin()
	ender.end(initiator)
	sending := startTry(b, sender, func() error { return sender.trySend(initiator, "2") })
	sending.awaitBlocked()
	ender.rollback()
	sending.must()
	wantBodies(t, b.admin.receive(from{}), "1", "2")
}

func TestBothSidesMayEndAtOnce(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"InitiatorFirst": true, "TargetFirst": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			one, other := b.admin.conversation("1")
			if !first {
				one, other = other, one
			}
			firstEnder, secondEnder := b.session(t), b.session(t)
			firstEnder.begin()
			firstEnder.end(one)
			ending := startTry(b, secondEnder, func() error { return secondEnder.tryEnd(other) })
			ending.awaitBlocked()
			firstEnder.commit()
			ending.must()
			b.wantNothingLeft(t)
		})
	}
}

// Each holds its own group, as a reader does that has received and now ends.
func TestBothReadersMayEndAtOnce(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, target := b.admin.conversation("question")
	b.admin.send(target, "answer")
	atTarget, atInitiator := b.session(t), b.session(t)
	atTarget.begin()
	wantBodies(t, atTarget.receive(from{}), "question")
	atInitiator.begin()
	wantBodies(t, atInitiator.receive(from{queue: "initiator_queue"}), "answer")
	atTarget.end(target)
	ending := startTry(b, atInitiator, func() error { return atInitiator.tryEnd(initiator) })
	ending.awaitBlocked()
	atTarget.commit()
	ending.must()
	atInitiator.commit()
	b.wantNothingLeft(t)
}

func TestEndWaitsForTheReaderOfItsOwnSide(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	_, target := b.admin.conversation("1")
	reader, ender := b.session(t), b.session(t)
	reader.begin()
	reader.receive(from{})
	ending := startTry(b, ender, func() error { return ender.tryEnd(target) })
	ending.awaitBlocked()
	reader.commit()
	ending.must()
}

func TestEndDoesNotWaitForTheReaderOfTheOtherSide(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, target := b.admin.conversation("1")
	reader := b.session(t)
	reader.begin()
	wantBodies(t, reader.receive(from{}), "1")
	b.admin.end(initiator)
	got := reader.receive(from{})
	if len(got) != 1 || got[0].Type != typeEndDialog {
		t.Errorf("received %+v, want the end", got)
	}
	reader.end(target)
	reader.commit()
	b.wantNothingLeft(t)
}

// A message that is under way to a side that ends at the same time is acknowledged and thrown away (spec 3.2), and leaves nothing behind.
func TestMessageUnderWayToASideThatEndsVanishes(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, target := b.admin.conversation("1")
	sender := b.session(t)
	sender.begin()
	sender.send(initiator, "2")
	b.admin.end(target)
	sender.commit()
	wantBodies(t, b.admin.receive(from{}))
	if got := b.admin.receive(from{queue: "initiator_queue"}); len(got) != 1 || got[0].Type != typeEndDialog {
		t.Errorf("received %+v, want the end", got)
	}
	b.admin.end(initiator)
	b.wantNothingLeft(t)
}

// Keeps S2: the group of a side that ended long ago may get a new dialog while the other side ends too.
func TestDialogBegunInAGroupThatIsAboutToVanishIsReachable(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator, target := b.admin.conversation("1")
	group := b.admin.group(target)
	// The conversation is known to share its group already, so that the second dialog has no reason to touch it.
	b.admin.end(ask[string](b.admin, beginRelated, group))
	b.admin.end(target)
	beginner, ender := b.session(t), b.session(t)
	beginner.begin()
	related := ask[string](beginner, beginRelated, group)
	beginner.send(related, "question")
	ending := startTry(b, ender, func() error { return ender.tryEnd(initiator) })
	b.await(t, func() bool { return b.isBlocked(t, ender.pid) || ending.isDone() })
	beginner.commit()
	ending.must()
	b.admin.receive(from{queue: "initiator_queue"})
	b.admin.send(b.admin.far(related), "answer")
	if got := b.admin.group(related); got != group {
		t.Errorf("the dialog is in group %s, want %s", got, group)
	}
	wantBodies(t, b.admin.receive(from{}), "answer")
}

const beginRelated = "select parley.begin_dialog('target', 'initiator', related_conversation_group => $1::uuid)::text"

// wantNothingLeft checks that closed conversations are gone with all they had, but for the tombstones of targets.
func (b *fixture) wantNothingLeft(t testing.TB) {
	t.Helper()
	for _, table := range []string{
		"_p_endpoint", "_p_conversation_group", "_p_message", "_p_receive_progress", "_p_transmission", "_p_alarm", "_p_retained",
	} {
		if n := ask[int](b.admin, "select count(*) from parley."+table); n != 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}
