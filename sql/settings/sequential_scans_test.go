package settings_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Sessions that planned these while there were a handful of conversations must not go on reading all of them when there are thousands.
func TestStatementsPlannedForFewConversationsDoNotReadManyFromEndToEnd(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	s := b.Connection()
	statements := map[string]func(){
		"peek":           func() { s.Exec("select parley.peek('Answering', 1, $1::uuid)", target) },
		"record_failure": func() { s.Exec("select parley.record_failure($1::uuid, '22000', 'no')", target) },
		"retry_poison": func() {
			b.Exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m limit 1")
			s.Exec("select parley.retry_poison($1::uuid)", target)
		},
		"discard_poison": func() {
			b.Exec("select parley._p_set_aside_conversation(m.lane / 16, m.endpoint_id, m.position, 5) from parley._p_message as m limit 1")
			s.Exec("select parley.discard_poison($1::uuid, message_only => true)", target)
		},
	}
	for range 30 {
		b.Send(initiator, sqltest.Request, "x")
	}
	b.Exec("analyze parley._p_endpoint, parley._p_conversation_group, parley._p_set_aside, parley._p_failure")
	for range 6 {
		for _, run := range statements {
			run()
		}
	}
	b.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work') from generate_series(1, 3000)")
	for name, run := range statements {
		s.Exec("begin")
		run()
		sqltest.Equal(s, 0, `
			select coalesce(sum(seq_tup_read), 0) from pg_stat_xact_user_tables
			where schemaname = 'parley' and relname in ('_p_endpoint', '_p_conversation_group') and seq_tup_read > 100`)
		if t.Failed() {
			t.Fatalf("%s reads all conversations", name)
		}
		s.Exec("commit")
	}
}
