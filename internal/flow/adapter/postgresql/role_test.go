package postgresql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/postgresql"
)

// Ports and hosts share the sessions of a node: none has the role that a function which the statement of another calls has taken on.
func TestAStatementLeavesNoRoleToOthers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	exec(t, pool, "create function shop.become(local boolean) returns text language sql as $$ select set_config('role', 'pg_monitor', local) $$")
	login := value[string](t, pool, "select current_user::text")
	for _, isLocal := range []string{"false", "true"} {
		statement := "select shop.become(" + isLocal + ")"
		made, err := postgresql.Kind.NewSender(endpoint(t, pool, "local", `{"statement": "`+statement+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		d := made.Send(t.Context(), []*adapter.Message{message(7, "x")})
		if d[0].Err == nil || !strings.Contains(d[0].Err.Error(), "has changed the role") {
			t.Errorf("a port with %s: %v", statement, d[0].Err)
		}
		if role := value[string](t, pool, "select current_user::text"); role != login {
			t.Errorf("behind the port with %s a session has the role %s", statement, role)
		}
		receiver, err := postgresql.Kind.NewReceiver(endpoint(t, pool, "local", `{"statement": "`+statement+` as x", "takes": true}`))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), adaptertest.Patience)
		err = receiver.Run(ctx, &box{})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "has changed the role") {
			t.Errorf("a location with %s: %v", statement, err)
		}
	}
}
