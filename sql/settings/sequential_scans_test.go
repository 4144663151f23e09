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

// The calls of each message read their tables by an index, whatever ANALYZE has seen of them when the session planned them, with a handful of
// conversations: nothing, an empty table, or a huge one.
func TestCallsOfEachMessageKeepTheirPlansWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	seen := func(pages, rows string) string {
		return "update pg_class set relpages = " + pages + ", reltuples = " + rows +
			" where relnamespace = 'parley'::regnamespace and relkind in ('r', 'i') and relname ~ '^_p_'"
	}
	for statistics, statement := range map[string]string{
		"none": "select 1", "of empty tables": seen("0", "0"), "of huge tables": seen("10000000", "1e9"),
	} {
		t.Run(statistics, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(statement)
			s := b.Connection()
			for range 8 {
				callsOfEachMessage(s)
			}
			b.Exec("select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work') from generate_series(1, 500)")
			s.Exec("begin")
			callsOfEachMessage(s)
			read := sqltest.Value[string](s, `
				select coalesce(string_agg(relname || ' ' || seq_tup_read, ', '), '') from pg_stat_xact_user_tables
				where schemaname = 'parley' and seq_tup_read > 100
					and relname in ('_p_conversation_group', '_p_message', '_p_receive_progress', '_p_local_dialog', '_p_alarm', '_p_endpoint')`)
			if read != "" {
				t.Errorf("read from end to end: %s", read)
			}
			s.Exec("commit")
		})
	}
}

// callsOfEachMessage goes through lives of conversations, by each of the calls that programs make for a message.
func callsOfEachMessage(s sqltest.Session) {
	s.Helper()
	initiator := s.Dialog()
	s.Send(initiator, sqltest.Request, "first")
	s.Send(initiator, sqltest.Request, "second")
	got := s.Receive("Answering")
	if len(got) != 2 {
		s.Fatalf("received %d messages", len(got))
	}
	s.End(got[0].ConversationHandle)
	if got = s.Messages("select * from parley.receive_and_end('Asking')"); len(got) != 1 {
		s.Fatalf("received %d messages", len(got))
	}
	s.Exec("select parley.begin_and_send('//test/Asker', '//test/Answerer', $1, 'only', '//test/Work')", sqltest.Request)
	for _, queue := range []string{"Answering", "Asking"} {
		s.Exec("select parley.end_conversations(array_agg(r.conversation_handle)) from parley.receive($1, groups => 5) as r", queue)
	}
}
