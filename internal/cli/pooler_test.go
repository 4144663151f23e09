//go:build unix

package cli

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// A pooler takes connections while it does not reach PostgreSQL, and refuses some itself: the command says who answers, and what to look at.
func TestCommandNamesThePoolerThatAnswersInPlaceOfTheServer(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.PgBouncer(t, pool, "query_wait_timeout = 1\n[databases]\n"+
		"away = host=127.0.0.1 port=1 user=postgres\nnobody = host=127.0.0.1 port=1")
	for name, c := range map[string]struct{ database, parameter, want string }{
		"server away":       {"away", "", `query_wait_timeout; look at whether PostgreSQL runs behind it`},
		"no user":           {"nobody", "", `bouncer config error; look at auth_file`},
		"no database":       {"nowhere", "", `database "nowhere" does not exist; look at \[databases\] in pgbouncer\.ini`},
		"unknown parameter": {"", "&foo=bar", `unsupported startup parameter: foo; .* ignore_startup_parameters`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := dsn + c.parameter
			if c.database != "" {
				to = strings.Replace(to, "/"+pool.Config().ConnConfig.Database+"?", "/"+c.database+"?", 1)
			}
			requireRefusal(t, to, `^parley: the pooler at \S+ answers in place of PostgreSQL: `+c.want)
		})
	}
	t.Run("its console", func(t *testing.T) {
		t.Parallel()
		to := strings.Replace(dsn, "/"+pool.Config().ConnConfig.Database+"?", "/pgbouncer?", 1)
		requireRefusal(t, to, `(?s)DETAIL: That is the answer of a pooler.*HINT: To find out why, name a database in the DSN`)
	})
}

// requireRefusal has parley status fail with a message.
func requireRefusal(t *testing.T, dsn, want string) {
	t.Helper()
	var problem bytes.Buffer
	cmd := exec.Command("parley", "status", "--dsn", dsn)
	cmd.Stderr = &problem
	if err := cmd.Run(); err == nil {
		t.Fatal("status succeeded")
	}
	if !regexp.MustCompile(want).MatchString(problem.String()) {
		t.Errorf("got %s\nwant %s", problem.String(), want)
	}
}
