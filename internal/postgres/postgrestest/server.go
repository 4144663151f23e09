// Package postgrestest starts servers that one test has for itself: it may stop and crash them.
package postgrestest

import (
	"context"
	"maps"
	"os"
	"testing"

	"github.com/parley-broker/parley/internal/postgres"
)

// Folder makes a folder for the time of a test. The server's user, who is not root, can get into it.
func Folder(t testing.TB) string {
	t.Helper()
	// That of the test is too long for the name of a socket.
	folder, err := os.MkdirTemp("", "parley-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Start starts a server of the version under test until the test ends. It compiles no queries unless it is asked to: that takes longer than
// what they do to a test's few rows.
func Start(t testing.TB, config postgres.Config) *postgres.Server {
	t.Helper()
	settings := map[string]string{"jit": "off"}
	maps.Copy(settings, config.Settings)
	config.Settings = settings
	if config.Data == "" {
		config.Data = Folder(t)
	}
	if config.Binaries == "" {
		config.Version = os.Getenv("PARLEY_TEST_POSTGRES")
	}
	server, err := postgres.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Supervised starts a small server that is started again whenever it is gone, with settings besides the usual ones.
func Supervised(t testing.TB, settings map[string]string) *postgres.Server {
	t.Helper()
	all := map[string]string{
		"fsync":          "off", // only processes die, and the page cache outlives them
		"shared_buffers": "32MB",
	}
	maps.Copy(all, settings)
	server := Start(t, postgres.Config{Settings: all})
	ctx, cancel := context.WithCancel(context.Background())
	supervised := make(chan error, 1)
	go func() { supervised <- server.Supervise(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-supervised; err != nil {
			t.Error(err)
		}
	})
	return server
}
