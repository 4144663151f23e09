//go:build unix

package postgres

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestServerIsDurableAndOffTheNetwork(t *testing.T) {
	t.Parallel()
	server := start(t, smallConfig(emptyFolder(t)))
	for setting, want := range map[string]string{
		"fsync":                   "on",
		"full_page_writes":        "on",
		"synchronous_commit":      "on",
		"data_checksums":          "on",
		"listen_addresses":        "",
		"unix_socket_permissions": "0700",
		"shared_buffers":          "16MB", // the caller's choice wins
		"max_wal_size":            "4GB",
		"server_encoding":         "UTF8",
	} {
		if got := query(t, server.DSN("postgres"), "show "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}

func TestServerNeverRunsAsRoot(t *testing.T) {
	t.Parallel()
	if !procfs {
		t.Skip("this system does not show the owners of processes")
	}
	server := start(t, smallConfig(seededFolder(t)))
	p, _, err := server.folder.readPostmaster()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(p.pid)))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Error("the server runs as root")
	}
}

func TestTCPNeedsThePassword(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	config.TCP = true
	server := start(t, config)
	dsn, err := server.TCPDSN("postgres")
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, dsn, "select host(inet_server_addr())"); got != "127.0.0.1" {
		t.Errorf("the server answers at %s", got)
	}
	wrong, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword(superuser, "guess")
	if conn, err := pgx.Connect(t.Context(), wrong.String()); err == nil {
		_ = conn.Close(context.Background())
		t.Error("the server lets in who does not know the password")
	}
}

func TestTCPCannotBeHadFromAServerThatRunsWithout(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	server := start(t, config)
	if _, err := server.TCPDSN("postgres"); err == nil {
		t.Error("there is a TCP DSN without TCP")
	}
	config.TCP = true
	if _, err := Start(t.Context(), config); err == nil {
		t.Error("a server without TCP was joined as one with it")
	}
}

func TestEnsureDatabaseCreatesItOnce(t *testing.T) {
	t.Parallel()
	server := start(t, smallConfig(seededFolder(t)))
	for range 2 {
		if err := server.EnsureDatabase(t.Context(), `odd "name"/?`); err != nil {
			t.Fatal(err)
		}
	}
	if got := query(t, server.DSN(`odd "name"/?`), "select current_database()::text"); got != `odd "name"/?` {
		t.Errorf("connected to %q", got)
	}
}

func TestFolderWithALongNameGetsAShortSocket(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(emptyFolder(t), strings.Repeat("long-name/", 12))
	server := start(t, smallConfig(folder))
	birth(t, server)
	sockets := server.SocketFolder()
	info, err := os.Stat(sockets)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket folder has mode %v", info.Mode())
	}
	stop(t, server)
	if _, err := os.Stat(sockets); !os.IsNotExist(err) {
		t.Errorf("the socket folder is still there after the server stopped: %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	config := smallConfig(seededFolder(t))
	server := start(t, config)
	// As if another command were starting the server.
	busy, err := server.lockStart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, config); err == nil || !strings.Contains(err.Error(), "another command") {
		t.Errorf("got %v, want the wait for another command to be over", err)
	}
}
