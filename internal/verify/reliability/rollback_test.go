package reliability_test

import (
	"testing"
)

// Keeps S8.
func TestRollbackReturnsTheMessagesInTheirOrder(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]from{"All": {}, "Some": {top: 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			initiator, _ := b.admin.conversation("1", "2", "3")
			s := b.session(t)
			s.begin()
			before := s.receive(what)
			b.admin.send(initiator, "4")
			s.rollback()
			after := s.receive(from{})
			wantBodies(t, after, "1", "2", "3", "4")
			for i, m := range after {
				if m.Sequence != int64(i) {
					t.Errorf("message %q has number %d, want %d", m.Body, m.Sequence, i)
				}
			}
			if before[0] != after[0] {
				t.Errorf("the message was %+v and is %+v", before[0], after[0])
			}
		})
	}
}

// A row may hold many messages; a rollback puts the part that was taken back to the part that was not.
func TestRollbackReturnsPartsOfABatch(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	initiator := b.admin.dialog()
	b.admin.exec("select parley.send_batch($1::uuid, 'DEFAULT', array(select i::text from generate_series(1, 10) as i))", initiator)
	s := b.session(t)
	wantBodies(t, s.receive(from{top: 2}), "1", "2")
	s.begin()
	wantBodies(t, s.receive(from{top: 3}), "3", "4", "5")
	wantBodies(t, s.receive(from{top: 1}), "6")
	s.rollback()
	wantBodies(t, s.receive(from{top: 5}), "3", "4", "5", "6", "7")
	got := s.receive(from{})
	wantBodies(t, got, "8", "9", "10")
	if got[0].Sequence != 7 {
		t.Errorf("message 8 has number %d, want 7", got[0].Sequence)
	}
}

// Keeps S7.
func TestRollbackUndoesEachStatement(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"Begin":       "select parley.begin_dialog('initiator', 'target') where $1::uuid <> $2::uuid",
		"BeginInside": "select parley.begin_dialog('initiator', 'target', related_conversation => $1::uuid) where $2::uuid is not null",
		"Send":        "select parley.send($1::uuid, 'DEFAULT', 'x'::text) where $2::uuid is not null",
		"Batch":       "select parley.send_batch($1::uuid, 'DEFAULT', array['x', 'y']) where $2::uuid is not null",
		"Receive":     "select parley.receive('target_queue', conversation_handle => $2::uuid) where $1::uuid is not null",
		"End":         "select parley.end_conversation($1::uuid) where $2::uuid is not null",
		"EndFar":      "select parley.end_conversation($2::uuid) where $1::uuid is not null",
		"EndError":    "select parley.end_conversation($1::uuid, 1, 'one') where $2::uuid is not null",
		"Cleanup":     "select parley.end_conversation($1::uuid, cleanup => true) where $2::uuid is not null",
		"Timer":       "select parley.begin_conversation_timer($1::uuid, 3600) where $2::uuid is not null",
		"Fire":        "select parley.fire_timers() where $1::uuid <> $2::uuid",
		"Group":       "select parley.get_conversation_group('target_queue') where $1::uuid <> $2::uuid",
		"Move":        "select parley.move_conversation($1::uuid, (select conversation_group_id from parley.conversation_endpoints where state = 'SO')) where $2::uuid is not null",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			initiator, target := b.admin.conversation("1", "2")
			b.admin.dialog()
			b.admin.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			before := b.contents()
			for _, undo := range []string{"rollback", "rollback to savepoint a; commit"} {
				s := b.session(t)
				s.begin()
				s.savepoint("a")
				s.exec(statement, initiator, target)
				s.exec(undo)
				if after := b.contents(); after != before {
					t.Errorf("after %s there is\n%s\nbefore there was\n%s", undo, after, before)
				}
			}
		})
	}
}

// contents is all that a client can see of conversations and queues, as text.
func (b *fixture) contents() string {
	b.admin.t.Helper()
	return ask[string](b.admin, `
		select string_agg(line, E'\n' order by line)
		from (
			select 'endpoint ' || conversation_handle || ' ' || conversation_group_id || ' ' || state || ' ' || send_sequence || ' '
				|| receive_sequence || ' ' || coalesce(dialog_timer::text, '-')
			from parley.conversation_endpoints
			union all select 'group ' || conversation_group_id from parley.conversation_groups
			union all
			select 'message ' || conversation_handle || ' ' || queuing_order || ' ' || message_sequence_number || ' ' || convert_from(message_body, 'UTF8')
			from parley_queue.target_queue
			union all select 'answer ' || conversation_handle || ' ' || message_type_name from parley_queue.initiator_queue
		) as l (line)`)
}

func TestRollbackToASavepointReturnsTheMessagesToTheSameTransaction(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.admin.conversation("1", "2", "3")
	s, other := b.session(t), b.session(t)
	s.begin()
	wantBodies(t, s.receive(from{top: 1}), "1")
	s.savepoint("a")
	wantBodies(t, s.receive(from{top: 1}), "2")
	s.rollbackTo("a")
	wantBodies(t, other.receive(from{}))
	wantBodies(t, s.receive(from{}), "2", "3")
	s.commit()
	wantBodies(t, other.receive(from{}))
}

func TestRollbackToASavepointDropsWhatWasSentSince(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	s := b.session(t)
	s.begin()
	initiator := s.dialog()
	s.savepoint("a")
	s.send(initiator, "never")
	s.rollbackTo("a")
	s.send(initiator, "1")
	s.savepoint("b")
	s.send(initiator, "never")
	s.end(initiator)
	s.rollbackTo("b")
	s.send(initiator, "2")
	s.commit()
	wantBodies(t, b.admin.receive(from{}), "1", "2")
}
