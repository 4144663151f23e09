package send_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-sasl"

	"github.com/parley-broker/parley/internal/mail/send"
)

func open(t *testing.T, h *host, change func(*send.Target)) (*send.Connection, error) {
	t.Helper()
	target := send.Target{Host: "host.example", Address: h.serve(t), Hello: "client.example"}
	if change != nil {
		change(&target)
	}
	connection, err := send.Open(context.Background(), target)
	if err == nil {
		t.Cleanup(connection.Close)
	}
	return connection, err
}

// outcome writes results as a test compares them.
func outcome(results []send.Result) string {
	words := make([]string, len(results))
	for i, r := range results {
		words[i] = fmt.Sprintf("%s %s", r.Class, r.Enhanced)
		if r.HostFailed {
			words[i] += " host"
		}
	}
	return strings.Join(words, ", ")
}

func TestEachRecipientHasAResult(t *testing.T) {
	t.Parallel()
	on := func(replies map[string]string) func(string) string {
		return func(line string) string {
			for prefix, reply := range replies {
				if strings.HasPrefix(line, prefix) {
					return reply
				}
			}
			return ""
		}
	}
	many := 0
	for _, c := range []struct {
		name     string
		replies  map[string]string
		answer   func(string) string
		want     string
		messages int
		broken   bool
	}{
		{name: "all are delivered", want: "delivered 2.0.0, delivered 2.0.0, delivered 2.0.0", messages: 1},
		{
			name: "one is refused, one deferred, one delivered", messages: 1,
			replies: map[string]string{"RCPT TO:<a@": "550 5.1.1 no such user", "RCPT TO:<b@": "450 4.2.0 greylisted"},
			want:    "failed 5.1.1, deferred 4.2.0, delivered 2.0.0",
		},
		{
			name: "none is accepted, so nothing is sent", replies: map[string]string{"RCPT": "550 5.1.1 no"},
			want: "failed 5.1.1, failed 5.1.1, failed 5.1.1",
		},
		{
			name: "the sender is refused", replies: map[string]string{"MAIL": "451 4.3.2 later", "RCPT": "503 no", "DATA": "503 no"},
			want: "deferred 4.3.2, deferred 4.3.2, deferred 4.3.2",
		},
		{
			name: "a code of another class is not believed", replies: map[string]string{"MAIL": "550 2.1.0 odd", "RCPT": "503 no", "DATA": "503 no"},
			want: "failed 5.0.0, failed 5.0.0, failed 5.0.0",
		},
		{
			name: "the message is refused", replies: map[string]string{".": "554 5.6.0 spam"}, messages: 1,
			want: "failed 5.6.0, failed 5.6.0, failed 5.6.0",
		},
		{
			name: "DATA is refused", replies: map[string]string{"DATA": "451 4.3.0 disk"},
			want: "deferred 4.3.0, deferred 4.3.0, deferred 4.3.0",
		},
		{
			name: "a yes to DATA is none", replies: map[string]string{"DATA": "250 2.0.0 ok"},
			want: "deferred 4.5.0, deferred 4.5.0, deferred 4.5.0",
		},
		{
			name: "a recipient is neither taken nor refused", replies: map[string]string{"RCPT TO:<b@": "300 3.0.0 well"}, messages: 1,
			want: "delivered 2.0.0, deferred 4.5.0, delivered 2.0.0",
		},
		{
			name: "a message is neither taken nor refused", replies: map[string]string{".": "354 3.0.0 go on"}, messages: 1,
			want: "deferred 4.5.0, deferred 4.5.0, deferred 4.5.0",
		},
		{
			name: "the host closes with 421", replies: map[string]string{"RCPT TO:<b@": "421 4.3.2 closing"}, broken: true,
			want: "deferred 4.4.2, deferred 4.3.2, deferred 4.4.2",
		},
		{
			name: "the host closes with 421 at the sender", broken: true, replies: map[string]string{"MAIL": "421 4.3.2 closing"},
			want: "deferred 4.3.2 host, deferred 4.3.2 host, deferred 4.3.2 host",
		},
		{
			name: "the host closes with 421 at the message", broken: true, messages: 1, replies: map[string]string{".": "421 4.3.2 closing"},
			want: "deferred 4.3.2, deferred 4.3.2, deferred 4.3.2",
		},
		{
			name: "the host closes with 421 at DATA", broken: true, replies: map[string]string{"DATA": "421 4.3.2 closing"},
			want: "deferred 4.3.2, deferred 4.3.2, deferred 4.3.2",
		},
		{
			name: "no room with the code of RFC 821, for nobody", replies: map[string]string{"RCPT": "552 5.5.3 too many recipients"},
			want: "deferred 4.5.3, deferred 4.5.3, deferred 4.5.3",
		},
		{
			name: "no room without a code of RFC 3463", replies: map[string]string{"RCPT": "552 too many"},
			want: "deferred 4.0.0, deferred 4.0.0, deferred 4.0.0",
		},
		{
			name: "the message is too large for recipients", replies: map[string]string{"RCPT TO:<a": "552 5.3.4 too large", "RCPT TO:<b": "552 5.2.3 large", "RCPT TO:<c": "552 5.2.3 x"},
			want: "failed 5.3.4, failed 5.2.3, failed 5.2.3",
		},
		{
			name: "the message is too large with the code of RFC 821", replies: map[string]string{".": "552 5.3.4 too large"}, messages: 1,
			want: "failed 5.3.4, failed 5.3.4, failed 5.3.4",
		},
		{
			name: "the connection dies before the message", replies: map[string]string{"RCPT TO:<b@": "close"}, broken: true,
			want: "deferred 4.4.2 host, deferred 4.4.2 host, deferred 4.4.2 host",
		},
		{
			name: "the connection dies behind the message", replies: map[string]string{".": "close"}, messages: 1, broken: true,
			want: "unknown 4.4.2 host, unknown 4.4.2 host, unknown 4.4.2 host",
		},
		{
			name: "what has no room comes in another transaction", messages: 2, want: "delivered 2.0.0, delivered 2.0.0, delivered 2.0.0",
			answer: func(line string) string {
				if strings.HasPrefix(line, "MAIL") {
					many = 0
				}
				if many++; strings.HasPrefix(line, "RCPT") && many > 3 {
					return "452 4.5.3 too many recipients"
				}
				return ""
			},
		},
		{
			name: "what has no room as RFC 821 said it too", messages: 3, want: "delivered 2.0.0, delivered 2.0.0, delivered 2.0.0",
			answer: func(line string) string {
				if strings.HasPrefix(line, "MAIL") {
					many = 0
				}
				if many++; strings.HasPrefix(line, "RCPT") && many > 2 {
					return "552 5.5.3 too many recipients"
				}
				return ""
			},
		},
	} {
		for _, pipelined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, pipelined %v", c.name, pipelined), func(t *testing.T) {
				h := &host{answer: c.answer}
				if c.answer == nil {
					h.answer = on(c.replies)
				}
				if pipelined {
					h.extensions = []string{"PIPELINING", "DSN"}
				} else {
					h.extensions = []string{"DSN"}
				}
				connection, err := open(t, h, nil)
				if err != nil {
					t.Fatal(err)
				}
				results := connection.Send(context.Background(), letter("Subject: x\r\n\r\nbody\r\n", "a@b.example", "b@b.example", "c@b.example"))
				if got := outcome(results); got != c.want {
					t.Errorf("results are\n%s, want\n%s", got, c.want)
				}
				messages, lines := h.received()
				sent := 0
				for _, message := range messages {
					if message != "" {
						sent++
					}
				}
				if sent != c.messages {
					t.Errorf("%d messages were sent, want %d: %q", sent, c.messages, lines)
				}
				if connection.Usable() == c.broken {
					t.Errorf("usable is %v", connection.Usable())
				}
				if !c.broken {
					after := connection.Send(context.Background(), letter("x\r\n", "z@b.example"))
					if c.replies["RCPT"] == "" && c.replies["MAIL"] == "" && c.replies["."] == "" && c.replies["DATA"] == "" &&
						outcome(after) != "delivered 2.0.0" {
						t.Errorf("the next message on the connection is %s", outcome(after))
					}
				}
			})
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestWhatAHostCannotTakeIsNotSent(t *testing.T) {
	t.Parallel()
	h := &host{extensions: []string{"SIZE 10"}}
	connection, err := open(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	for enhanced, message := range map[string]send.Message{
		"5.3.4": letter("more than ten bytes\r\n", "a@b.example"),
		"5.6.7": {Size: 1, Recipients: []send.Recipient{{Address: "ä@b.example"}}},
		"5.6.9": {Size: 1, UTF8: true, Recipients: []send.Recipient{{Address: "a@b.example"}}},
	} {
		if got := outcome(connection.Send(context.Background(), message)); got != "failed "+enhanced {
			t.Errorf("result is %s, want %s", got, enhanced)
		}
	}
	if _, lines := h.received(); len(lines) != 1 {
		t.Errorf("the host was asked %q", lines)
	}
}

func TestLMTPAnswersForEachRecipient(t *testing.T) {
	t.Parallel()
	h := &host{lmtp: true, extensions: []string{"PIPELINING"}, answer: func(line string) string {
		if line == ".1" {
			return "452 4.2.2 over quota"
		}
		return ""
	}}
	connection, err := open(t, h, func(target *send.Target) { target.LMTP = true })
	if err != nil {
		t.Fatal(err)
	}
	got := outcome(connection.Send(context.Background(), letter("x\r\n", "a@b.example", "b@b.example", "c@b.example")))
	if got != "delivered 2.0.0, deferred 4.2.2, delivered 2.0.0" {
		t.Errorf("results are %s", got)
	}
}

func TestReportsAreAskedForWhereTheHostKnowsThem(t *testing.T) {
	t.Parallel()
	message := letter("x\r\n", "a@b.example")
	message.Return, message.EnvelopeID = "HDRS", "QQ 31+4"
	message.Recipients[0].Notify = "SUCCESS,FAILURE"
	const mailFrom = "MAIL FROM:<from@a.example> RET=HDRS ENVID=QQ+2031+2B4|RCPT TO:<a@b.example> NOTIFY=SUCCESS,FAILURE ORCPT="
	for _, c := range []struct {
		extensions []string
		original   string
		want       string
		relayed    bool
	}{
		{[]string{"DSN"}, "rfc822;a+b@b.example", mailFrom + "rfc822;a+2Bb@b.example", false},
		{[]string{"DSN"}, "utf-8;\u00e4+=\\x@b.example", mailFrom + `utf-8;\x{E4}\x{2B}\x{3D}\x{5C}x@b.example`, false},
		{[]string{"DSN"}, "rfc822;~\x7f !a@b.example", mailFrom + "rfc822;~+7F+20!a@b.example", false},
		{[]string{"DSN"}, "utf-8;~\x7f !a@b.example", mailFrom + `utf-8;~\x{7F}\x{20}!a@b.example`, false},
		{nil, "rfc822;a+b@b.example", "MAIL FROM:<from@a.example>|RCPT TO:<a@b.example>", true},
	} {
		message.Recipients[0].Original = c.original
		h := &host{extensions: c.extensions}
		connection, err := open(t, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		results := connection.Send(context.Background(), message)
		_, lines := h.received()
		if got := strings.Join(lines[1:3], "|"); got != c.want || results[0].Relayed != c.relayed {
			t.Errorf("sent %s, relayed %v", got, results[0].Relayed)
		}
	}
}

func TestAuthenticationAsTheMechanismSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reply string
		refused     bool
	}{{"accepted", "235 2.7.0 welcome", false}, {"refused", "535 5.7.8 no", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &host{extensions: []string{"AUTH PLAIN"}, answer: func(line string) string {
				if strings.HasPrefix(line, "AUTH") {
					return c.reply
				}
				return ""
			}}
			_, err := open(t, h, func(target *send.Target) {
				target.Authenticate = func([]string) sasl.Client { return sasl.NewPlainClient("", "who", "secret") }
			})
			if (err != nil) != c.refused {
				t.Fatalf("failed with %v", err)
			}
			if _, lines := h.received(); !strings.HasPrefix(lines[1], "AUTH PLAIN AHdobwBzZWNyZXQ=") {
				t.Errorf("sent %q", lines)
			}
		})
	}
}

func TestHostThatAnswersNonsense(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"no code": "hello", "a line without end": strings.Repeat("2", 10_000), "lines without end": strings.Repeat("250-x\r\n", 300) + "250 x",
		"codes that differ": "250-x\r\n251 y", "an odd code": "999 x", "controls": "250\x00x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &host{answer: func(line string) string {
				if strings.HasPrefix(line, "EHLO") {
					return reply
				}
				return ""
			}}
			if _, err := open(t, h, nil); err == nil {
				t.Error("the reply was believed")
			}
		})
	}
}

func TestAnErrorSaysWhetherTheConnectionWasRefusedOrBroke(t *testing.T) {
	t.Parallel()
	const refusing = "127.0.0.1:1" // a port that a listener of a test has closed may be another's at once
	for name, c := range map[string]struct{ address, want string }{
		"refused": {refusing, "4.4.1 " + refusing + ": connection refused"},
		"broken":  {(&host{answer: func(string) string { return "close" }}).serve(t), "4.4.2 read a reply: EOF"},
	} {
		_, err := send.Open(t.Context(), send.Target{Host: "b.example", Address: c.address, Hello: "client.example"})
		failed, is := errors.AsType[*send.OpenError](err)
		if !is || failed.Result.Enhanced+" "+failed.Result.Text != c.want || !failed.Result.HostFailed {
			t.Errorf("%s: failed with %v, want %s", name, err, c.want)
		}
	}
}

func TestEndOfContextClosesTheConnection(t *testing.T) {
	t.Parallel()
	reached, cancelled := make(chan struct{}), make(chan struct{})
	h := &host{answer: func(line string) string {
		if strings.HasPrefix(line, "MAIL") {
			close(reached)
			<-cancelled
		}
		return ""
	}}
	connection, err := open(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-reached; cancel() }()
	defer close(cancelled)
	if got := outcome(connection.Send(ctx, letter("x\r\n", "a@b.example"))); got != "deferred 4.4.2 host" || connection.Usable() {
		t.Errorf("result is %s, usable %v", got, connection.Usable())
	}
}

func TestCommandsCannotBeInjected(t *testing.T) {
	t.Parallel()
	h := &host{}
	connection, err := open(t, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	connection.Send(context.Background(), letter("x\r\n", "a@b.example>\r\nRCPT TO:<mallory@b.example"))
	if _, lines := h.received(); strings.Contains(strings.Join(lines, "\n"), "RCPT TO:<mallory") {
		t.Errorf("sent %q", lines)
	}
}
