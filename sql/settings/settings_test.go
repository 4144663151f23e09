package settings_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// strictLevels are those at which a transaction keeps the snapshot of its first statement.
var strictLevels = []string{"repeatable read", "serializable"}

// at opens a session whose transactions begin at a level, as a database or a role may have it.
func at(b *sqltest.Broker, level string) sqltest.Session {
	b.Helper()
	s := b.Connection()
	s.Exec("set default_transaction_isolation = '" + level + "'")
	return s
}

func requireConsistent(s sqltest.Session) {
	s.Helper()
	if found := s.Check("check_broker()"); len(found) != 0 {
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
				b := sqltest.NewWorld(t)
				s := at(b, level)
				initiator, target := s.Conversation()
				s.Exec(change, target)
				s.End(initiator)
				s.Receive("Answering")
				s.End(target)
				// A transaction that is under way anywhere on the server puts the sweep off to a later call.
				parleytest.Until(t, "both sides are forgotten", func() bool {
					s.Exec("select parley.fire_timers()")
					return sqltest.Value[int](s, "select count(*) from parley._p_endpoint as e where e.conversation_handle in ($1::uuid, $2::uuid)", initiator, target) == 0
				})
				sqltest.Equal(s, 1, "select count(*) from parley._p_tombstone as t where t.conversation_handle = $1::uuid", target)
				sqltest.Equal(s, 0, "select count(*) from parley._p_alarm as a where a.kind = 'abandoned'")
				requireConsistent(s)
			})
		}
	}
}

// A session that keeps a snapshot older than the end of a side does not see all that belongs to it, and leaves it to a later transaction.
func TestOldSnapshotForgetsNoConversationThatHasEndedSince(t *testing.T) {
	t.Parallel()
	for _, level := range strictLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			old := at(b, level)
			old.Exec("begin")
			old.Exec("select count(*) from parley._p_endpoint")
			// No session that keeps a snapshot sees this message.
			b.Send(initiator, sqltest.Request, "second")
			old.End(target)
			old.Exec("select parley.fire_timers()")
			old.Exec("commit")
			b.Receive("Asking")
			b.End(initiator)
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
			sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
			requireConsistent(b.Session)
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
				b := sqltest.NewWorld(t)
				initiator, target := b.Conversation()
				b.Exec(change, target)
				s := at(b, level)
				s.End(initiator)
				s.Receive("Answering")
				s.End(target)
				group := b.GroupOf(target)
				s.Exec("begin")
				s.Exec("select count(*) from parley._p_endpoint")
				b.Exec(`select parley.begin_dialog('//test/Answerer', '//test/Asker', '//test/Work', related_conversation_group => $1::uuid)`, group)
				s.Exec("select parley.fire_timers()")
				s.Exec("commit")
				sqltest.Equal(b.Session, 1, "select count(*) from parley._p_conversation_group as g where g.conversation_group_id = $1::uuid", group)
				b.Exec("select parley.fire_timers()")
				sqltest.Equal(b.Session, 1, "select count(*) from parley._p_conversation_group as g where g.conversation_group_id = $1::uuid", group)
				requireConsistent(b.Session)
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
			b := sqltest.NewBroker(t)
			role := b.Role("r")
			database := sqltest.Value[string](b.Session, "select current_database()")
			for kind, holder := range map[string]string{
				"database": sqltest.Quote(database),
				"role":     sqltest.Quote(role) + " in database " + sqltest.Quote(database),
			} {
				b.Exec("alter " + kind + " " + holder + " set " + c.setting + " = '" + c.value + "'")
				f := b.RequireFinding(sqltest.Configuration, c.code)
				if f.ObjectKind != kind || f.ObjectName != map[string]string{"database": database, "role": role}[kind] {
					t.Errorf("the finding names %s %s", f.ObjectKind, f.ObjectName)
				}
				b.Exec(f.Cure)
				b.RequireNoFinding(sqltest.Configuration, c.code)
			}
		})
	}
}

// Settings of every kind stand beside those that are watched, and the planner may read them first.
func TestDiagnosisOfSettingsReadsValuesThatAreNoTimes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	database := sqltest.Quote(sqltest.Value[string](b.Session, "select current_database()"))
	for _, value := range []string{"10.0.0.1", "1.2.3 ms", ".", "1e99", "99999999999999999999 d", "0x10", "", "= ="} {
		b.Exec("alter database " + database + " set app.written = '" + value + "'")
		b.RequireNoFinding(sqltest.Configuration, "time-out")
		if isTime := "select parley._p_setting_ms($1) is not null"; value != "99999999999999999999 d" {
			sqltest.Equal(b.Session, false, isTime, value)
		} else {
			sqltest.Equal(b.Session, true, isTime, value)
		}
	}
	b.Exec("alter database " + database + " set lock_timeout = '20s'")
	b.RequireFinding(sqltest.Configuration, "time-out")
}
