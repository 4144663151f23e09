package link

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	"github.com/parley-broker/parley/internal/logtest"
)

// dialFrom opens a socket from an address of this machine.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// another gives an address that leads to a server as if from another host.
func another(t *testing.T, to string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_, _ = to.Close(), from.Close()
			}
			running.Go(func() { pass(in, out) })
			running.Go(func() { pass(out, in) })
		}
	})
	return listener.Addr().String()
}

func limited(log *logtest.Log, change func(*Config)) Config {
	config := plaintext()
	config.Log = log.Logger(slog.LevelInfo)
	change(&config)
	return config
}

// Silent sockets take the places of their own address, and not those of others.
func TestSilentSocketsOfOneHostLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	server, address := serve(t, newReceiver(), limited(&log, func(c *Config) { c.HandshakesPerHost, c.ConnectTimeout = 4, time.Hour }))
	for range 20 {
		dialFrom(t, "127.0.0.1", address)
	}
	eventually(t, "all but four are closed", func() bool { return server.Counters().Refused == 16 })
	deliver(t, connect(t, another(t, address), plaintext()), batch(run(1, 0, "a")))
	if n := log.Count(tooManyFromOne); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
}

func TestHandshakesOfAllHostsAreLimited(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	server, address := serve(t, newReceiver(), limited(&log, func(c *Config) { c.Handshakes, c.ConnectTimeout = 4, time.Hour }))
	for range 3 {
		dialFrom(t, "127.0.0.1", address)
		dialFrom(t, "127.0.0.2", address)
	}
	eventually(t, "two are closed", func() bool { return server.Counters().Refused == 2 })
	if n := log.Count(tooManyGreeting); n < 1 || n > 2 {
		t.Errorf("the log has %d lines", n)
	}
}

func TestConnectionsOfAllHostsAreLimited(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	server, address := serve(t, newReceiver(), limited(&log, func(c *Config) { c.Peers, c.HandshakesPerHost, c.ConnectTimeout = 1, 100, time.Hour }))
	for range 20 { // 18 are enough for one peer, those on their way in, and those on their way out
		dialFrom(t, "127.0.0.1", address)
	}
	eventually(t, "two are closed", func() bool { return server.Counters().Refused == 2 })
	if n := log.Count(tooManySockets); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
}

// A socket that does not identify itself in time is closed, also after a part of the handshake, and leaves its place.
func TestHandshakeThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	server, address := serve(t, newReceiver(), limited(&log, func(c *Config) { c.HandshakesPerHost, c.ConnectTimeout = 3, 100*time.Millisecond }))
	preface := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	for _, sent := range [][]byte{nil, preface[:5], preface} {
		conn := dialFrom(t, "127.0.0.1", address)
		if _, err := conn.Write(sent); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Logf("ended by %v", err)
		}
	}
	eventually(t, "one was late at least", func() bool { return server.Counters().Late > 0 })
	slow := plaintext()
	eventually(t, "there is room again", func() bool {
		_, err := connect(t, address, slow).Deliver(t.Context(), batch(run(1, 0, "a")))
		return err == nil
	})
	if n := log.Count(tooLateToGreet); n != 1 {
		t.Errorf("the log has %d lines", n)
	}
}

// An identified peer takes no place of those that are not identified.
func TestLinksAreNoHandshakes(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	server, address := serve(t, newReceiver(), limited(&log, func(c *Config) { c.HandshakesPerHost, c.Handshakes = 1, 1 }))
	for range 5 {
		deliver(t, connect(t, address, plaintext()), batch(run(1, 0, "a")))
	}
	if c := server.Counters(); c.Refused != 0 || c.Late != 0 || c.Accepted != 5 {
		t.Errorf("counted %+v", c)
	}
}

func TestConnectionsOfOneHostAreLimited(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	server, address := serve(t, newReceiver(), limited(&log, func(c *Config) { c.SocketsPerHost = 2 }))
	var links []*Link
	for range 2 {
		links = append(links, connect(t, address, plaintext()))
		deliver(t, links[len(links)-1], batch(run(1, 0, "a")))
	}
	if _, err := connect(t, address, plaintext()).Deliver(t.Context(), batch(run(1, 0, "a"))); err == nil {
		t.Error("a third one was accepted")
	}
	deliver(t, connect(t, another(t, address), plaintext()), batch(run(1, 0, "a")))
	if n := log.Count(tooManyOfHost); n != 1 || server.Counters().Refused == 0 {
		t.Errorf("the log has %d lines, counted %+v", n, server.Counters())
	}
	links[0].Close()
	eventually(t, "there is room again", func() bool {
		_, err := connect(t, address, plaintext()).Deliver(t.Context(), batch(run(1, 0, "a")))
		return err == nil
	})
}

// Streams that come and go without a hello keep no connection open.
func TestHandshakeIsNotProlongedByNewStreams(t *testing.T) {
	t.Parallel()
	config := plaintext()
	config.ConnectTimeout = 100 * time.Millisecond
	_, address := serve(t, newReceiver(), config)
	var dialled atomic.Int64
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dialled.Add(1)
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 10 {
		stream, err := pb.NewBrokerClient(conn).Exchange(t.Context())
		if err == nil {
			_, err = stream.Recv()
		}
		t.Log(err)
		if dialled.Load() > 1 {
			return
		}
	}
	t.Error("ten streams without a hello had one connection")
}
