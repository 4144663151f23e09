package examples_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// Where no check of clients is set for the database, the first wait of a session asks for itself whether its client is there. Over TCP the
// first write to a client that is gone succeeds, so it takes two.
func TestFirstWaitOverTCPTakesNothingForAClientThatIsGone(t *testing.T) {
	db, environment := newDatabase(t, "first_wait")
	if _, err := db.Exec(t.Context(), "alter database first_wait reset client_connection_check_interval"); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(strings.TrimPrefix(environment[0], "DATABASE_URL=") + "?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	var wire net.Conn
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if wire != nil {
			return nil, net.ErrClosed // pgx would connect once more, to cancel
		}
		var err error
		wire, err = new(net.Dialer).DialContext(ctx, network, address)
		return wire, err
	}
	client, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := client.Exec(context.WithoutCancel(t.Context()), "select from parley.receive('warehouse_queue', timeout => 600000)")
		ended <- err
	}()
	const waiting = "(select from pg_stat_activity where datname = 'first_wait' and " + inReceive + ")"
	parleytest.Until(t, "the client waits", func() (waits bool) {
		ask(t, db, "select exists "+waiting, &waits)
		return waits
	})
	if err := wire.Close(); err != nil {
		t.Fatal(err)
	}
	if err := parleytest.Receive(t, ended, "the end of the client"); err == nil {
		t.Error("a client that is gone has received something")
	}
	if _, err := db.Exec(t.Context(), "select parley.send(parley.begin_dialog('shop', 'warehouse'), 'DEFAULT', 'kept')"); err != nil {
		t.Fatal(err)
	}
	parleytest.Until(t, "the session is gone", func() (isGone bool) {
		ask(t, db, "select not exists (select from pg_stat_activity where datname = 'first_wait' and pid <> pg_backend_pid())", &isGone)
		return isGone
	})
	var body string
	ask(t, db, "select parley.body_text(message_body) from parley.receive('warehouse_queue')", &body)
	if body != "kept" {
		t.Errorf("received %q", body)
	}
}
