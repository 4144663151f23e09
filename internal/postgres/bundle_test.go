//go:build unix

package postgres

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/backoff"
)

// emptyFolder is a new data folder that PostgreSQL's user can reach, which a test's own folder may not be.
func emptyFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "parley-postgres-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	return folder
}

// seed is a data folder with a new cluster, made once if a test needs it: copying is faster than making another.
var seed string

var makeSeed = sync.OnceValue(func() (err error) {
	if seed, err = os.MkdirTemp("", "parley-postgres-test-"); err != nil {
		return err
	}
	if err := os.Chmod(seed, 0o711); err != nil {
		return err
	}
	server, err := Start(context.Background(), smallConfig(seed))
	if err != nil {
		return err
	}
	return server.Stop(context.Background())
})

// seededFolder is a data folder with a new cluster that nothing runs on.
func seededFolder(t *testing.T) string {
	t.Helper()
	if err := makeSeed(); err != nil {
		t.Fatal(err)
	}
	folder := emptyFolder(t)
	out, err := exec.Command("cp", "-a", filepath.Join(seed, "cluster"), filepath.Join(seed, passwordFile), folder).CombinedOutput()
	if err != nil {
		t.Fatalf("copy the cluster: %v: %s", err, out)
	}
	return folder
}

// smallConfig asks for the version of the test run, with little memory.
func smallConfig(folder string) Config {
	return Config{
		Data:     folder,
		Version:  os.Getenv("PARLEY_TEST_POSTGRES"),
		Settings: map[string]string{"shared_buffers": "16MB"},
	}
}

func start(t *testing.T, config Config) *Server {
	t.Helper()
	server, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	return server
}

func stop(t *testing.T, server *Server) {
	t.Helper()
	if err := server.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// query returns the one text value of a query, on a connection of its own.
func query(t *testing.T, dsn, sql string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func execute(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// birth identifies one start of a server.
func birth(t *testing.T, server *Server) string {
	t.Helper()
	return query(t, server.DSN("postgres"), "select pg_postmaster_start_time()::text")
}

func runs(t *testing.T, server *Server) bool {
	t.Helper()
	p, ok, err := server.folder.readPostmaster()
	if err != nil {
		t.Fatal(err)
	}
	return ok && server.folder.serves(p.pid)
}

// crash kills the server as the kernel would when memory runs out.
func crash(t *testing.T, server *Server) {
	t.Helper()
	p, ok, err := server.folder.readPostmaster()
	if err != nil || !ok {
		t.Fatalf("no server to kill: %v", err)
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return !server.folder.serves(p.pid) })
}

// await waits until something holds. It gives up only with the whole test binary.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		if err := backoff.Wait(t.Context(), lockPoll); err != nil {
			t.Fatal(err)
		}
	}
}
