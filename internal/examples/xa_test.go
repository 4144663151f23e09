package examples_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/parleytest"
)

const (
	messagesMoved = 20
	withoutWaking = "SESSION_OPTIONS=-c parley.notify=off"
)

// A program moves messages from a queue of one database to one of another, by pgjdbc and the transaction manager Narayana, while somebody
// listens on both. It dies at each step between the first prepare and the last commit; what it leaves in doubt its recovery finishes. In the end each
// message is in the second queue, once.
func TestDistributedTransactionsMoveEachMessageOnce(t *testing.T) {
	if asked := strings.Fields(os.Getenv(variable)); !slices.Contains(asked, "xa") && !slices.Contains(asked, "all") {
		t.Skipf("%s does not ask for xa", variable)
	}
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatal(err)
		}
	}
	w := language{prepare: maven}.workspace(t, "xa")
	second, environment := newDatabase(t, "xa_second")
	w.environment = append(jdbcAs("FIRST_URL", w.environment), jdbcAs("SECOND_URL", environment)...)
	for _, db := range []*pgx.Conn{w.db, second} {
		execute(t, db, "select parley.create_queue('jobs', kind => 'SIMPLE', poison_rollbacks => 15)")
		execute(t, db, "select parley.listen_for_messages('jobs', 3600)")
	}
	execute(t, w.db, "select parley.put_batch('jobs', array(select n::text from generate_series(1, $1) as n))", messagesMoved)

	// With wake-ups PostgreSQL refuses to prepare, and everything is rolled back.
	output, err := w.command(t, append(java("Mover")(""), "nowhere"), parleytest.Patience).CombinedOutput()
	if err == nil {
		t.Fatalf("with wake-ups everything was moved, though somebody listens:\n%s", output)
	}
	w.recover(t)
	requireCounts(t, w.db, second, messagesMoved, 0)

	w.environment = append(w.environment, withoutWaking)
	moved := 0
	for _, step := range []struct {
		death   string
		inDoubt int
		moves   int // of the two before and the one in which it dies
	}{
		{"second.prepare", 1, 2},
		{"-second.prepare", 2, 2},
		{"first.commit", 2, 3},
		{"second.commit", 1, 3},
		{"-second.commit", 0, 3},
	} {
		output, err := w.command(t, append(java("Mover")(""), step.death), parleytest.Patience).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 9 {
			t.Fatalf("the program that is to die at %s ends with %v:\n%s", step.death, err, output)
		}
		if got := inDoubt(t, w.db); got != step.inDoubt {
			t.Errorf("%s leaves %d transactions in doubt, want %d", step.death, got, step.inDoubt)
		}
		w.recover(t)
		if got := inDoubt(t, w.db); got != 0 {
			t.Errorf("recovery after %s leaves %d transactions in doubt", step.death, got)
		}
		moved += step.moves
		requireCounts(t, w.db, second, messagesMoved-moved, moved)
	}
	w.complete(t, append(java("Mover")(""), "nowhere"), parleytest.Patience)
	requireCounts(t, w.db, second, 0, messagesMoved)
	var once bool
	ask(t, second, "select count(distinct parley.body_text(body)) = 20 from parley.peek_messages('jobs', 1000)", &once)
	if !once {
		t.Error("a message has arrived twice in the place of another")
	}
}

func (w *workspace) recover(t *testing.T) {
	t.Helper()
	w.complete(t, append(java("Mover")(""), "recover"), parleytest.Patience)
}

// jdbcAs gives the address for JDBC under another name.
func jdbcAs(name string, environment []string) []string {
	for _, entry := range environment {
		if address, ok := strings.CutPrefix(entry, "JDBC_URL="); ok {
			return []string{name + "=" + address}
		}
	}
	return nil
}

func execute(t *testing.T, db *pgx.Conn, statement string, arguments ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), statement, arguments...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func inDoubt(t *testing.T, db *pgx.Conn) (transactions int) {
	t.Helper()
	ask(t, db, "select count(*) from pg_prepared_xacts", &transactions)
	return transactions
}

func requireCounts(t *testing.T, first, second *pgx.Conn, left, moved int) {
	t.Helper()
	for db, want := range map[*pgx.Conn]int{first: left, second: moved} {
		var got int
		ask(t, db, "select count(*) from parley.peek_messages('jobs', 1000)", &got)
		if got != want {
			t.Errorf("%d messages wait in one of the queues, want %d", got, want)
		}
	}
}
