package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
	"github.com/parley-broker/parley/schema"
)

// whatIsThere lists the objects that statements of a page can leave in a database: objects of the broker, conversations, messages, and
// objects of PostgreSQL.
const whatIsThere = `
	select 'message type ' || name as what from parley.service_message_types
	union all select 'contract ' || name from parley.service_contracts
	union all select 'queue ' || name from parley.service_queues
	union all select 'service ' || name from parley.services
	union all select 'route ' || name from parley.routes
	union all select 'priority ' || name from parley.conversation_priorities
	union all select 'conversation ' || conversation_handle::text from parley._p_endpoint
	union all select 'message ' || position::text from parley._p_message
	union all select 'relation ' || oid::regclass::text from pg_class
	where relkind <> 'i' and relnamespace <> all (array['pg_catalog', 'pg_toast', 'information_schema']::regnamespace[])
	union all select 'routine ' || oid::regprocedure::text from pg_proc
	where pronamespace <> all (array['pg_catalog', 'information_schema']::regnamespace[])
	union all select 'schema ' || nspname from pg_namespace where nspname !~ '^pg_'
	order by 1`

// The README states that the tutorial goes on from it, and the tutorial that it takes everything away again.
func TestTheReadmeAndTheTutorialRunOneAfterTheOtherAndLeaveNothing(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	before := read(t, pool, whatIsThere)
	s := newSession(t, pool)
	s.runPage("README.md")
	if len(read(t, pool, whatIsThere)) == len(before) {
		t.Fatal("the README has made nothing, so that there is nothing to clean up")
	}
	stop := startDaemon(t, pool)
	s.runPage("docs/tutorial/broker.md")
	stop()
	// A reader that was leaving may have held a sequence of a queue that was dropped; the next drop of a queue takes it.
	if _, err := pool.Exec(t.Context(), "select parley._p_drop_unused_sequences()"); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, what := range before {
		there[what] = true
	}
	for _, what := range read(t, pool, whatIsThere) {
		if !there[what] {
			t.Errorf("the tutorial leaves %s", what)
		}
		delete(there, what)
	}
	for what := range there {
		t.Errorf("the tutorial removes %s, which is not its own", what)
	}
	if err := schema.Uninstall(t.Context(), s.conn, false); err != nil {
		t.Errorf("uninstalling without force after the tutorial: %v", err)
	}
	if left := read(t, pool, "select nspname::text from pg_namespace where nspname like 'parley%'"); len(left) > 0 {
		t.Errorf("uninstalling leaves the schemas %q", left)
	}
}

func read(t *testing.T, pool *pgxpool.Pool, query string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// runPage runs the blocks of a page in their order and compares what they show.
func (s *session) runPage(page string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		s.t.Fatal(err)
	}
	blocks := readBlocks(string(text))
	if len(blocks) == 0 {
		s.t.Fatalf("%s has no statements", page)
	}
	for _, b := range blocks {
		if b.letter == "" {
			s.runBlock(page, b)
		}
	}
}

// isRepeatable finds blocks that only count. The page asks to repeat one until its output comes.
var isRepeatable = regexp.MustCompile(`^select count\(\*\)[^;]*;\s*$`)

// runBlock runs a block and compares what it shows.
func (s *session) runBlock(page string, b block) {
	s.t.Helper()
	shown := s.run(b)
	if b.output == "" {
		return
	}
	if isRepeatable.MatchString(b.sql) {
		parleytest.Until(s.t, fmt.Sprintf("%s:%d shows what the page shows", page, b.line), func() bool {
			shown = s.run(b)
			return essential(shown) == essential(b.output)
		})
	}
	if got, want := essential(shown), essential(b.output); got != want {
		s.t.Errorf("%s:%d: the page shows\n%s\nbut the statement gives\n%s", page, b.line, b.output, shown)
	}
}
