package site_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-broker/parley/internal/measure/site"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for a machine that does other things; nothing waits so long when all is well.
const patience = time.Minute

// echo answers each line with itself, until the test ends.
func echo(t *testing.T) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return listener.Addr().String()
}

func relay(t *testing.T, to string) *site.Relay {
	t.Helper()
	r, err := site.NewRelay(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func exchange(conn net.Conn, line string) (string, error) {
	if _, err := io.WriteString(conn, line+"\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

func TestRelayCarriesBothWaysAndCounts(t *testing.T) {
	t.Parallel()
	r := relay(t, echo(t))
	conn := dial(t, r.Address())
	if answer, err := exchange(conn, "hello"); err != nil || answer != "hello\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	if r.Carried() != 2*int64(len("hello\n")) || r.Connections() != 1 {
		t.Errorf("%d bytes were carried on %d connections", r.Carried(), r.Connections())
	}
}

func TestRelayPassesOnTheEndOfInput(t *testing.T) {
	t.Parallel()
	r := relay(t, echo(t))
	conn := dial(t, r.Address())
	if _, err := io.WriteString(conn, "the end"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "the end" {
		t.Errorf("%q, %v", answer, err)
	}
}

func TestCutRelayBreaksWhatPassesAndWhatComesUntilItIsRestored(t *testing.T) {
	t.Parallel()
	r := relay(t, echo(t))
	open := dial(t, r.Address())
	if _, err := exchange(open, "before"); err != nil {
		t.Fatal(err)
	}
	r.Cut()
	if !r.IsCut() {
		t.Error("it does not know that it is cut")
	}
	if answer, err := exchange(open, "during"); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the open connection: %q, %v", answer, err)
	}
	// A new connection is broken at once, at times before the dialling end knows that it is open.
	fresh, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.Address())
	if err == nil {
		defer fresh.Close()
		var answer string
		_ = fresh.SetDeadline(time.Now().Add(patience))
		if answer, err = exchange(fresh, "during"); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a new connection: %q, %v", answer, err)
		}
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection: %v", err)
	}
	r.Restore()
	if answer, err := exchange(dial(t, r.Address()), "after"); err != nil || answer != "after\n" {
		t.Errorf("%q, %v", answer, err)
	}
	if _, err := exchange(open, "again"); err == nil {
		t.Error("a connection that was cut came back")
	}
}

func TestRelayToNowhereBreaksItsConnections(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := listener.Addr().String()
	_ = listener.Close()
	conn := dial(t, relay(t, nowhere).Address())
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v", err)
	}
}
