package parley_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// released is the folder of the scripts that each version installed when it was released.
const released = "migrations/released"

var update = flag.Bool("update", false, "rewrite the released script of the current schema version")

// releaseNames are the places where a script names the release, which may grow without the schema.
var releaseNames = regexp.MustCompile(`(?m)^-- Parley \S+,|^(insert into parley\._p_installation \(schema_version, release[^)]*\) values \(\d+, )'[^']*'`)

func TestReleasedSchemaVersionNeverChanges(t *testing.T) {
	name := filepath.Join(released, fmt.Sprintf("%d.sql", parley.SchemaVersion))
	if *update {
		if err := os.MkdirAll(released, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(parley.Script()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("schema version %d is not released yet", parley.SchemaVersion)
	}
	if err != nil {
		t.Fatal(err)
	}
	if releaseNames.ReplaceAllString(string(script), "$1") != releaseNames.ReplaceAllString(parley.Script(), "$1") {
		t.Errorf("sql/ is no longer what %s says. Once version %d is released, raise SchemaVersion and write migrations/%03d.sql; before, run go generate",
			name, parley.SchemaVersion, parley.SchemaVersion+1)
	}
}

func TestUpgradeFromEveryReleasedVersionKeepsMessagesAndEqualsAFreshInstallation(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(released, "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".sql"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			conn := ordinaryOwner(t)
			if _, err := conn.PgConn().Exec(t.Context(), string(text)).ReadAll(); err != nil {
				t.Fatal(err)
			}
			handle := putMessagesIn(t, conn)
			// Repair goes the whole way of an upgrade for the current version too.
			if err := parley.Repair(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			requireNoDifferences(t, conn, parley.Verify)
			requireMessagesIn(t, conn, handle)
		})
	}
}

// putMessagesIn speaks SQL of the first release, so that it can speak to every later one.
func putMessagesIn(t *testing.T, conn *pgx.Conn) (handle parley.UUID) {
	t.Helper()
	setUpServices(t, conn)
	handle = value[parley.UUID](t, conn, "select parley.begin_dialog('initiator', 'target')")
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
	if got := bodies(messages); got != "one two three four" {
		t.Errorf("received %q", got)
	}
}

// bodies joins the bodies of messages.
func bodies(messages []parley.Message) string {
	var texts []string
	for _, message := range messages {
		texts = append(texts, string(message.MessageBody))
	}
	return strings.Join(texts, " ")
}
