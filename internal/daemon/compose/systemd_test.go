package compose

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-broker/parley/parleytest"
)

// The environment is the process's, so this test runs alone.
func TestServeNotifiesTheServiceManagerWhenItIsReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	t.Setenv("NOTIFY_SOCKET", path)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := &Daemon{Logger: slog.New(slog.DiscardHandler)}
	s.reportToSystemd(ctx)
	expect := func(want string) {
		t.Helper()
		buffer := make([]byte, 100)
		if err := socket.SetReadDeadline(time.Now().Add(parleytest.Patience)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(buffer)
		if err != nil || string(buffer[:n]) != want {
			t.Errorf("it received %q, %v", buffer[:n], err)
		}
	}
	expect("READY=1")
	stop()
	expect("STOPPING=1")
}
