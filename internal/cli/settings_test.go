//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

// runParley runs the program, and gives what it prints when it ends well.
func runParley(t *testing.T, args ...string) string {
	t.Helper()
	var out, problem bytes.Buffer
	cmd := exec.Command("parley", args...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		t.Fatalf("parley %s: %v\n%s%s", strings.Join(args, " "), err, &out, &problem)
	}
	return out.String()
}

// An administrator may have changed settings for everybody: the command and the daemon work as they do without. Those of a role are tried
// here, those of a database by the core of the suite (sql/settings); PARLEY_TEST_LONG tries both at both places.
func TestCommandAndDaemonWorkUnderChangedSettings(t *testing.T) {
	t.Parallel()
	levels := []string{"role"}
	if os.Getenv("PARLEY_TEST_LONG") != "" {
		levels = append(levels, "database")
	}
	for _, level := range levels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			pool := parleytest.EmptyDatabase(t)
			parleytest.ChangeSettings(t, pool, level, parleytest.FormatSettings...)
			parleytest.ChangeSettings(t, pool, level, parleytest.StatementSettings...)
			parleytest.ChangeSettings(t, pool, level, parleytest.SessionSettings...)
			dsn := parleytest.DSN(t, pool)
			runParley(t, "install", "--dsn", dsn)
			runParley(t, "verify", "--dsn", dsn)
			runParley(t, "status", "--dsn", dsn)
			found, _ := exec.Command("parley", "diagnose", "--dsn", dsn).Output()
			for _, name := range []string{"default_transaction_isolation is serializable", "idle_session_timeout is 2s"} {
				if !strings.Contains(string(found), name) {
					t.Errorf("diagnose does not say that %s:\n%s", name, found)
				}
			}

			s := newServed(t, dsn)
			runParley(t, "queue", "create", "jobs", "--kind", "simple", "--dsn", dsn)
			runParley(t, "put", "jobs", "a", "--dsn", dsn)
			if got := runParley(t, "take", "jobs", "--dsn", dsn); !strings.Contains(got, "a") {
				t.Errorf("take prints %q", got)
			}
			folder := t.TempDir()
			configuration := filepath.Join(folder, "mail.json")
			text := fmt.Sprintf(`{"accepted domain": {"example.org": {}}, "mailbox": {"ann@example.org": {"store": "local"}},
				"mailbox store": {"local": {"driver": "MAILDIR", "address": %q}}}`, filepath.Join(folder, "{local}"))
			if err := os.WriteFile(configuration, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			runParley(t, "mail", "apply", configuration, "--dsn", dsn)

			d := startDaemon(t, leads, "--mail", "--mail-folders", folder, "--dsn", dsn)
			runParley(t, "mail", "send", "--from", "ann@example.org", "--to", "ann@example.org", "--subject", "Grüße", "Hallo", "--dsn", dsn)
			s.send(1, 20)
			s.await("select not exists (select from parley_mail._p_message)")
			if files, err := filepath.Glob(filepath.Join(folder, "ann", "new", "*")); err != nil || len(files) != 1 {
				t.Errorf("the mailbox has %v, %v", files, err)
			}
			s.awaitDone(20)
			// The session that listens is idle for longer than idle_session_timeout lets others be.
			s.await("select clock_timestamp() - state_change > interval '4 s' from pg_stat_activity where application_name = 'parley listener' and datname = current_database()")
			// Conversations that both sides have ended are forgotten.
			if err := s.try(func(conn *pgx.Conn) error {
				_, err := conn.Exec(t.Context(), `
					select parley.end_conversation(e.conversation_handle) from parley._p_endpoint as e where e.is_initiator;
					select parley.end_conversation(e.conversation_handle) from parley._p_endpoint as e where not e.is_initiator and e.state <> 'DO'`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			s.await("select count(*) = 0 from parley._p_endpoint")
			if strings.Contains(d.log.String(), "again and again") {
				t.Error("something of the daemon fails again and again")
			}
		})
	}
}
