package postgresql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/postgresql"
	"github.com/parley-broker/parley/parleytest"
)

// The login of the node owns everything; what a definition names is done with the rights of the host all the same, and what the host does,
// with those of the login.
func TestStatementsHaveTheRightsOfTheHost(t *testing.T) {
	t.Parallel()
	pool := database(t)
	role := "host of " + value[string](t, pool, "select current_database()")
	quoted := `"` + role + `"`
	exec(t, pool, "create role "+quoted)
	t.Cleanup(func() {
		_, _ = pool.Exec(context.WithoutCancel(t.Context()), "drop owned by "+quoted)
		_, _ = pool.Exec(context.WithoutCancel(t.Context()), "drop role "+quoted)
	})
	exec(t, pool, "grant usage on schema shop to "+quoted)
	exec(t, pool, "insert into shop.orders_out (id) values (1)")
	e := endpoint(t, pool, "local", deleting)
	e.Role = role
	receiver, err := postgresql.Kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Run(t.Context(), &box{}); err == nil || !strings.Contains(err.Error(), "permission denied for table orders_out") ||
		!strings.Contains(err.Error(), "Grant the right to the role "+quoted) {
		t.Errorf("a location without rights ended with %v", err)
	}
	e.Settings = []byte(inserting)
	made, err := postgresql.Kind.NewSender(e)
	if err != nil {
		t.Fatal(err)
	}
	s := made.(adapter.TransactionSender)
	order := message(1, `{"customer": {"name": "a"}}`)
	if f := failure(t, sendIn(t, pool, s, order)[0].Err); !f.Unreachable || !strings.Contains(f.Error(), "permission denied for table orders_in") ||
		!strings.Contains(f.Error(), "Grant the right to the role "+quoted) {
		t.Errorf("a port without rights failed with %v", f)
	}
	exec(t, pool, "grant select, delete, update on shop.orders_out to "+quoted)
	exec(t, pool, "grant insert on shop.orders_in to "+quoted)
	e.Settings = []byte(deleting)
	stop := run(t, e, &box{})
	parleytest.Until(t, "the row is taken", func() bool { return value[int](t, pool, "select count(*) from taken") == 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if d := sendIn(t, pool, s, order); d[0].Err != nil {
		t.Error(d[0].Err)
	}
}
