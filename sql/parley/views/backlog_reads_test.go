package views_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A conversation is found by its handle without reading the backlog of another, whatever the statistics say of that.
func TestAConversationIsShownWithoutReadingTheBacklogOfAnother(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(`select parley.create_queue('from'), parley.create_queue('to');
		select parley.create_service('from', 'from'), parley.create_service('to', 'to', array['DEFAULT']);
		create table public.begun as select n, parley.begin_dialog('from', 'to') as handle from generate_series(1, 100) as n;
		select parley.send(handle, 'DEFAULT', n::text) from public.begun;
		insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
			select m.position + n, m.endpoint_id, m.enqueued_at, m.lane, m.message_type_id, m.body
			from (select * from parley._p_message order by position desc limit 1) as m, generate_series(1, 20000) as n;
		analyze parley._p_message`)
	for _, query := range []string{
		"select f.state from parley.conversation_endpoints as e join parley.conversation_endpoints as f using (conversation_id) " +
			"where e.conversation_handle = (select handle from public.begun where n = 7)",
		"select g.* from parley.conversation_groups as g",
	} {
		rows, err := b.DB.Query(t.Context(), "explain "+query)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan on _p_message") {
			t.Errorf("%s reads all messages:\n%s", query, text)
		}
	}
}
