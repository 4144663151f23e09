package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// A client is a package in the folder clients: how its own tests run, how its types are checked and how a program of its README does.
// Folder is the copy of the package. Go's is this module: it has no folder, and its programs are named.
type client struct {
	tests    func(cache, folder string) []string
	program  func(cache, folder, name string) []string
	programs []string // nil: those of the README
	types    func(folder string) []string
	pooled   string // what is added to a DSN that leads through PgBouncer
}

// The environment that has the package was prepared for the examples.
var clients = map[string]client{
	"go": {
		programs: []string{"pictures", "warehouse", "films"}, pooled: "default_query_exec_mode=exec",
		program: func(cache, _, name string) []string { return []string{filepath.Join(cache, name)} },
	},
	// Its programs are of one file each, which java compiles by itself. The example has fetched the libraries.
	"java": {
		tests: func(_, folder string) []string {
			return []string{"java", "-cp", "target/dependency/*", filepath.Join(folder, "src/test/java/Rules.java")}
		},
		program: func(_, folder, name string) []string {
			return []string{"java", "-cp", filepath.Join(filepath.Dir(folder), "target/dependency/*"), filepath.Join(folder, name)}
		},
	},
	"node": {
		tests: func(_, folder string) []string {
			return []string{
				"node", "--test", filepath.Join(folder, "test/calls.test.js"), filepath.Join(folder, "test/workers.test.js"),
				filepath.Join(folder, "test/exports.test.js"),
			}
		},
		program: func(_, folder, name string) []string { return []string{"node", filepath.Join(folder, name)} },
		types: func(folder string) []string {
			return []string{"sh", "-ec", `cd "$1"; npm ci --silent --no-fund --no-audit --ignore-scripts --prefer-offline
				node_modules/.bin/tsc --project .`, "sh", folder}
		},
	},
	"python": {
		tests: func(cache, folder string) []string {
			return []string{filepath.Join(cache, "venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", filepath.Join(folder, "tests")}
		},
		program: func(cache, folder, name string) []string {
			return []string{filepath.Join(cache, "venv/bin/python"), filepath.Join(folder, name)}
		},
	},
}

// The recipe of the README for tests without a server is no worker: it is run by itself.
const withoutServer = "pglite.mjs"

// namedBlock is a block of code of a README whose first line is the name of its file.
var namedBlock = regexp.MustCompile("(?ms)^```\\w+\n((?:#|//) (\\S+\\.\\w+)\n.*?)^```$")

// programs writes the programs of a README into the folder, and gives their names.
func programs(t *testing.T, readme, folder string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range namedBlock.FindAllStringSubmatch(string(text), -1) {
		if err := os.WriteFile(filepath.Join(folder, block[2]), []byte(block[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, block[2])
	}
	return names
}

// The package's own tests pass, and the programs that its README shows, as they stand there, lose nothing and do nothing twice.
func TestClients(t *testing.T) {
	asked := strings.Fields(os.Getenv(variable))
	for name, c := range clients {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(asked, name) && !slices.Contains(asked, "all") {
				t.Skipf("%s does not ask for it", variable)
			}
			l := languages[name]
			for _, tool := range l.tools {
				if _, err := exec.LookPath(tool); err != nil {
					t.Fatal(err)
				}
			}
			w := l.workspaceOf(t, name, "client_"+name)
			folder := w.folder
			if c.tests != nil {
				folder = w.copyOf(t, name, "client")
				t.Run("KeepTheirRules", func(t *testing.T) { w.keepsItsRules(t, c, name, folder) })
			}
			if c.types != nil {
				typed := w.copyOf(t, name, "typed")
				t.Run("HaveTheirTypes", func(t *testing.T) { w.hasItsTypes(t, c, typed) })
				t.Run("WorkWithoutAServer", func(t *testing.T) { w.worksWithoutAServer(t, c, typed) })
			}
			if comingFrom[name] != "" {
				t.Run("RunTheCallsForThoseWhoCome", func(t *testing.T) { w.callsForThoseWhoComeRun(t, c, name) })
			}
			t.Run("LoseNothing", func(t *testing.T) { w.losesNothing(t, c, folder) })
		})
	}
}

// copyOf copies the package into a folder of the workspace, and gives that.
func (w *workspace) copyOf(t *testing.T, name, folder string) string {
	t.Helper()
	to := filepath.Join(w.folder, folder)
	if err := os.CopyFS(to, os.DirFS(filepath.Join(root, "clients", name))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(to, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return to
}

// hasItsTypes has the compiler check the types of the package with the programs of its README and with calls that it must refuse.
func (w *workspace) hasItsTypes(t *testing.T, c client, folder string) {
	if len(programs(t, filepath.Join(folder, "README.md"), folder)) < 4 {
		t.Fatal("the README has not all programs")
	}
	w.complete(t, c.types(folder), 5*parleytest.Patience)
}

// worksWithoutAServer runs the recipe of the README, which sends and receives in PGlite.
func (w *workspace) worksWithoutAServer(t *testing.T, c client, folder string) {
	if err := os.WriteFile(filepath.Join(folder, "parley.sql"), []byte(schema.Script()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := w.command(t, c.program(w.cache, folder, withoutServer), 5*parleytest.Patience)
	cmd.Dir = folder
	output, err := cmd.CombinedOutput()
	if err != nil || string(output) != "17.png 101\n" {
		t.Fatalf("%v, and prints\n%s", err, output)
	}
}

// keepsItsRules runs the tests of the package on copies of a database that has nothing but the schema.
func (w *workspace) keepsItsRules(t *testing.T, c client, name, folder string) {
	db, environment := schemaAlone(t, "template_"+name)
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd := w.command(t, c.tests(w.cache, folder), 5*parleytest.Patience)
	cmd.Env = append(cmd.Env, "PARLEY_TEST_DSN="+strings.TrimPrefix(environment[0], "DATABASE_URL="), jdbcAs("PARLEY_TEST_JDBC", environment)[0])
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
