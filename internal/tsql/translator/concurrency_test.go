package translator_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

// A statement that waits for a row computes with what the other transaction left, also where it knows the old values.
func TestAnUpdateThatWaitsLosesNothing(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	run(t, dsn, "CREATE TABLE n (id int PRIMARY KEY, v int) INSERT n VALUES (1, 1)")
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `update dbo.n set v = v + 10`); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() { got <- run(t, dsn, "UPDATE n SET v += 1 OUTPUT deleted.v, inserted.v") }()
	parleytest.Until(t, "the update waits", func() bool { return waitsForALock(t, pool) })
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := <-got; found != "11|12" {
		t.Errorf("the update gives %q", found)
	}
	// READPAST leaves out the row that another transaction holds.
	holder, err = pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `select from dbo.n for update`); err != nil {
		t.Fatal(err)
	}
	if found := run(t, dsn, "DELETE TOP (1) FROM n WITH (READPAST) OUTPUT deleted.id"); found != "" {
		t.Errorf("a locked row is deleted: %q", found)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A client that runs no T-SQL cannot leave a trigger out without saying so.
func TestAPlainClientIsToldOfATrigger(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	run(t, parleytest.DSN(t, pool), "CREATE TABLE w (id int)\nGO\nCREATE TRIGGER tr ON w FOR INSERT AS PRINT 'fired'")
	_, err := pool.Exec(t.Context(), "insert into dbo.w values (1)")
	if err == nil || !strings.Contains(err.Error(), "T-SQL trigger tr") {
		t.Errorf("a plain insert gives %v", err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "set parley.tsql = 'skip'"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "insert into dbo.w values (1)"); err != nil {
		t.Errorf("an insert that is allowed gives %v", err)
	}
}

// A statement that waits for a row of a table without a key finds what the other transaction left, too.
func TestATableWithoutAKeyLosesNoChange(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	run(t, dsn, "CREATE TABLE n (id int, v int) CREATE TABLE w (id int, by_trigger int) INSERT n VALUES (1, 1) INSERT w VALUES (1, 0) "+
		"CREATE TABLE x (doc xml) INSERT x VALUES ('<a/>')\nGO\n"+
		"CREATE TRIGGER tr ON w AFTER UPDATE AS UPDATE w SET by_trigger += 1 WHERE id IN (SELECT id FROM inserted)")
	for _, c := range []struct{ rule, before, script, want string }{
		{"OUTPUT", "update dbo.n set v = 11", "UPDATE n SET v += 1 OUTPUT deleted.v, inserted.v", "11|12"},
		{"a variable", "update dbo.n set v = 20", "DECLARE @v int UPDATE n SET @v = v = v + 1 PRINT @v", "(1)\n21"},
		{"a join", "update dbo.n set v = 30", "UPDATE n SET v = n.v + x.d FROM n JOIN (VALUES (1, 1), (1, 1)) AS x (id, d) ON x.id = n.id", "(1)"},
		{"TOP in a transaction", "update dbo.n set v = v + 1", "BEGIN TRAN UPDATE TOP (1) n SET v += 1 COMMIT SELECT v FROM n", "(1)\n33"},
		{"a row that no longer qualifies", "update dbo.n set v = 0", "UPDATE n SET v = 5 OUTPUT inserted.v WHERE v = 33", ""},
		{"a trigger", "update dbo.w set by_trigger = 7", "UPDATE w SET id = 1 SELECT by_trigger FROM w", "(1)\n(1)\n8"},
		{"modify of xml", "update dbo.x set doc = '<a><c/></a>'", "UPDATE x SET doc.modify('insert <b/> as last into (/a)[1]') OUTPUT inserted.doc", "<a><c/><b/></a>"},
		{"a row whose xml no longer qualifies", "update dbo.x set doc = '<a/>'", "DELETE x OUTPUT deleted.doc WHERE doc.exist('/a/b') = 1", ""},
		{"DELETE", "update dbo.n set v = 40", "DELETE TOP (1) FROM n OUTPUT deleted.v", "40"},
	} {
		holder, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.Exec(t.Context(), "set local parley.tsql = 'skip'"); err != nil {
			t.Fatal(err)
		}
		if _, err := holder.Exec(t.Context(), c.before); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		go func() { got <- run(t, dsn, c.script) }()
		parleytest.Until(t, c.rule+" waits", func() bool { return waitsForALock(t, pool) })
		if err := holder.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := <-got; found != c.want {
			t.Errorf("%s: %q gives %q, not %q", c.rule, c.script, found, c.want)
		}
	}
}

// Sessions that take rows of one table take each once, whether it has a key or not.
func TestSessionsTakeEachRowOnce(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", " PRIMARY KEY"} {
		pool := parleytest.EmptyDatabase(t)
		dsn := parleytest.DSN(t, pool)
		run(t, dsn, "SET NOCOUNT ON CREATE TABLE q (id int"+key+") DECLARE @i int = 0 WHILE @i < 40 BEGIN INSERT q VALUES (@i) SET @i += 1 END")
		taken := make(chan string, 4)
		for range 4 {
			go func() {
				taken <- run(t, dsn, "DECLARE @i int = 0 WHILE @i < 10 BEGIN DELETE TOP (1) FROM q OUTPUT deleted.id SET @i += 1 END")
			}()
		}
		seen := map[string]bool{}
		for range 4 {
			for id := range strings.SplitSeq(<-taken, "\n") {
				if seen[id] {
					t.Errorf("key %q: %s is taken twice", key, id)
				}
				seen[id] = true
			}
		}
		if left := run(t, dsn, "SELECT COUNT(*) FROM q"); len(seen) != 40 || left != "0" {
			t.Errorf("key %q: %d rows are taken, %s are left", key, len(seen), left)
		}
	}
}

// Scripts that count on locks get them: UPDLOCK lets one session after another decide, SERIALIZABLE refuses what has no order.
func TestSessionsThatDecideByWhatTheyReadDoNotDecideAlike(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	run(t, dsn, "CREATE TABLE seat (id int PRIMARY KEY, taken int) INSERT seat VALUES (1, 0), (2, 0)")
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "select from dbo.seat where id = 1 for update"); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		got <- run(t, dsn, "DECLARE @t int BEGIN TRAN SELECT @t = taken FROM seat WITH (UPDLOCK) WHERE id = 1 "+
			"IF @t = 0 UPDATE seat SET taken = 7 WHERE id = 1 ELSE PRINT CONCAT('taken by ', @t) COMMIT")
	}()
	parleytest.Until(t, "the second session waits", func() bool { return waitsForALock(t, pool) })
	if _, err := holder.Exec(t.Context(), "update dbo.seat set taken = 5 where id = 1"); err != nil {
		t.Fatal(err)
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := <-got; found != "taken by 5" {
		t.Errorf("the second session gives %q", found)
	}
	// Each of two sessions reads what the other writes: in one order after the other only one could.
	const first = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE BEGIN TRAN DECLARE @n int SELECT @n = SUM(taken) FROM seat"
	a, b := opened(t, dsn), opened(t, dsn)
	a.run(t, first)
	b.run(t, first)
	a.run(t, "UPDATE seat SET taken = 1 WHERE id = 1\nGO\nCOMMIT")
	found := b.run(t, "UPDATE seat SET taken = 1 WHERE id = 2\nGO\nIF @@TRANCOUNT > 0 COMMIT")
	if !strings.Contains(found, "Msg 1205") {
		t.Errorf("the session that comes second gives %q", found)
	}
}

// The row under a cursor that another session took away is error 16947, and no other row is changed in its place.
func TestARowUnderACursorThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	run(t, dsn, "CREATE TABLE k (id int, v int) INSERT k VALUES (1, 1), (2, 2)")
	s := opened(t, dsn)
	s.run(t, "DECLARE c CURSOR FOR SELECT id FROM k ORDER BY id OPEN c FETCH c")
	if _, err := pool.Exec(t.Context(), "delete from dbo.k where id = 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "vacuum dbo.k"); err != nil {
		t.Fatal(err)
	}
	run(t, dsn, "INSERT k VALUES (3, 3)") // it may take the place of the row that is gone
	got := s.run(t, "UPDATE k SET v = 9 WHERE CURRENT OF c\nGO\nDELETE k WHERE CURRENT OF c\nGO\nSELECT id, v FROM k ORDER BY id")
	const want = "Msg 16947, 1: No rows were updated or deleted.\nMsg 16947, 1: No rows were updated or deleted.\n2|2\n3|3"
	if got != want {
		t.Errorf("--- got\n%s\n--- want\n%s", got, want)
	}
}

// waitsForALock reports whether a session of the database waits for another one.
func waitsForALock(t *testing.T, pool *pgxpool.Pool) (waits bool) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
	return err == nil && waits
}
