package sql_test

import (
	"strconv"
	"testing"
)

const blockedHints = "select count(*) from parley._p_scan_hint where cardinality(blocked_endpoints) > 0"

// besideAHolder gives a queue in which a reader holds the group of a conversation with some messages, each a row, in front of another's; and
// the handle of a third one, without any.
func besideAHolder(t *testing.T, rows int) (b *broker, holder session, third string) {
	t.Helper()
	b = newWorld(t)
	held, heldTarget := b.conversation()
	other, _ := b.conversation()
	_, third = b.conversation()
	for range 3 {
		b.receive("Answering")
	}
	for i := range rows {
		b.send(held, request, "held "+strconv.Itoa(i))
	}
	b.send(other, request, "other")
	holder = b.begin()
	holder.exec("select parley.begin_conversation_timer($1::uuid, 3600)", heldTarget)
	return b, holder, third
}

// find has some readers look past the holder, who take nothing.
func (b *broker) find(times int) {
	b.Helper()
	for range times {
		reader := b.begin()
		if group := value[string](reader, "select coalesce(parley.get_conversation_group('Answering')::text, '')"); group == "" {
			b.Fatal("the other group was not found")
		}
		reader.commit()
	}
}

// findUntilHinted has readers look past the holder until one has left a hint. Only so many look who is under way at a time.
func (b *broker) findUntilHinted() {
	b.Helper()
	for range 2000 {
		if b.find(1); value[int](b.session, blockedHints) > 0 {
			return
		}
	}
	b.Fatal("there is no hint")
}

// Readers side by side hold a few rows all the time; hints about them would send every RECEIVE the long way.
func TestFewRowsOfALockedGroupLeaveNoHint(t *testing.T) {
	t.Parallel()
	b, holder, _ := besideAHolder(t, 20)
	b.find(10)
	equal(b.session, 0, blockedHints)
	if got := b.bodies("Answering"); len(got) != 1 || got[0] != "other" {
		t.Errorf("received %q beside the holder", got)
	}
	holder.rollback()
	if got := b.bodies("Answering"); len(got) != 20 || got[0] != "held 0" {
		t.Errorf("received %q after the holder", got)
	}
}

// Nobody walks past a long backlog of a locked group twice, and nothing of it is passed by when it is free again (keeps S2, S4).
func TestManyRowsOfALockedGroupArePassedByWithAHint(t *testing.T) {
	t.Parallel()
	b, holder, _ := besideAHolder(t, 400)
	b.findUntilHinted()
	if got := b.bodies("Answering"); len(got) != 1 || got[0] != "other" {
		t.Errorf("received %q beside the holder", got)
	}
	holder.rollback()
	if got := b.bodies("Answering"); len(got) != 400 || got[0] != "held 0" || got[399] != "held 399" {
		t.Errorf("received %d after the holder", len(got))
	}
}

// Keeps S2: where nothing comes behind them, nobody else would look at what the hint passes by.
func TestConversationThatMovesWhileItsRowsArePassedByIsFound(t *testing.T) {
	t.Parallel()
	b, holder, third := besideAHolder(t, 400)
	handle := value[string](holder, `
		select e.conversation_handle::text from parley._p_endpoint as e
		where e.endpoint_id = (select m.endpoint_id from parley._p_message as m order by m.position limit 1)`)
	holder.exec("select parley.move_conversation($1::uuid, $2::uuid)", handle, b.groupOf(third))
	b.findUntilHinted()
	b.bodies("Answering")
	holder.commit()
	if got := b.bodies("Answering"); len(got) != 400 {
		t.Errorf("received %d after the move", len(got))
	}
}
