package schema_test

import (
	"testing"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/operate"
	"github.com/parley-broker/parley/schema"
)

// Conversations are counted as they are, whether the table was ever analyzed or not; closed ones are counted by themselves.
func TestStatusCountsConversationsThatAreNotClosed(t *testing.T) {
	t.Parallel()
	pool, _ := fixture.Shop(t)
	if _, err := pool.Exec(t.Context(), `
		select parley.send(parley.begin_dialog('Web', 'Shop'), 'DEFAULT', 'x') from generate_series(1, 150)`); err != nil {
		t.Fatal(err)
	}
	closed, err := parley.BeginDialog(t.Context(), pool, "Web", "Shop")
	if err != nil {
		t.Fatal(err)
	}
	fixture.SendMany(t, pool, closed, 1)
	if _, err := pool.Exec(t.Context(), `
		select parley.end_conversation(e.conversation_handle)
		from parley.conversation_endpoints as e
		where e.conversation_id = (select o.conversation_id from parley.conversation_endpoints as o where o.conversation_handle = $1)
		order by e.is_initiator desc`, closed); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	status, err := schema.ReadStatus(t.Context(), conn.Conn())
	if err != nil {
		t.Fatal(err)
	}
	all, err := operate.ReadEndpoints(t.Context(), pool, operate.EndpointFilter{})
	if err != nil {
		t.Fatal(err)
	}
	open, err := operate.ReadEndpoints(t.Context(), pool, operate.EndpointFilter{LeaveOutClosed: true})
	if err != nil {
		t.Fatal(err)
	}
	if status.ClosedConversations == 0 || len(all)-len(open) != int(status.ClosedConversations) {
		t.Errorf("%d are closed, %d sides are listed with them and %d without", status.ClosedConversations, len(all), len(open))
	}
	if status.Conversations < 300 || int(status.Conversations) != len(open) || status.ConversationsAreEstimate {
		t.Errorf("counted %d conversations (estimated: %v), want the %d that are open", status.Conversations, status.ConversationsAreEstimate, len(open))
	}
	for _, e := range open {
		if e.State == "CD" {
			t.Errorf("a closed side is listed: %+v", e)
		}
	}
}
