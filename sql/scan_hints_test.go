package sql_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

const blockedHints = "select count(*) from parley._p_scan_hint where cardinality(blocked_endpoints) > 0"

// besideALockedGroup gives a queue in which a reader holds the group of a conversation with some messages, each a row, and the initiators
// of two other conversations, without any.
func besideALockedGroup(t *testing.T, rows int) (b *broker, holder session, other, third string) {
	t.Helper()
	b = newWorld(t)
	held, heldTarget := b.conversation()
	other, _ = b.conversation()
	third, _ = b.conversation()
	for range 3 {
		b.receive("Answering")
	}
	b.exec("select parley.send($1::uuid, $2, 'held ' || n) from generate_series(0, $3::int - 1) as g (n)", held, request, rows)
	holder = b.begin()
	holder.exec("select parley.begin_conversation_timer($1::uuid, 3600)", heldTarget)
	return b, holder, other, third
}

// besideAHolder gives such a queue in which one of the others has a message, behind those of the holder, and the target of the one without
// any.
func besideAHolder(t *testing.T, rows int) (b *broker, holder session, third string) {
	t.Helper()
	b, holder, other, initiator := besideALockedGroup(t, rows)
	b.send(other, request, "other")
	third = value[string](b.session, `
		select f.conversation_handle::text
		from parley._p_endpoint as e
		join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
		where e.conversation_handle = $1::uuid`, initiator)
	return b, holder, third
}

// find has a reader scan past the holder some times, which takes nothing.
func (b *broker) find(times int) {
	b.Helper()
	reader := b.connection()
	for range times {
		reader.scanPast()
	}
}

// scanPast finds a group, in a transaction of its own.
func (s session) scanPast() {
	s.Helper()
	s.exec("begin")
	if group := value[string](s, "select coalesce(parley.get_conversation_group('Answering')::text, '')"); group == "" {
		s.Fatal("the other group was not found")
	}
	s.commit()
}

// findUntilHinted has a reader scan past the holder until it has left a hint. Only so many read the senders under way at a time.
func (b *broker) findUntilHinted() {
	b.Helper()
	reader := b.connection()
	for range 2000 {
		if reader.scanPast(); value[int](b.session, blockedHints) > 0 {
			return
		}
	}
	b.Fatal("there is no hint")
}

// Readers side by side hold a few rows all the time; hints about them would cost every RECEIVE a statement more.
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

// A walk past thousands of rows is not made again only to record that it was made.
func TestOneLongWalkLeavesAHint(t *testing.T) {
	t.Parallel()
	b, _, other, _ := besideALockedGroup(t, 6000)
	b.send(other, request, "other")
	b.find(1)
	equal(b.session, 1, blockedHints)
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"other"}) {
		t.Errorf("received %q beside the holder", got)
	}
}

// Keeps S2: what a sender has not committed yet cannot be seen by a walk, which leaves no hint then.
func TestLongWalkPassesNoSenderBy(t *testing.T) {
	t.Parallel()
	b, _, other, third := besideALockedGroup(t, 6000)
	sender := b.begin()
	sender.exec("select parley.send($1::uuid, $2, 'late')", third, request)
	b.send(other, request, "other")
	b.find(2)
	equal(b.session, 0, blockedHints)
	sender.commit()
	if got := append(b.bodies("Answering"), b.bodies("Answering")...); !slices.Equal(got, []string{"late", "other"}) {
		t.Errorf("received %q beside the holder", got)
	}
}

// The same for a sender that commits between two scans of one walk: the next one begins before the message.
func TestLongWalkFindsWhatIsCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	b, holder, other, third := besideALockedGroup(t, 1)
	second, secondTarget := b.conversation()
	b.receive("Answering")
	sender := b.begin()
	sender.exec("select parley.send($1::uuid, $2, 'late')", third, request)
	b.exec("select parley.send($1::uuid, $2, n::text) from generate_series(1, 6000) as g (n)", second, request)
	holder.exec("select parley.begin_conversation_timer($1::uuid, 3600)", secondTarget)
	b.send(other, request, "other")
	b.exec("alter function parley._p_probe(regclass) rename to _p_probe_at_once")
	b.exec(`
		create function parley._p_probe(position_sequence regclass, out "position" bigint, out senders text[])
		language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
		begin
			perform pg_advisory_lock(77);
			perform pg_advisory_unlock(77);
			select p.position, p.senders into position, senders from parley._p_probe_at_once(position_sequence) as p;
		end $$`)
	b.whileStopped("select parley.get_conversation_group('Answering')", sender.commit)
	if got := append(b.bodies("Answering"), b.bodies("Answering")...); !slices.Equal(got, []string{"late", "other"}) {
		t.Errorf("received %q beside the holder", got)
	}
}

// whileStopped runs a statement that comes to wait for the advisory lock 77, does something while it does, and lets it go on.
func (b *broker) whileStopped(statement string, meanwhile func()) {
	b.Helper()
	gate, stopped := b.connection(), b.connection()
	gate.exec("select pg_advisory_lock(77)")
	done := make(chan error, 1)
	go func() {
		_, err := stopped.db.Exec(b.Context(), statement)
		done <- err
	}()
	b.waitUntil("select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))")
	meanwhile()
	gate.exec("select pg_advisory_unlock(77)")
	if err := parleytest.Receive(b, done, "the end of "+clip(statement)); err != nil {
		b.Fatal(describe(err))
	}
}

// Keeps S2: where nothing comes behind them, no other reader would scan what the hint passes by.
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

// settle receives until nothing is found any more and requires that nothing is left.
func (b *broker) settle(t *testing.T) (bodies []string) {
	t.Helper()
	for {
		got := b.bodies("Answering")
		if len(got) == 0 {
			break
		}
		bodies = append(bodies, got...)
	}
	equal(b.session, 0, "select count(*) from parley._p_message")
	return bodies
}

// Keeps S2, S4: a scan records some conversations of a locked group only, and what a hint has named stays named as long as anything is
// there.
func TestNothingOfALargeLockedGroupIsForgotten(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	other, _ := b.conversation()
	_, target := b.conversation()
	group := b.groupOf(target)
	for range 69 {
		_, target := b.conversation()
		b.exec("select parley.move_conversation($1::uuid, $2::uuid)", target, group)
	}
	pick := func(is string) string {
		return value[string](b.session, `
			select f.conversation_handle::text
			from parley._p_endpoint as e
			join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
			join parley._p_conversation_group as g on g.group_id = e.group_id
			where g.conversation_group_id = $1 and e.endpoint_id `+is+` (parley._p_endpoints_of_group(g.group_id, 0))
			limit 1`, group)
	}
	named, left := pick("= any"), pick("<> all")
	b.send(named, request, "first")
	for i := range 100 {
		b.send(left, request, strconv.Itoa(i))
	}
	for range 500 {
		b.send(other, request, "other")
	}
	holder := b.begin()
	holder.exec("select from parley._p_conversation_group where conversation_group_id = $1 for update", group)
	b.findUntilHinted()
	b.messages("select * from parley.receive('Answering', 350)")
	b.exec("select setval('parley._p_next_probe', 0)")
	b.find(3)
	holder.rollback()
	b.send(left, request, "100")
	got := b.settle(t)
	if len(got) != 252 {
		t.Fatalf("received %d messages", len(got))
	}
	for i := range 101 {
		if got[i+1] != strconv.Itoa(i) {
			t.Fatalf("received %q", got)
		}
	}
}

// Keeps S2, S4: MOVE commits while a scan goes from the conversations that a hint names to their groups.
func TestConversationThatMovesWhileItsHintIsReadIsFound(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	stays, staysTarget := b.conversation()
	moves, movesTarget := b.conversation()
	other, _ := b.conversation()
	_, third := b.conversation()
	for _, handle := range []string{stays, moves} {
		for i := range 100 {
			b.send(handle, request, strconv.Itoa(i))
		}
	}
	for range 500 {
		b.send(other, request, "other")
	}
	holder := b.begin()
	holder.exec("select from parley._p_conversation_group where conversation_group_id = $1 for update", b.groupOf(staysTarget))
	mover := b.begin()
	mover.exec("select parley.move_conversation($1::uuid, $2::uuid)", movesTarget, b.groupOf(third))
	b.findUntilHinted()
	b.messages("select * from parley.receive('Answering', 350)")
	// A scan stops where it adds the first locked group, as a busy processor may let it.
	b.exec(`
		create or replace function parley._p_endpoints_of_group(group_id bigint, without bigint) returns bigint[]
		language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
		begin
			perform pg_advisory_lock(77);
			perform pg_advisory_unlock(77);
			return array(
				select e.endpoint_id from parley._p_endpoint as e
				where e.group_id = _p_endpoints_of_group.group_id and e.endpoint_id <> without limit 63
			);
		end $$`)
	b.whileStopped("select parley.get_conversation_group('Answering')", mover.commit)
	b.send(moves, request, "100")
	if got := b.bodies("Answering"); len(got) != 101 || got[0] != "0" || got[100] != "100" {
		t.Errorf("received %d of the conversation that has moved: %q", len(got), got)
	}
	holder.rollback()
	b.settle(t)
}

// A reader that names one conversation must not lock another one that a hint names.
func TestReceiveOfANamedConversationLocksNoOther(t *testing.T) {
	t.Parallel()
	b, holder, third := besideAHolder(t, 400)
	b.findUntilHinted()
	holder.rollback()
	reader := b.begin()
	if got := reader.messages("select * from parley.receive('Answering', conversation_handle => $1)", third); len(got) > 0 {
		t.Fatalf("received %v", got)
	}
	if got := b.bodies("Answering"); len(got) != 400 {
		t.Errorf("received %d beside a reader of another conversation", len(got))
	}
}

// A hint of the old queue does not apply to a service that has another one now.
func TestReceiveFromTheOldQueueLocksNothingOfTheNewOne(t *testing.T) {
	t.Parallel()
	b, holder, _ := besideAHolder(t, 400)
	b.findUntilHinted()
	holder.rollback()
	b.exec("select parley.create_queue('Moved')")
	b.exec("select parley.alter_service('//test/Answerer', queue => 'Moved')")
	for _, statement := range []string{"select * from parley.receive('Answering')", "select parley.get_conversation_group('Answering')"} {
		reader := b.begin()
		reader.exec(statement)
		locked := value[int](b.session, `
			select count(*) from (select g.group_id from parley._p_conversation_group as g for update skip locked) as free
			full join parley._p_conversation_group as g using (group_id) where free.group_id is null`)
		if locked > 0 {
			t.Errorf("%s locks %d groups", statement, locked)
		}
		reader.rollback()
	}
	if got := b.bodies("Moved"); len(got) != 400 {
		t.Errorf("received %d from the new queue", len(got))
	}
}
