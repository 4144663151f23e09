package send_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-broker/parley/internal/mail/send"
)

// sleeper is a host that falls silent at a command, "" for its greeting, or is slow to take a message.
type sleeper struct {
	silentAt string
	pause    time.Duration // before each 64 KB of a body
}

// session is one of a sleeper.
func (s sleeper) session(conn net.Conn) {
	reader := bufio.NewReaderSize(conn, 16)
	say := func(text string) { _, _ = io.WriteString(conn, text+"\r\n") }
	if s.silentAt == "" {
		return
	}
	say("220 host.example")
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case s.silentAt:
			return
		case "EHLO":
			say("250-host.example\r\n250 STARTTLS")
		case "STARTTLS":
			say("220 go ahead")
			return
		case "DATA":
			say("354 go ahead")
			if !s.take(reader) {
				return
			}
			say("250 taken")
		default:
			say("250 ok")
		}
	}
}

// take takes a body, and says whether its end is answered.
func (s sleeper) take(reader *bufio.Reader) bool {
	if s.silentAt == "body" {
		return false
	}
	for taken := 0; ; {
		if taken%(64<<10) == 0 {
			<-time.After(s.pause)
		}
		line, err := reader.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return err == nil && s.silentAt != "."
		}
		taken += len(line)
	}
}

// target is a way to a sleeper, without a network, whose sessions are among some.
func (s sleeper) target(sessions *sync.WaitGroup, timeouts send.Timeouts) send.Target {
	return send.Target{
		Host: "host.example", Hello: "client.example", TLS: send.TLSPolicy{Mode: send.TLSOff}, Timeouts: timeouts,
		Dial: func(context.Context, *net.Dialer, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			sessions.Go(func() { s.session(theirs) })
			return ours, nil
		},
	}
}

// A host that says nothing more is waited for as long as RFC 5321 section 4.5.3.2 says, or as the connector does: for each reply, for each
// piece of a message that it takes, and longer for the reply to a whole message.
func TestHostThatIsSilentIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		host     sleeper
		mode     send.TLSMode
		timeouts send.Timeouts
		want     time.Duration
		says     string
	}{
		{name: "at its greeting", want: 5 * time.Minute, says: "deferred 4.4.2 host"},
		{name: "at EHLO", host: sleeper{silentAt: "EHLO"}, want: 5 * time.Minute, says: "deferred 4.4.2 host"},
		{name: "at TLS", host: sleeper{silentAt: "none"}, mode: send.TLSRequired, want: 5 * time.Minute, says: "deferred 4.7.5 host"},
		{name: "at the sender", host: sleeper{silentAt: "MAIL"}, want: 5 * time.Minute, says: "deferred 4.4.2 host"},
		{name: "at DATA", host: sleeper{silentAt: "DATA"}, want: 5 * time.Minute, says: "deferred 4.4.2 host"},
		{name: "in the message", host: sleeper{silentAt: "body"}, want: 5 * time.Minute, says: "deferred 4.4.2 host"},
		{name: "behind the message", host: sleeper{silentAt: "."}, want: 10 * time.Minute, says: "unknown 4.4.2 host"},
		{
			name: "at EHLO, for another time", host: sleeper{silentAt: "EHLO"}, timeouts: send.Timeouts{Command: time.Minute, Data: time.Hour},
			want: time.Minute, says: "deferred 4.4.2 host",
		},
		{
			name: "behind the message, for another time", host: sleeper{silentAt: "."}, timeouts: send.Timeouts{Command: time.Minute, Data: time.Hour},
			want: time.Hour, says: "unknown 4.4.2 host",
		},
		{name: "for four minutes at each piece", host: sleeper{silentAt: "none", pause: 4 * time.Minute}, want: 16 * time.Minute, says: "delivered 2.0.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var sessions sync.WaitGroup
				target := c.host.target(&sessions, c.timeouts)
				target.TLS.Mode = c.mode
				if c.mode == send.TLSOpportunistic {
					target.TLS.Mode = send.TLSOff
				}
				var got string
				connection, err := send.Open(t.Context(), target)
				if failed, is := errors.AsType[*send.OpenError](err); is {
					got = outcome([]send.Result{failed.Result})
				} else {
					got = outcome(connection.Send(t.Context(), letter(strings.Repeat("0123456789abcd\r\n", 3*64<<10/16+10), "a@b.example")))
				}
				took := time.Since(began)
				if connection != nil {
					connection.Close()
				}
				sessions.Wait()
				if took != c.want || got != c.says {
					t.Errorf("it took %v and came to %s, want %v and %s", took, got, c.want, c.says)
				}
			})
		})
	}
}

// Reaching a host is bounded by 30 seconds, or by what the connector says; saying goodbye by one.
func TestReachingAndLeavingAHostIsBounded(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var sessions sync.WaitGroup
			target := sleeper{silentAt: "QUIT"}.target(&sessions, send.Timeouts{Connect: given})
			dial, bound := target.Dial, time.Duration(0)
			target.Dial = func(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
				bound = dialer.Timeout
				return dial(ctx, dialer, network, address)
			}
			connection, err := send.Open(t.Context(), target)
			if err != nil || bound != want {
				t.Fatalf("reaching the host is bounded by %v, want %v; %v", bound, want, err)
			}
			began := time.Now()
			connection.Close()
			if took := time.Since(began); took != time.Second {
				t.Errorf("a host that does not answer QUIT is waited for %v", took)
			}
			sessions.Wait()
		})
	}
}

// A store or connector of which a daemon does not know yet is awaited for ten seconds; then its queue waits.
func TestConfigurationThatIsLateIsAwaitedForTenSeconds(t *testing.T) {
	t.Parallel()
	for known, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 9900 * time.Millisecond: 9900 * time.Millisecond, 10050 * time.Millisecond: 0, time.Hour: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			isKnown := func() bool { return time.Since(began) >= known }
			for kind, carrier := range map[string]send.Carrier{
				"a store": &send.MailboxCarrier{Store: func(string) (send.MailboxStore, bool) { return send.MailboxStore{}, isKnown() }},
				"a connector": &send.SMTPCarrier{
					Connector: func(string) (send.Connector, bool) {
						return send.Connector{SmartHosts: []send.SmartHost{{Name: "[127.0.0.1]:no port"}}}, isKnown()
					},
					Logger: slog.New(slog.DiscardHandler),
				},
			} {
				began = time.Now()
				_, err := carrier.Connect(t.Context(), send.Hop{Kind: "X", Connector: "new", Name: "-"})
				took, isGone := time.Since(began), err != nil && strings.Contains(err.Error(), "new is gone")
				if want > 0 && (isGone || took != want) || want == 0 && (!isGone || took != 10*time.Second) {
					t.Errorf("%s that is known after %v: %v after %v", kind, known, err, took)
				}
				if failed, is := errors.AsType[*send.OpenError](err); isGone && (!is || !failed.Result.HostFailed || failed.Result.Enhanced != "4.3.5") {
					t.Errorf("%s that is gone: %+v", kind, failed)
				}
			}
		})
	}
}
