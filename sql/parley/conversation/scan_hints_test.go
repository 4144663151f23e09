package conversation_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// besideAHolder gives such a queue in which one of the others has a message, behind those of the holder, and the target of the one without
// any.
func besideAHolder(t *testing.T, rows int) (b *sqltest.Broker, holder sqltest.Session, third string) {
	t.Helper()
	b, holder, other, initiator := sqltest.BesideALockedGroup(t, rows)
	b.Send(other, sqltest.Request, "other")
	third = sqltest.Value[string](b.Session, `
		select f.conversation_handle::text
		from parley._p_endpoint as e
		join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
		where e.conversation_handle = $1::uuid`, initiator)
	return b, holder, third
}

// Readers side by side hold a few rows all the time; hints about them would cost every RECEIVE a statement more.
func TestFewRowsOfALockedGroupLeaveNoHint(t *testing.T) {
	t.Parallel()
	b, holder, _ := besideAHolder(t, 20)
	b.Find(10)
	sqltest.Equal(b.Session, 0, sqltest.BlockedHints)
	if got := b.Bodies("Answering"); len(got) != 1 || got[0] != "other" {
		t.Errorf("received %q beside the holder", got)
	}
	holder.Rollback()
	if got := b.Bodies("Answering"); len(got) != 20 || got[0] != "held 0" {
		t.Errorf("received %q after the holder", got)
	}
}

// No scan walks past a long backlog of a locked group twice, and nothing of it is passed by when it is free again (keeps S2, S4).
func TestManyRowsOfALockedGroupArePassedByWithAHint(t *testing.T) {
	t.Parallel()
	b, holder, _ := besideAHolder(t, 400)
	b.FindUntilHinted()
	if got := b.Bodies("Answering"); len(got) != 1 || got[0] != "other" {
		t.Errorf("received %q beside the holder", got)
	}
	holder.Rollback()
	if got := b.Bodies("Answering"); len(got) != 400 || got[0] != "held 0" || got[399] != "held 399" {
		t.Errorf("received %d after the holder", len(got))
	}
}

// A walk past thousands of rows is not made again only to record that it was made.
func TestOneLongWalkLeavesAHint(t *testing.T) {
	t.Parallel()
	b, _, other, _ := sqltest.BesideALockedGroup(t, 6000)
	b.Send(other, sqltest.Request, "other")
	b.Find(1)
	sqltest.Equal(b.Session, 1, sqltest.BlockedHints)
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"other"}) {
		t.Errorf("received %q beside the holder", got)
	}
}

// Keeps S2: what a sender has not committed yet cannot be seen by a walk, which leaves no hint then.
func TestLongWalkPassesNoSenderBy(t *testing.T) {
	t.Parallel()
	b, _, other, third := sqltest.BesideALockedGroup(t, 6000)
	sender := b.Begin()
	sender.Exec("select parley.send($1::uuid, $2, 'late')", third, sqltest.Request)
	b.Send(other, sqltest.Request, "other")
	b.Find(2)
	sqltest.Equal(b.Session, 0, sqltest.BlockedHints)
	sender.Commit()
	if got := append(b.Bodies("Answering"), b.Bodies("Answering")...); !slices.Equal(got, []string{"late", "other"}) {
		t.Errorf("received %q beside the holder", got)
	}
}

// The same for a sender that commits between two scans of one walk: the next one begins before the message.
func TestLongWalkFindsWhatIsCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	b, holder, other, third := sqltest.BesideALockedGroup(t, 1)
	second, secondTarget := b.Conversation()
	b.Receive("Answering")
	sender := b.Begin()
	sender.Exec("select parley.send($1::uuid, $2, 'late')", third, sqltest.Request)
	b.Exec("select parley.send($1::uuid, $2, n::text) from generate_series(1, 6000) as g (n)", second, sqltest.Request)
	holder.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", secondTarget)
	b.Send(other, sqltest.Request, "other")
	b.Exec("alter function parley._p_probe(regclass) rename to _p_probe_at_once")
	b.Exec(`
		create function parley._p_probe(position_sequence regclass, out "position" bigint, out senders text[])
		language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
		begin
			perform pg_advisory_lock(77);
			perform pg_advisory_unlock(77);
			select p.position, p.senders into position, senders from parley._p_probe_at_once(position_sequence) as p;
		end $$`)
	whileStopped(b, "select parley.get_conversation_group('Answering')", sender.Commit)
	if got := append(b.Bodies("Answering"), b.Bodies("Answering")...); !slices.Equal(got, []string{"late", "other"}) {
		t.Errorf("received %q beside the holder", got)
	}
}

// whileStopped runs a statement that comes to wait for the advisory lock 77, does something while it does, and lets it go on.
func whileStopped(b *sqltest.Broker, statement string, meanwhile func()) {
	b.Helper()
	gate, stopped := b.Connection(), b.Connection()
	gate.Exec("select pg_advisory_lock(77)")
	done := make(chan error, 1)
	go func() {
		_, err := stopped.DB.Exec(b.Context(), statement)
		done <- err
	}()
	b.WaitUntil("select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))")
	meanwhile()
	gate.Exec("select pg_advisory_unlock(77)")
	if err := parleytest.Receive(b, done, "the end of "+sqltest.Clip(statement)); err != nil {
		b.Fatal(sqltest.Describe(err))
	}
}

// Keeps S2: where nothing comes behind them, no other reader would scan what the hint passes by.
func TestConversationThatMovesWhileItsRowsArePassedByIsFound(t *testing.T) {
	t.Parallel()
	b, holder, third := besideAHolder(t, 400)
	handle := sqltest.Value[string](holder, `
		select e.conversation_handle::text from parley._p_endpoint as e
		where e.endpoint_id = (select m.endpoint_id from parley._p_message as m order by m.position limit 1)`)
	holder.Exec("select parley.move_conversation($1::uuid, $2::uuid)", handle, b.GroupOf(third))
	b.FindUntilHinted()
	b.Bodies("Answering")
	holder.Commit()
	if got := b.Bodies("Answering"); len(got) != 400 {
		t.Errorf("received %d after the move", len(got))
	}
}

// settle receives until nothing is found any more and requires that nothing is left.
func settle(t *testing.T, b *sqltest.Broker) (bodies []string) {
	t.Helper()
	for {
		got := b.Bodies("Answering")
		if len(got) == 0 {
			break
		}
		bodies = append(bodies, got...)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
	return bodies
}

// Keeps S2, S4: a scan records some conversations of a locked group only, and what a hint has named stays named as long as anything is
// there.
func TestNothingOfALargeLockedGroupIsForgotten(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	other, _ := b.Conversation()
	_, target := b.Conversation()
	group := b.GroupOf(target)
	for range 69 {
		_, target := b.Conversation()
		b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", target, group)
	}
	pick := func(is string) string {
		return sqltest.Value[string](b.Session, `
			select f.conversation_handle::text
			from parley._p_endpoint as e
			join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
			join parley._p_conversation_group as g on g.group_id = e.group_id
			where g.conversation_group_id = $1 and e.endpoint_id `+is+` (parley._p_endpoints_of_group(g.group_id, 0))
			limit 1`, group)
	}
	named, left := pick("= any"), pick("<> all")
	b.Send(named, sqltest.Request, "first")
	for i := range 100 {
		b.Send(left, sqltest.Request, strconv.Itoa(i))
	}
	for range 500 {
		b.Send(other, sqltest.Request, "other")
	}
	holder := b.Begin()
	holder.Exec("select from parley._p_conversation_group where conversation_group_id = $1 for update", group)
	b.FindUntilHinted()
	b.Messages("select * from parley.receive('Answering', 350)")
	b.Exec("select setval('parley._p_next_probe', 0)")
	b.Find(3)
	holder.Rollback()
	b.Send(left, sqltest.Request, "100")
	got := settle(t, b)
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
	b := sqltest.NewWorld(t)
	stays, staysTarget := b.Conversation()
	moves, movesTarget := b.Conversation()
	other, _ := b.Conversation()
	_, third := b.Conversation()
	for _, handle := range []string{stays, moves} {
		for i := range 100 {
			b.Send(handle, sqltest.Request, strconv.Itoa(i))
		}
	}
	for range 500 {
		b.Send(other, sqltest.Request, "other")
	}
	holder := b.Begin()
	holder.Exec("select from parley._p_conversation_group where conversation_group_id = $1 for update", b.GroupOf(staysTarget))
	mover := b.Begin()
	mover.Exec("select parley.move_conversation($1::uuid, $2::uuid)", movesTarget, b.GroupOf(third))
	b.FindUntilHinted()
	b.Messages("select * from parley.receive('Answering', 350)")
	// A scan stops where it adds the first locked group, as a busy processor may let it.
	b.Exec(`
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
	whileStopped(b, "select parley.get_conversation_group('Answering')", mover.Commit)
	b.Send(moves, sqltest.Request, "100")
	if got := b.Bodies("Answering"); len(got) != 101 || got[0] != "0" || got[100] != "100" {
		t.Errorf("received %d of the conversation that has moved: %q", len(got), got)
	}
	holder.Rollback()
	settle(t, b)
}

// A reader that names one conversation must not lock another one that a hint names.
func TestReceiveOfANamedConversationLocksNoOther(t *testing.T) {
	t.Parallel()
	b, holder, third := besideAHolder(t, 400)
	b.FindUntilHinted()
	holder.Rollback()
	reader := b.Begin()
	if got := reader.Messages("select * from parley.receive('Answering', conversation_handle => $1)", third); len(got) > 0 {
		t.Fatalf("received %v", got)
	}
	if got := b.Bodies("Answering"); len(got) != 400 {
		t.Errorf("received %d beside a reader of another conversation", len(got))
	}
}

// A hint of the old queue does not apply to a service that has another one now.
func TestReceiveFromTheOldQueueLocksNothingOfTheNewOne(t *testing.T) {
	t.Parallel()
	b, holder, _ := besideAHolder(t, 400)
	b.FindUntilHinted()
	holder.Rollback()
	b.Exec("select parley.create_queue('Moved')")
	b.Exec("select parley.alter_service('//test/Answerer', queue => 'Moved')")
	for _, statement := range []string{"select * from parley.receive('Answering')", "select parley.get_conversation_group('Answering')"} {
		reader := b.Begin()
		reader.Exec(statement)
		locked := sqltest.Value[int](b.Session, `
			select count(*) from (select g.group_id from parley._p_conversation_group as g for update skip locked) as free
			full join parley._p_conversation_group as g using (group_id) where free.group_id is null`)
		if locked > 0 {
			t.Errorf("%s locks %d groups", statement, locked)
		}
		reader.Rollback()
	}
	if got := b.Bodies("Moved"); len(got) != 400 {
		t.Errorf("received %d from the new queue", len(got))
	}
}
