package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Definitions belong to the transaction like everything else (spec 2.0), also to a part of it.
func TestRollbackUndoesEachDefinition(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.Scene)
	b.Exec("select parley.create_message_type('//test/Unused')")
	b.Exec("select parley.create_queue('Unused')")
	b.Send(b.Dialog(), sqltest.Request, "waits")
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//new', 'DEFAULT', allow_unknown_target => true), 'DEFAULT', 'delayed')")
	before := b.Everything()
	s := b.Connection()
	for _, statement := range []string{
		"parley.create_message_type('//new', 'JSON')",
		"parley.alter_message_type('//test/Request', 'JSON')",
		"parley.drop_message_type('//test/Unused')",
		`parley.create_contract('//new', '{"//test/Note": "ANY"}')`,
		"parley.drop_contract('//test/Free')",
		"parley.create_queue('New')",
		"parley.alter_queue('Answering', status => false, retention => true, poison_message_handling => false)",
		"parley.alter_queue('Off', status => true)",
		"parley.drop_activation('Asking')",
		"parley.drop_queue('Unused')",
		"parley.create_service('//new', 'Answering', array['DEFAULT'])",
		"parley.alter_service('//test/Answerer', 'Elsewhere')",
		"parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])",
		"parley.drop_service('//test/Answerer')",
		"parley.create_broker_priority('New', '//test/Work', priority_level => 9)",
		"parley.alter_broker_priority('Rank', priority_level => 9)",
		"parley.drop_broker_priority('Rank')",
		"parley.grant('SEND', 'service', '//test/Asker', 'PUBLIC')",
		"parley.alter_authorization('service', '//test/Asker', 'pg_monitor')",
	} {
		for _, script := range []string{
			"begin; select %s; rollback",
			"begin; savepoint a; select %s; rollback to a; commit",
			"begin; select %s; select parley.drop_service('//none'); commit",
		} {
			// The last of them fails, which is what it is for.
			_, _ = s.DB.Exec(t.Context(), fmt.Sprintf(script, statement))
			s.Exec("rollback")
			if after := b.Everything(); after != before {
				t.Fatalf("after %s there is\n%s\nbefore there was\n%s", fmt.Sprintf(script, statement), after, before)
			}
		}
		// It would have changed something.
		tx := b.Begin()
		tx.Exec("select " + statement)
		if after := tx.Everything(); after == before && !strings.Contains(statement, "drop_activation") {
			t.Errorf("%s changes nothing", statement)
		}
		tx.Rollback()
	}
	// And the broker works on.
	if got := b.Bodies("Answering"); len(got) == 0 {
		t.Error("nothing is left to receive")
	}
}
