package translator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-broker/parley/parleytest"
)

// A lock of sp_getapplock is held against other sessions until its transaction ends, or its session frees it.
func TestApplicationLocks(t *testing.T) {
	t.Parallel()
	dsn := parleytest.DSN(t, parleytest.EmptyDatabase(t))
	run(t, dsn, "CREATE TABLE k (id int)") // which makes the schema dbo: a transaction that makes it holds others up
	a, b := opened(t, dsn), opened(t, dsn)
	expect := func(s *openSession, script, want string) {
		t.Helper()
		if got := s.run(t, script); got != want {
			t.Errorf("%s gives %q, not %q", script, got, want)
		}
	}
	const get = "DECLARE @r int EXEC @r = sp_getapplock @Resource = 'r', @LockMode = 'Exclusive', @LockTimeout = 20"
	expect(a, get+" PRINT @r", "-999") // no transaction owns it
	expect(a, "BEGIN TRAN "+get+" PRINT @r", "0")
	expect(a, get+" PRINT @r", "0")
	expect(b, "BEGIN TRAN "+get+" PRINT @r", "-1")
	expect(a, "ROLLBACK", "")
	expect(b, get+" PRINT @r COMMIT", "0")
	const shared = "DECLARE @r int EXEC @r = sp_getapplock 'r', 'Shared', 'Session', 20 PRINT @r"
	expect(a, shared, "0")
	expect(b, shared, "0")
	const free = "EXEC sp_releaseapplock 'none', 'Session'"
	expect(b, free, "Msg 1223, 1: Cannot release the application lock (Database Principal: 'public', Resource: 'none') because it is not currently held.")
}

// SET LOCK_TIMEOUT bounds the wait for a lock with error 1222, also after a rollback; the transaction stays.
func TestLockTimeoutEndsTheWait(t *testing.T) {
	t.Parallel()
	pool := parleytest.EmptyDatabase(t)
	dsn := parleytest.DSN(t, pool)
	run(t, dsn, "CREATE TABLE k (id int PRIMARY KEY, n int) INSERT k VALUES (1, 1)")
	holder, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "update dbo.k set n = 2"); err != nil {
		t.Fatal(err)
	}
	s := opened(t, dsn)
	began := time.Now()
	got := s.run(t, `SET LOCK_TIMEOUT 30
BEGIN TRAN
UPDATE k SET n = 3
PRINT @@TRANCOUNT
UPDATE k SET n = 3
ROLLBACK
UPDATE k SET n = 3
SET LOCK_TIMEOUT 0
UPDATE k SET n = 3
PRINT @@LOCK_TIMEOUT`)
	refusedAt := func(line int) string {
		return fmt.Sprintf("Msg 1222, %d: Lock request time out period exceeded.\n", line)
	}
	want := refusedAt(3) + "1\n" + refusedAt(5) + refusedAt(7) + refusedAt(9) + "0"
	if got != want || time.Since(began) > parleytest.Patience {
		t.Errorf("%s\n--- want\n%s", got, want)
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.run(t, "SET LOCK_TIMEOUT -1 UPDATE k SET n = 4"); got != "(1)" {
		t.Errorf("after the lock is free: %s", got)
	}
}
