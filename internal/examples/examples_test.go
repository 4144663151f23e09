package examples_test

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// variable names the languages to run, "all" for every one: they download what they need from the registries of their languages.
const variable = "PARLEY_TEST_EXAMPLES"

// A language says how its two programs are prepared and run, in a copy of its folder. Cache is a folder that outlives the test.
type language struct {
	tools           []string
	prepare         func(cache string) []string
	shop, warehouse func(cache string) []string
	bodies          func(cache string) []string // sends each kind of body with each driver; none when nil
	mistakes        func(cache string) []string // sends what arrives wrong; none when nil
	waits           string                      // how a session that waits for messages shows in pg_stat_activity, inReceive when empty
}

const (
	inReceive = "wait_event = 'PgSleep'"
	listening = "state = 'idle' and query = 'listen parley'"
)

func always(command ...string) func(string) []string { return func(string) []string { return command } }

func inVenv(program string) func(string) []string {
	return func(cache string) []string { return []string{filepath.Join(cache, "venv/bin/python"), program} }
}

func built(program string) func(string) []string {
	return func(cache string) []string { return []string{filepath.Join(cache, program)} }
}

func java(class string) func(string) []string {
	return always("java", "-cp", "target/classes:target/dependency/*", class)
}

var maven = always("mvn", "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies")

func cargo(program string) func(string) []string {
	return func(cache string) []string { return []string{filepath.Join(cache, "debug", program)} }
}

var languages = map[string]language{
	"python": {
		tools: []string{"python3"},
		prepare: func(cache string) []string {
			return []string{"sh", "-ec", `test -x "$1/venv/bin/pip" || python3 -m venv "$1/venv"
				cp -r "$2/clients/python" package # pip builds where it finds the source
				"$1/venv/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt "./package[test]"`, "sh", cache, root}
		},
		shop: inVenv("shop.py"), warehouse: inVenv("warehouse.py"), bodies: inVenv("bodies.py"), mistakes: inVenv("mistakes.py"),
		waits: listening,
	},
	"node": {
		tools: []string{"node", "npm"},
		prepare: func(string) []string {
			const quiet = "--silent --no-fund --no-audit --ignore-scripts"
			return []string{
				"sh", "-ec", `cp -r "$1/clients/node" package; rm -rf package/node_modules; npm ci ` + quiet +
					`; npm install ` + quiet + ` --no-save --install-links --prefer-offline ./package`, "sh", root,
			}
		},
		shop: always("node", "shop.js"), warehouse: always("node", "warehouse.js"), waits: listening,
		bodies: always("node", "bodies.js"), mistakes: always("node", "mistakes.js"),
	},
	// It is a part of this module, so it is built where it stands and not in the copy.
	"go": {
		tools: []string{"go"},
		prepare: func(cache string) []string {
			return []string{"sh", "-ec", `go -C "$2" build -o "$1/" ./examples/go/...`, "sh", cache, root}
		},
		shop: built("shop"), warehouse: built("warehouse"), waits: listening,
	},
	"java": {
		tools: []string{"java", "javac", "mvn"},
		prepare: func(string) []string {
			return []string{
				"sh", "-ec", `cp -r "$1/clients/java" package; rm -rf package/target
				mvn --quiet --batch-mode -f package install -Dmaven.test.skip=true
				` + strings.Join(maven(""), " "), "sh", root,
			}
		},
		shop: java("Shop"), warehouse: java("Warehouse"), bodies: java("Bodies"), waits: listening,
	},
	"spring": {
		tools:   []string{"java", "javac", "mvn"},
		prepare: maven,
		shop:    java("Shop"), warehouse: java("Warehouse"),
	},
	"rust": {
		tools: []string{"cargo"},
		prepare: func(cache string) []string {
			return []string{"cargo", "build", "--quiet", "--locked", "--target-dir", cache}
		},
		shop: cargo("shop"), warehouse: cargo("warehouse"), bodies: cargo("bodies"),
	},
	"ruby": {
		tools: []string{"ruby"}, prepare: always("ruby", "-e", "require 'pg'"),
		shop: always("ruby", "shop.rb"), warehouse: always("ruby", "warehouse.rb"),
		bodies: always("ruby", "bodies.rb"), mistakes: always("ruby", "mistakes.rb"),
	},
	"php": {
		tools: []string{"php"}, prepare: always("php", "-r", "exit((int) !extension_loaded('pdo_pgsql'));"),
		shop: always("php", "shop.php"), warehouse: always("php", "warehouse.php"),
		bodies: always("php", "bodies.php"), mistakes: always("php", "mistakes.php"),
	},
}

var root, _ = filepath.Abs("../..")

// Each driver speaks TCP, and one of them nothing else, so the server is not that of the other tests.
var start = sync.OnceValues(func() (*postgres.Server, error) {
	folder, err := os.MkdirTemp("", "parley-examples-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(folder, 0o711); err != nil {
		return nil, err
	}
	return postgres.Start(context.Background(), postgres.Config{
		Data: folder, Version: os.Getenv("PARLEY_TEST_POSTGRES"), TCP: true, Disposable: true,
		Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB", "max_prepared_transactions": "10"},
	})
})

func TestMain(m *testing.M) {
	code := m.Run()
	removePrepared()
	if server, err := start(); err == nil {
		_ = server.Stop(context.Background())
		_ = os.RemoveAll(server.Folder())
	}
	os.Exit(code)
}

func TestExamples(t *testing.T) {
	asked := strings.Fields(os.Getenv(variable))
	for name, l := range languages {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(asked, name) && !slices.Contains(asked, "all") {
				t.Skipf("%s does not ask for it", variable)
			}
			for _, tool := range l.tools {
				if _, err := exec.LookPath(tool); err != nil {
					t.Fatal(err)
				}
			}
			w := l.workspace(t, name)
			t.Run("PackEachOrderOnce", func(t *testing.T) { w.packsEachOrderOnce(t, l) })
			t.Run("SendEachKindOfBody", func(t *testing.T) { w.sendsEachKindOfBody(t, l, name) })
		})
	}
}

// A workspace is the copy of a language's folder that has its packages and programs, and a database.
type workspace struct {
	db            *pgx.Conn
	cache, folder string
	environment   []string
}

func (l language) workspace(t *testing.T, name string) *workspace {
	t.Helper()
	return l.workspaceOf(t, name, name)
}

// workspaceOf is workspace with a database of another name.
func (l language) workspaceOf(t *testing.T, name, database string) *workspace {
	t.Helper()
	cache, folder, err := l.prepared(name)
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{cache: cache, folder: folder}
	w.db, w.environment = newDatabase(t, database)
	return w
}

func (w *workspace) command(t *testing.T, words []string, patience time.Duration) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = w.folder, append(os.Environ(), w.environment...)
	return cmd
}

func (w *workspace) complete(t *testing.T, words []string, patience time.Duration) {
	t.Helper()
	if output, err := w.command(t, words, patience).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, output)
	}
}

// The warehouse is killed while it waits and started again; then the shop places its orders and ends when all of them are packed.
func (w *workspace) packsEachOrderOnce(t *testing.T, l language) {
	warehouse := func() *exec.Cmd {
		t.Helper()
		cmd := w.command(t, l.warehouse(w.cache), 5*parleytest.Patience)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		parleytest.Until(t, "the warehouse waits", func() (waits bool) {
			ask(t, w.db, "select exists (select from pg_stat_activity where datname = current_database() and "+cmp.Or(l.waits, inReceive)+")", &waits)
			return waits
		})
		return cmd
	}
	killed := warehouse()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parleytest.Until(t, "the warehouse that was killed is gone", func() (isGone bool) {
		ask(t, w.db, `select not exists (select from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database() and backend_type = 'client backend')`, &isGone)
		return isGone
	})
	warehouse()
	w.complete(t, l.shop(w.cache), parleytest.Patience)
	w.setsAsideWhatCannotBePacked(t)

	var packed, parcels int
	ask(t, w.db, "select count(*) filter (where is_packed) from orders", &packed)
	ask(t, w.db, "select count(*) from parcels", &parcels)
	if packed != 5 || parcels != 5 {
		t.Errorf("%d orders are packed, in %d parcels, want 5", packed, parcels)
	}
	if _, err := w.db.Exec(t.Context(), "select parley.discard_poison(conversation_handle) from parley.poison_conversations"); err != nil {
		t.Fatal(err)
	}
	drain(t, w.db, "shop_queue")
	parleytest.Until(t, "no conversation is open", func() (isOver bool) {
		ask(t, w.db, "select not exists (select from parley.conversation_endpoints where state <> 'CD')", &isOver)
		return isOver
	})
}

// newDatabase makes a database with the schema and the two services, and says in the environment where it is.
func newDatabase(t *testing.T, name string) (*pgx.Conn, []string) {
	t.Helper()
	db, environment := schemaAlone(t, name)
	setup, err := os.ReadFile("../../examples/setup.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), string(setup)); err != nil {
		t.Fatal(err)
	}
	return db, environment
}

// schemaAlone makes a database with nothing but the schema.
func schemaAlone(t *testing.T, name string) (*pgx.Conn, []string) {
	t.Helper()
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	maintenance := connect(t, server.DSN("postgres"))
	if _, err := maintenance.Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	db := connect(t, server.DSN(name))
	if err := schema.Install(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	address, err := server.TCPDSN(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := parsed.User.Password()
	jdbc := "jdbc:postgresql://" + parsed.Host + parsed.Path + "?" + url.Values{"user": {parsed.User.Username()}, "password": {password}}.Encode()
	return db, []string{"DATABASE_URL=" + address, "JDBC_URL=" + jdbc}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func ask(t *testing.T, db *pgx.Conn, query string, answer any) {
	t.Helper()
	if err := db.QueryRow(t.Context(), query).Scan(answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
