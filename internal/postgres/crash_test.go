//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestSupervisedServerIsStartedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	server := start(t, smallConfig(seededFolder(t)))
	dsn := server.DSN("postgres")
	execute(t, dsn, "create table kept as select 'committed' as word")
	before := birth(t, server)

	ctx, cancel := context.WithCancel(t.Context())
	supervised := make(chan error, 1)
	go func() { supervised <- server.Supervise(ctx) }()
	crash(t, server)
	await(t, func() bool {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	})
	if after := birth(t, server); after == before {
		t.Error("the server did not crash")
	}
	if word := query(t, dsn, "select word from kept"); word != "committed" {
		t.Errorf("the table holds %q", word)
	}
	cancel()
	if err := <-supervised; err != nil {
		t.Errorf("the end of supervision is no error, but got %v", err)
	}
}

func TestStartRecoversFromACrash(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	server := start(t, config)
	execute(t, server.DSN("postgres"), "create table kept as select 'committed' as word")
	crash(t, server)
	again := start(t, config)
	if word := query(t, again.DSN("postgres"), "select word from kept"); word != "committed" {
		t.Errorf("the table holds %q", word)
	}
}

// A backend that computes does not notice that its postmaster has died, and would keep a new one from starting.
func TestBackendThatOutlivesItsPostmasterDoesNotPreventAStart(t *testing.T) {
	t.Parallel()
	if !procfs {
		t.Skip("this system does not show which processes belong to a cluster")
	}
	config := smallConfig(seededFolder(t))
	server := start(t, config)
	conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	computing := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "do $$ begin loop end loop; end $$")
		computing <- err
	}()
	await(t, func() bool {
		return query(t, server.DSN("postgres"), "select count(*)::text from pg_stat_activity where query like 'do %' and state = 'active'") == "1"
	})
	crash(t, server)
	again := start(t, config)
	birth(t, again)
	if err := <-computing; err == nil {
		t.Error("an endless loop ended well")
	}
}

// A process that finds no number of a postmaster may come while one begins whose starter was killed: it and its processes are left alone.
func TestServerThatIsThereIsNoLeftover(t *testing.T) {
	t.Parallel()
	if !procfs {
		t.Skip("this system does not show which processes belong to a cluster")
	}
	server := start(t, smallConfig(seededFolder(t)))
	before := birth(t, server)
	if isThere, err := server.folder.clearDead(t.Context()); !isThere || err != nil {
		t.Errorf("the server is there: %v, %v", isThere, err)
	}
	if after := birth(t, server); after != before {
		t.Error("the server was stopped")
	}
}

// A server that is stopped on the spot before it was seen to be ready has not failed to start.
func TestSupervisedServerThatIsStoppedWhileItStartsIsStartedAgain(t *testing.T) {
	t.Parallel()
	server := start(t, smallConfig(seededFolder(t)))
	programs, err := server.programs(t.Context(), server.major)
	if err != nil {
		t.Fatal(err)
	}
	// The programs in its place: the first server ends well at once.
	server.config.Binaries = emptyFolder(t)
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$3\" = -k ] && mkdir %s/first 2>/dev/null; then exit 0; fi\nexec %s \"$@\"\n",
		server.config.Binaries, programs.program("postgres"))
	if err := errors.Join(os.WriteFile(filepath.Join(server.config.Binaries, "postgres"), []byte(script), 0o755),
		os.Symlink(programs.program("initdb"), filepath.Join(server.config.Binaries, "initdb")), server.Own(server.config.Binaries)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	supervised := make(chan error, 1)
	go func() { supervised <- server.Supervise(ctx) }()
	crash(t, server)
	await(t, func() bool {
		conn, err := pgx.Connect(t.Context(), server.DSN("postgres"))
		return len(supervised) > 0 || err == nil && conn.Close(t.Context()) == nil
	})
	if _, err := os.Stat(filepath.Join(server.config.Binaries, "first")); err != nil {
		t.Errorf("no server was stopped: %v", err)
	}
	cancel()
	if err := <-supervised; err != nil {
		t.Errorf("supervision ended with %v", err)
	}
}

func TestStaleProcessFileWithTheNumberOfALivingProcessDoesNotPreventAStart(t *testing.T) {
	t.Parallel()
	if !procfs {
		t.Skip("this system does not show which processes belong to a cluster")
	}
	config := smallConfig(seededFolder(t))
	server := start(t, config)
	account := server.folder.account
	stop(t, server)

	// A process of the server's own user that has nothing to do with it.
	bystander := account.command("/bin/sh", "-c", "read -r _")
	input, err := bystander.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = input.Close()
		_ = bystander.Wait()
	}()
	cluster := server.folder.cluster
	text := fmt.Sprintf("%d\n%s\n1\n5432\n%s\n\n 1 1\nready   \n", bystander.Process.Pid, cluster, server.folder.sockets)
	if err := writeFor(account, filepath.Join(cluster, "postmaster.pid"), text); err != nil {
		t.Fatal(err)
	}
	birth(t, start(t, config))
}

func TestClusterThatDoesNotStartIsAnErrorThatQuotesTheLog(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	breakCluster(t, config)
	_, err := Start(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "pg_control") {
		t.Errorf("got %v, want what the log says about pg_control", err)
	}
}

func TestDisposableClusterThatDoesNotStartIsMadeAnew(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	breakCluster(t, config)
	config.Disposable = true
	birth(t, start(t, config))
}

func breakCluster(t *testing.T, config Config) {
	t.Helper()
	server := start(t, config)
	stop(t, server)
	if err := os.Remove(filepath.Join(server.folder.cluster, "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
}
