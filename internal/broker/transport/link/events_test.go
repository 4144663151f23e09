package link

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	"github.com/parley-broker/parley/internal/logtest"
)

// traced gives a config a log that holds everything.
func traced(config Config) (Config, *logtest.Log) {
	log := &logtest.Log{}
	config.Log = log.Logger(slog.LevelDebug)
	return config, log
}

// event is the beginning of the log lines about it.
func event(level, text string, e transport.TraceEvent) string {
	log := &logtest.Log{}
	e.In(log.Logger(slog.LevelInfo)).Info("")
	_, attributes, _ := strings.Cut(strings.TrimSpace(log.String()), `msg="" `)
	return "level=" + level + " msg=" + text + " " + attributes
}

func wantEvents(t *testing.T, log *logtest.Log, want ...string) {
	t.Helper()
	for _, line := range want {
		eventually(t, line, func() bool { return log.Count(line) == 1 })
	}
}

// Both ends log a connection, the login and what is acknowledged under the names of SQL Server's profiler (spec 8.5).
func TestBothEndsLogTheLifeOfAConnection(t *testing.T) {
	t.Parallel()
	ours, here := traced(plaintext())
	theirs, there := traced(plaintext())
	server, address := serve(t, newReceiver(), theirs)
	l := connect(t, address, ours)
	deliver(t, l, batch(run(1, 7, "a", "b")))
	wantEvents(t, here,
		event("DEBUG", "connecting", transport.Connecting)+" address="+address,
		event("INFO", "connected", transport.Connected)+" address="+address,
		event("DEBUG", `"logged in"`, transport.LoginSuccess)+" address="+address,
		event("DEBUG", "acknowledged", transport.AckReceived)+" address="+address,
	)
	wantEvents(t, there,
		event("INFO", `"connection accepted"`, transport.ConnectionMade),
		event("DEBUG", `"logged in"`, transport.LoginSuccess),
		event("DEBUG", "acknowledged", transport.AckSent),
	)
	for _, log := range []*logtest.Log{here, there} {
		wantEvents(t, log, "from_initiator=true first_sequence=7 next_sequence=9 priority=5")
	}
	server.Close()
	wantEvents(t, here, event("INFO", `"connection closed"`, transport.ReceiveIOError)+" address="+address)
	wantEvents(t, there, event("INFO", `"accepted connection closed"`, transport.ConnectionGone))
}

// A record that the log does not want costs nothing, and is not there.
func TestAcknowledgementsAreNotLoggedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	log := &logtest.Log{}
	config := plaintext()
	config.Log = log.Logger(slog.LevelInfo)
	_, address := serve(t, newReceiver(), plaintext())
	deliver(t, connect(t, address, config), batch(run(1, 0, "a")))
	if n := log.Count("msg=connected"); n != 1 {
		t.Errorf("connected %d times", n)
	}
	if n := log.Count("acknowledged") + log.Count("logged in") + log.Count("connecting"); n != 0 {
		t.Errorf("the log has %d lines that are for debugging", n)
	}
}

func TestConnectionsThatDoNotComeAboutAreLogged(t *testing.T) {
	t.Parallel()
	mine, yours, other := certify(t, "mine"), certify(t, "yours"), certify(t, "other")
	_, address := serve(t, newReceiver(), Config{TLS: believing(yours, mine)})
	for name, c := range map[string]struct {
		address string
		config  Config
		want    []string
	}{
		"nobody is there": {"127.0.0.1:1", plaintext(), []string{event("INFO", `"no connection"`, transport.ConnectFailed)}},
		"the server is not trusted": {
			address,
			Config{TLS: believing(mine, other)},
			[]string{event("INFO", `"no connection"`, transport.ConnectFailed), event("INFO", `"no login"`, transport.AuthenticationFailure)},
		},
	} {
		config, log := traced(c.config)
		if _, err := connect(t, c.address, config).Deliver(t.Context(), batch(run(1, 0, "a"))); err == nil {
			t.Fatalf("%s, but the batch was delivered", name)
		}
		wantEvents(t, log, c.want...)
	}
}

// A mirrored address whose preferred host is away goes on with the other one, and logs it.
func TestAMirroredRouteThatGoesToTheOtherHostIsLogged(t *testing.T) {
	t.Parallel()
	_, address := serve(t, newReceiver(), plaintext())
	config, log := traced(plaintext())
	deliver(t, connect(t, "127.0.0.1:1,"+address, config), batch(run(1, 0, "a")))
	wantEvents(t, log, event("INFO", `"a mirrored route goes to the other host"`, transport.MirroredRouteChanged)+" address="+address+" before=127.0.0.1:1")
}

// An end that was reached, but does not speak as it should, is no login.
func TestLoginsThatFailAreLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		frame *pb.Frame
		want  transport.TraceEvent
	}{
		"not a hello":   {&pb.Frame{Kind: pb.Kind_KIND_BATCH, Id: 1}, transport.MessageFormatError},
		"nothing":       {nil, transport.LoginProtocolError},
		"a bad version": {helloOf(t, wire.Hello{Lowest: 998, Highest: 999, LargestPayload: wire.LargestPayload, Window: 1 << 20}), transport.NegotiateFailure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, log := traced(plaintext())
			config.ConnectTimeout = 500 * time.Millisecond
			_, address := serve(t, newReceiver(), config)
			conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			stream, err := pb.NewBrokerClient(conn).Exchange(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if c.frame != nil {
				if err := stream.Send(c.frame); err != nil {
					t.Fatal(err)
				}
			}
			wantEvents(t, log, event("INFO", `"no login"`, c.want))
		})
	}
}

func helloOf(t *testing.T, hello wire.Hello) *pb.Frame {
	t.Helper()
	payload, err := wire.EncodeHello(hello)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Pack(pb.Kind_KIND_HELLO, 0, payload, false)
}
