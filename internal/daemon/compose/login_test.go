package compose

import (
	"testing"

	"github.com/parley-broker/parley/internal/pgdb"
)

func TestTheLoginOfProceduresIsTheirRoleWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"postgres://{role}@localhost/shop", "host=localhost user={role} dbname=shop", "postgres:///shop?user={role}&host=localhost"} {
		s := &Daemon{connections: pgdb.NewConnectionLimit(), ProcedureDSNs: []string{dsn}}
		login, err := s.procedureLogin(0)
		if err != nil {
			t.Fatalf("%s: %v", dsn, err)
		}
		for _, role := range []string{"shop", `odd "role"`, `it's \ odd`, "a@b:c/d?e=f&g#h%20", "Ümläut", "{role}"} {
			config, err := login(role)
			if err != nil || config.User != role || config.Database != "shop" || config.Host != "localhost" {
				t.Errorf("%s, role %q: %+v, %v", dsn, role, config, err)
			}
		}
	}
	for dsn, why := range map[string]string{"postgres://shop@localhost/{role}": "not its user", "postgres://{role}@local host/": "no DSN"} {
		s := &Daemon{connections: pgdb.NewConnectionLimit(), ProcedureDSNs: []string{dsn}}
		if _, err := s.procedureLogin(0); err == nil {
			t.Errorf("%s is taken: %s", dsn, why)
		}
	}
	s := &Daemon{connections: pgdb.NewConnectionLimit(), ProcedureDSNs: []string{"postgres://reader@localhost/shop"}}
	if login, err := s.procedureLogin(0); err != nil {
		t.Error(err)
	} else if config, err := login("other"); err != nil || config.User != "reader" {
		t.Errorf("without {role} it logs in as %q, %v", config.User, err)
	}
}
