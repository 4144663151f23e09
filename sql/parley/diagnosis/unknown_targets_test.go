package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Messages for a mistyped name go by the clean-up alone, which the findings name; where the name is like none, the service may be meant.
func TestCureOfAMistypedTargetRemovesWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	const mistyped, unlike = "//test/Ansewrer", "//elsewhere/Shop"
	for _, led := range []string{"select", "select parley._p_lead('a daemon', 0, 60000, false)"} {
		t.Run(led, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(led)
			for _, to := range []string{mistyped, unlike} {
				handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', $1, allow_unknown_target => true)", to)
				b.Send(handle, "DEFAULT", "x")
				b.End(handle)
			}
			ours := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
			cures := map[string]string{}
			for _, f := range b.Findings(sqltest.Runtime) {
				if f.Code == "undeliverable" {
					cures[f.ObjectName] = f.Cure
				}
			}
			const cleanUp = "select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints where far_service = "
			if c := cures[mistyped]; !strings.HasPrefix(c, cleanUp+"'"+mistyped+"'") || !strings.Contains(c, "begin anew with '//test/Answerer'") {
				t.Errorf("the cure of a name that is like another one: %s", c)
			}
			if c := cures[unlike]; strings.HasPrefix(c, cleanUp) || !strings.Contains(c, "if the name is wrong: "+cleanUp+"'"+unlike+"'") {
				t.Errorf("the cure of a name that is like none: %s", c)
			}
			b.Exec(cures[mistyped])
			sqltest.Equal(b.Session, 0, "select count(*)::integer from parley.conversation_endpoints where far_service = $1", mistyped)
			sqltest.Equal(b.Session, 1, "select count(*)::integer from parley.conversation_endpoints where far_service = $1", unlike)
			sqltest.Equal(b.Session, 1, "select count(*)::integer from parley.conversation_endpoints where conversation_handle = $1", ours)
			sqltest.Equal(b.Session, true, `select remedy like '%cleanup => true%' from parley.stuck_conversations where far_service = $1`, unlike)
		})
	}
}

// Where another database of the daemon may have it, it is no slip for sure: nothing is to be cleaned up.
func TestCureOfATargetThatMayBeNextDoorRemovesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley._p_lead('a daemon', 0, 60000, true)")
	b.Send(sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Ansewrer')"), "DEFAULT", "x")
	if f := b.RequireFinding(sqltest.Runtime, "undeliverable"); strings.Contains(f.Cure, "cleanup") {
		t.Errorf("found %+v", f)
	}
}
