package schema_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/schema"
)

// Repair goes the whole way of an upgrade, for the current version too.
func TestRepairKeepsMessagesAndEqualsAFreshInstallation(t *testing.T) {
	t.Parallel()
	conn := fixture.OrdinaryOwner(t)
	if err := schema.Install(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	handle := putMessagesIn(t, conn)
	if err := schema.Repair(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	requireNoDifferences(t, conn, schema.Verify)
	requireMessagesIn(t, conn, handle)
}

func putMessagesIn(t *testing.T, conn *pgx.Conn) (handle parley.UUID) {
	t.Helper()
	fixture.CreateServices(t, conn)
	handle = fixture.Value[parley.UUID](t, conn, "select parley.begin_dialog('initiator', 'target')")
	for _, statement := range []string{
		"select parley.send($1, 'DEFAULT', 'one')",
		"select parley.send_batch($1, 'DEFAULT', array['two', 'three'])",
	} {
		if _, err := conn.Exec(t.Context(), statement, handle); err != nil {
			t.Fatal(err)
		}
	}
	return handle
}

func requireMessagesIn(t *testing.T, conn *pgx.Conn, handle parley.UUID) {
	t.Helper()
	if err := parley.Send(t.Context(), conn, handle, parley.DefaultMessageType, []byte("four")); err != nil {
		t.Fatal(err)
	}
	messages, err := parley.Receive(t.Context(), conn, "target")
	if err != nil {
		t.Fatal(err)
	}
	if got := fixture.Bodies(messages); got != "one two three four" {
		t.Errorf("received %q", got)
	}
}
