package layering

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// refusedModules are modules that the product once inherited from job queues that the benchmark compares with, and from the fetching of
// PostgreSQL.
var refusedModules = []string{"github.com/riverqueue", "github.com/tidwall", "github.com/lib/pq", "github.com/xi2", "github.com/fergusstrange"}

// A build of the command, or of a program with the public package, gets nothing that only a benchmark needs: that is in bench/peers.
func TestTheProductInheritsNothingFromPeersOfTheBenchmark(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/parley", ".")
	list.Dir = root(t)
	packages, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if !strings.Contains(string(packages), "github.com/jackc/pgx/v5\n") {
		t.Fatalf("go list gives no dependencies: %s", packages)
	}
	for _, module := range refusedModules {
		named := regexp.MustCompile(`(?m)^\s*(require )?` + regexp.QuoteMeta(module) + `[/\s].*$`)
		for _, found := range named.FindAllString(string(packages), -1) {
			t.Errorf("the product imports %s: what only a benchmark needs belongs to bench/peers", found)
		}
		for _, found := range named.FindAllString(read(t, "go.mod"), -1) {
			t.Errorf("go.mod has %q: what only a benchmark needs belongs to bench/peers", strings.TrimSpace(found))
		}
	}
}
