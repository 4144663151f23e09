package sql_test

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// strictLevels are those at which a transaction keeps the snapshot of its first statement.
var strictLevels = []string{"repeatable read", "serializable"}

// at opens a session whose transactions begin at a level, as a database or a role may have it.
func (b *broker) at(level string) session {
	b.Helper()
	s := b.connection()
	s.exec("set default_transaction_isolation = '" + level + "'")
	return s
}

func (s session) requireConsistent() {
	s.Helper()
	if found := s.check("check_broker()"); len(found) != 0 {
		s.Errorf("not consistent: %+v", found)
	}
}

func TestConversationThatBothSidesEndAtAStrictLevelIsForgotten(t *testing.T) {
	t.Parallel()
	for _, level := range strictLevels {
		for name, change := range map[string]string{
			"plain":             "select $1::uuid",
			"with a timer":      "select parley.begin_conversation_timer($1::uuid, 3600)",
			"in a common group": "select parley.begin_dialog('//test/Answerer', '//test/Asker', '//test/Work', related_conversation => $1::uuid)",
		} {
			t.Run(level+", "+name, func(t *testing.T) {
				t.Parallel()
				b := newWorld(t)
				s := b.at(level)
				initiator, target := s.conversation()
				s.exec(change, target)
				s.end(initiator)
				s.receive("Answering")
				s.end(target)
				// A transaction that is under way anywhere on the server puts the sweep off to a later call.
				parleytest.Until(t, "both sides are forgotten", func() bool {
					s.exec("select parley.fire_timers()")
					return value[int](s, "select count(*) from parley._p_endpoint as e where e.conversation_handle in ($1::uuid, $2::uuid)", initiator, target) == 0
				})
				equal(s, 1, "select count(*) from parley._p_tombstone as t where t.conversation_handle = $1::uuid", target)
				equal(s, 0, "select count(*) from parley._p_alarm as a where a.kind = 'abandoned'")
				s.requireConsistent()
			})
		}
	}
}

// Whoever keeps a snapshot that is older than the end of a side does not see all that belongs to it, and leaves it to a later transaction.
func TestOldSnapshotForgetsNoConversationThatHasEndedSince(t *testing.T) {
	t.Parallel()
	for _, level := range strictLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.conversation()
			old := b.at(level)
			old.exec("begin")
			old.exec("select count(*) from parley._p_endpoint")
			// Nobody who keeps a snapshot sees this message.
			b.send(initiator, request, "second")
			old.end(target)
			old.exec("select parley.fire_timers()")
			old.exec("commit")
			b.receive("Asking")
			b.end(initiator)
			b.exec("select parley.fire_timers()")
			equal(b.session, 0, "select count(*) from parley._p_endpoint")
			equal(b.session, 0, "select count(*) from parley._p_message")
			b.requireConsistent()
		})
	}
}

// A conversation that has come into a group since the snapshot was taken keeps the group.
func TestOldSnapshotKeepsAGroupThatSomebodyHasJoinedSince(t *testing.T) {
	t.Parallel()
	for _, level := range strictLevels {
		for name, change := range map[string]string{
			"alone before":  "select $1::uuid",
			"shared before": "select parley.begin_conversation_timer($1::uuid, 3600)",
		} {
			t.Run(level+", "+name, func(t *testing.T) {
				t.Parallel()
				b := newWorld(t)
				initiator, target := b.conversation()
				b.exec(change, target)
				s := b.at(level)
				s.end(initiator)
				s.receive("Answering")
				s.end(target)
				group := b.groupOf(target)
				s.exec("begin")
				s.exec("select count(*) from parley._p_endpoint")
				b.exec(`select parley.begin_dialog('//test/Answerer', '//test/Asker', '//test/Work', related_conversation_group => $1::uuid)`, group)
				s.exec("select parley.fire_timers()")
				s.exec("commit")
				equal(b.session, 1, "select count(*) from parley._p_conversation_group as g where g.conversation_group_id = $1::uuid", group)
				b.exec("select parley.fire_timers()")
				equal(b.session, 1, "select count(*) from parley._p_conversation_group as g where g.conversation_group_id = $1::uuid", group)
				b.requireConsistent()
			})
		}
	}
}

func TestDiagnosisNamesTheSettingAndWhoHasIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ setting, value, code string }{
		{"default_transaction_isolation", "serializable", "isolation-default"},
		{"default_transaction_isolation", "repeatable read", "isolation-default"},
		{"default_transaction_read_only", "on", "read-only-default"},
		{"idle_session_timeout", "2s", "time-out-short"},
		{"statement_timeout", "9s", "time-out-short"},
		{"statement_timeout", "1min", "time-out"},
		{"lock_timeout", "20000", "time-out"},
		{"idle_in_transaction_session_timeout", "1h", "time-out"},
	} {
		t.Run(c.setting+" "+c.value, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t)
			role := b.role("r")
			database := value[string](b.session, "select current_database()")
			for kind, holder := range map[string]string{
				"database": quote(database),
				"role":     quote(role) + " in database " + quote(database),
			} {
				b.exec("alter " + kind + " " + holder + " set " + c.setting + " = '" + c.value + "'")
				f := b.requireFinding(configuration, c.code)
				if f.ObjectKind != kind || f.ObjectName != map[string]string{"database": database, "role": role}[kind] {
					t.Errorf("the finding names %s %s", f.ObjectKind, f.ObjectName)
				}
				b.exec(f.Cure)
				b.requireNoFinding(configuration, c.code)
			}
		})
	}
}
