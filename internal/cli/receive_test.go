package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/parleytest"
)

// waiting counts the sessions that wait for messages.
func waitingReaders(t *testing.T, pool *pgxpool.Pool) (count int) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		select count(*)
		from pg_stat_activity
		where datname = current_database() and state = 'active' and query like '%parley.receive(%' and pid <> pg_backend_pid()`).Scan(&count)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func awaitReaders(t *testing.T, pool *pgxpool.Pool, want int) {
	t.Helper()
	parleytest.Until(t, fmt.Sprintf("%d readers wait", want), func() bool { return waitingReaders(t, pool) == want })
}

// A reader that stays behind in the database would take the next message, and could not deliver it.
func TestReceiveThatIsInterruptedLeavesNoReaderBehind(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	if _, err := pool.Exec(t.Context(), "select parley.create_queue('shop')"); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var printed, complaints strings.Builder
	a := &verb.App{Stdin: strings.NewReader(""), Stdout: &printed, Stderr: &complaints}
	code := make(chan int)
	go func() {
		code <- execute(ctx, a, []string{"receive", "shop", "--timeout", "-1s", "--dsn", parleytest.DSN(t, pool)})
	}()
	awaitReaders(t, pool, 1)
	interrupt()
	if got := parleytest.Receive(t, code, "the end of the command"); got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
	if !strings.Contains(complaints.String(), "interrupted: nothing was received") || printed.Len() > 0 {
		t.Errorf("printed %q and %q", printed.String(), complaints.String())
	}
	awaitReaders(t, pool, 0)
}

// Messages that were printed were taken, and those that were not printed were not.
func TestReceiveTakesOnlyWhatItPrinted(t *testing.T) {
	t.Parallel()
	pool := parleytest.Database(t)
	for _, statement := range []string{
		"select parley.create_queue('web'), parley.create_queue('shop')",
		"select parley.create_service('Web', 'web'), parley.create_service('Shop', 'shop', array['DEFAULT'])",
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	handle, err := parley.BeginDialog(t.Context(), pool, "Web", "Shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := parley.Send(t.Context(), pool, handle, parley.DefaultMessageType, []byte("precious")); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"receive", "shop", "--dsn", parleytest.DSN(t, pool)}
	broken := &verb.App{Stdin: strings.NewReader(""), Stdout: fullDisk{}, Stderr: io.Discard}
	if code := execute(t.Context(), broken, arguments); code != 1 {
		t.Errorf("exit code %d on a full disk, want 1", code)
	}
	var printed strings.Builder
	a := &verb.App{Stdin: strings.NewReader(""), Stdout: &printed, Stderr: io.Discard}
	if code := execute(t.Context(), a, arguments); code != 0 || !strings.Contains(printed.String(), "precious") {
		t.Errorf("exit code %d, printed %q", code, printed.String())
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
