package schema_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/fixture"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// A daemon that holds a table and asks for another one, which is dropped already, is in a deadlock with the removal of the schema.
func TestUninstallIsTriedAgainAfterADeadlockWithADaemon(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	remover, daemon := fixture.Connect(t, pool), fixture.Connect(t, pool)
	execute := func(conn *pgx.Conn, statement string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// The server ends the one that searches for the deadlock first.
	execute(remover, "set deadlock_timeout = '3 s'")
	execute(daemon, "set deadlock_timeout = '10 min'")
	execute(daemon, "begin; lock table parley_flow._p_send_port in row exclusive mode")
	removed := make(chan error, 1)
	go func() { removed <- schema.Uninstall(t.Context(), remover, true) }()
	const held = `select l.relation::regclass::text from pg_locks as l join pg_class as c on c.oid = l.relation
		where l.pid = $1 and l.granted and l.mode = 'AccessExclusiveLock' and c.relkind = 'r' and c.relnamespace = 'parley_flow'::regnamespace limit 1`
	var table string
	parleytest.Until(t, "the removal waits for the daemon, and holds a table", func() bool {
		var isWaiting bool
		err := pool.QueryRow(t.Context(), "select exists (select from pg_locks where pid = $1 and not granted)", remover.PgConn().PID()).Scan(&isWaiting)
		return err == nil && isWaiting && pool.QueryRow(t.Context(), held, remover.PgConn().PID()).Scan(&table) == nil
	})
	execute(daemon, "lock table "+table+" in row exclusive mode") // after the removal was ended
	execute(daemon, "commit")
	if err := parleytest.Receive(t, removed, "the schema is removed"); err != nil {
		t.Error(err)
	}
}
