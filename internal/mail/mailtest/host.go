package mailtest

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/miekg/dns"
)

// NameServer runs a name server on loopback, by UDP and TCP, until the test ends, and gives its address.
func NameServer(t testing.TB, answer dns.Handler) (address string) {
	t.Helper()
	packets, listener := bothPorts(t)
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: answer}, {Listener: listener, Handler: answer}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() { _ = server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = server.Shutdown() })
	}
	return packets.LocalAddr().String()
}

// bothPorts opens a port that is free for UDP and for TCP.
func bothPorts(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		packets, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", listener.Addr().String())
		if err == nil {
			return packets, listener
		}
		_ = listener.Close()
	}
	t.Fatal("no port is free for UDP and TCP")
	return nil, nil
}

// FreeAddress gives an address of loopback with a port that is free now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// IsListening reports whether an address takes connections.
func IsListening(ctx context.Context, address string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// Program gives the path of a program, or skips the test where it is not installed and the variable is not set.
func Program(t testing.TB, name, variable string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv(variable) != "" {
			t.Fatalf("%s is set, but %s is not installed", variable, name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// InPieces reads a text so many bytes at a time.
func InPieces(text string, bytes int) io.Reader { return &pieces{text, bytes} }

type pieces struct {
	text  string
	bytes int
}

// Read gives the next piece.
func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.bytes, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}
