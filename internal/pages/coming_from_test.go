package pages

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

var (
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	wordsOf   = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)
	schemaSQL = `
		select p.proname::text from pg_proc as p where p.pronamespace = 'parley'::regnamespace and p.proname !~ '^_p_'
		union
		select unnest(p.proargnames) from pg_proc as p where p.pronamespace = 'parley'::regnamespace and p.proname !~ '^_p_'
		union
		select c.relname::text from pg_class as c where c.relnamespace = 'parley'::regnamespace and c.relname !~ '^_p_'
		union
		select a.attname::text
		from pg_attribute as a
		join pg_class as c on c.oid = a.attrelid
		where c.relnamespace = 'parley'::regnamespace and c.relname !~ '^_p_' and a.attnum > 0`
)

// exportedNames are the names that the root package exports, with the fields of its types.
func exportedNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

const comingFrom = "docs/guides/coming-from.md"

// ourCalls gives the code in the columns of the page that hold our calls, with the numbers of their lines.
func ourCalls(t *testing.T) map[int][]string {
	t.Helper()
	page, err := os.ReadFile("../../" + comingFrom)
	if err != nil {
		t.Fatal(err)
	}
	ofSQLAndGo, _, ok := strings.Cut(string(page), "\n## In Python, Node and Java\n")
	if !ok {
		t.Fatalf("%s has no section of the clients, whose calls internal/examples runs", comingFrom)
	}
	calls := map[int][]string{}
	for number, line := range strings.Split(ofSQLAndGo, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			calls[number+1] = append(calls[number+1], span[1])
		}
	}
	return calls
}

var (
	callInGo  = regexp.MustCompile(`^parley\.[A-Z]`)
	callInSQL = regexp.MustCompile(`^(call |begin; |parley\.[a-z_]+(\(.*)?$)`)
)

// The page for people who come from another queue shows as ours only calls that run: those of SQL against a server as they stand there,
// those of Go as they stand in the test beside this one. Its other words are names of the schema or of the Go package.
func TestCallsForThoseWhoComeFromOtherQueuesRun(t *testing.T) {
	t.Parallel()
	known := knownWords(t)
	program, err := os.ReadFile("coming_from_go_test.go")
	if err != nil {
		t.Fatal(err)
	}
	pool := parleytest.Database(t)
	calls := 0
	for number, spans := range ourCalls(t) {
		for _, span := range spans {
			calls++
			switch {
			case callInGo.MatchString(span):
				if !strings.Contains(string(program), span) {
					t.Errorf("%s:%d: no program of the tests has %s", comingFrom, number, span)
				}
			case callInSQL.MatchString(span):
				if err := runCall(t, pool, span); err != nil {
					t.Errorf("%s:%d: %s: %v", comingFrom, number, span, err)
				}
			default:
				for _, word := range wordsOf.FindAllString(span, -1) {
					if !known[word] {
						t.Errorf("%s:%d: %q in %q is nothing of Parley", comingFrom, number, word, span)
					}
				}
			}
		}
	}
	if calls < 60 {
		t.Errorf("the page has %d calls", calls)
	}
}

// scene makes two queues, and in the first one a message that waits, one that is claimed, and one that is set aside.
const scene = `
	drop table if exists public.given;
	select parley.drop_queue(q.queue_name, force => true) from parley.simple_queues as q;
	select parley.create_queue(q, kind => 'SIMPLE'), parley.keep_finished(q, '1 hour') from unnest(array['jobs', 'resize']) as q;
	select parley.put_batch('jobs', array['claimed', 'set aside', 'waits']);
	create table public.given as select c.claim from parley.claim('jobs') as c;
	alter table public.given add message_id bigint, add set_aside_id bigint;
	update public.given set set_aside_id = (select p.message_id from parley.peek_messages('jobs', 2) as p order by 1 desc limit 1);
	select parley.fail('jobs', g.set_aside_id) from public.given as g;
	update public.given set message_id = (select p.message_id from parley.peek_messages('jobs') as p order by 1 desc limit 1)`

// runCall runs a call in the scene; what answers with true or false has to answer with true.
func runCall(t *testing.T, pool *pgxpool.Pool, call string) error {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		return err
	}
	defer conn.Release()
	statements := []string{call}
	switch {
	case strings.HasPrefix(call, "begin; "):
		statements = strings.Split(call, "; ")
	case strings.HasPrefix(call, "parley.create_queue"):
		statements = []string{"select parley.drop_queue('jobs', force => true)", "select " + call}
	case strings.HasPrefix(call, "parley.") && !strings.Contains(call, "("):
		statements = []string{"select * from " + call}
	case strings.HasPrefix(call, "parley."):
		statements = []string{"select " + call + " from public.given"}
	}
	if _, err := conn.Conn().PgConn().Exec(t.Context(), scene).ReadAll(); err != nil {
		return fmt.Errorf("prepare the scene: %w", err)
	}
	for _, statement := range statements {
		results, err := conn.Conn().PgConn().Exec(t.Context(), statement).ReadAll()
		if err != nil {
			return err
		}
		for _, row := range results[0].Rows {
			if string(row[0]) == "f" {
				return errors.New("it did nothing")
			}
		}
	}
	return nil
}

// knownWords are the words that code on the page may have beside calls.
func knownWords(t *testing.T) map[string]bool {
	t.Helper()
	known := exportedNames(t)
	rows, err := parleytest.Database(t).Query(t.Context(), schemaSQL)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[*string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != nil {
			known[*name] = true
		}
	}
	return known
}
