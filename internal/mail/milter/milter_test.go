package milter_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	nettextproto "net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gomilter "github.com/emersion/go-milter"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/milter"
	"github.com/parley-broker/parley/internal/mail/receive"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// recorder is a milter that records what it is asked, and does what the test says.
type recorder struct {
	gomilter.NoOpMilter
	at      *sync.Mutex
	events  *[]string
	respond map[string]gomilter.Response
	change  func(m *gomilter.Modifier) error
}

func (r *recorder) event(text string) (gomilter.Response, error) {
	r.at.Lock()
	defer r.at.Unlock()
	*r.events = append(*r.events, text)
	if response := r.respond[text]; response != nil {
		return response, nil
	}
	return gomilter.RespContinue, nil
}

func (r *recorder) Connect(host, family string, port uint16, addr net.IP, m *gomilter.Modifier) (gomilter.Response, error) {
	return r.event(fmt.Sprintf("connect %s %s %d %s %s", host, family, port, addr, m.Macros["j"]))
}

func (r *recorder) Helo(name string, _ *gomilter.Modifier) (gomilter.Response, error) {
	return r.event("helo " + name)
}

func (r *recorder) MailFrom(from string, _ *gomilter.Modifier) (gomilter.Response, error) {
	return r.event("mail " + from)
}

func (r *recorder) RcptTo(to string, _ *gomilter.Modifier) (gomilter.Response, error) {
	return r.event("rcpt " + to)
}

func (r *recorder) Header(name, value string, _ *gomilter.Modifier) (gomilter.Response, error) {
	return r.event("header " + name + "=" + value)
}

func (r *recorder) Headers(nettextproto.MIMEHeader, *gomilter.Modifier) (gomilter.Response, error) {
	return r.event("headers")
}

func (r *recorder) BodyChunk(chunk []byte, _ *gomilter.Modifier) (gomilter.Response, error) {
	return r.event(fmt.Sprintf("body %d", len(chunk)))
}

func (r *recorder) Body(m *gomilter.Modifier) (gomilter.Response, error) {
	if r.change != nil {
		if err := r.change(m); err != nil {
			return nil, err
		}
	}
	return r.event("end")
}

func (r *recorder) Abort(*gomilter.Modifier) error {
	_, err := r.event("abort")
	return err
}

// fixture is a milter on this machine, and a session with it.
type fixture struct {
	t       *testing.T
	at      sync.Mutex
	events  []string
	session receive.FilterSession
	server  *gomilter.Server
}

func start(t *testing.T, without milter.Default, respond map[string]gomilter.Response, change func(*gomilter.Modifier) error) *fixture {
	t.Helper()
	f := &fixture{t: t}
	f.server = &gomilter.Server{
		NewMilter: func() gomilter.Milter {
			return &recorder{at: &f.at, events: &f.events, respond: respond, change: change}
		},
		Actions: gomilter.OptAddHeader | gomilter.OptChangeHeader | gomilter.OptAddRcpt | gomilter.OptRemoveRcpt | gomilter.OptChangeBody |
			gomilter.OptChangeFrom | gomilter.OptQuarantine,
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = f.server.Serve(listener) }()
	t.Cleanup(func() { _ = f.server.Close() })
	filter := milter.New("test", "tcp", listener.Addr().String(), 10*time.Second, without, slog.New(slog.DiscardHandler))
	if f.session, err = filter.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.session.Close)
	return f
}

func exchange(t *testing.T) *receive.Exchange {
	t.Helper()
	header, length, _ := message.ParseHeader([]byte(text))
	body := spool.New(t.TempDir(), 1<<20, 1<<20).Open()
	if _, err := body.Write([]byte(text[length:])); err != nil {
		t.Fatal(err)
	}
	return &receive.Exchange{
		Peer: netip.MustParseAddrPort("192.0.2.1:4711"), FQDN: "mx.example.com", Helo: "client", Header: header, Body: body,
		Envelope:  &message.Envelope{Sender: "a@b", Recipients: []message.Recipient{{Address: "c@d"}, {Address: "e@f"}}},
		Recipient: &message.Recipient{Address: "c@d"},
	}
}

const text = "A: 1\r\n 2\r\nB: 3\r\nA: 4\r\n\r\nhello\r\n"

var whole = []receive.Event{receive.Connected, receive.Greeted, receive.SenderGiven, receive.RecipientGiven, receive.HeaderEnded, receive.DataEnded}

// run passes events on until one is not continued.
func (f *fixture) run(e *receive.Exchange, events ...receive.Event) (verdict receive.Verdict) {
	for _, event := range events {
		if verdict = f.session.Handle(context.Background(), event, e); verdict.Action != receive.Continue {
			return verdict
		}
	}
	return verdict
}

func (f *fixture) seen() []string {
	f.at.Lock()
	defer f.at.Unlock()
	return slices.Clone(f.events)
}

func TestMilterIsAskedAtEachStage(t *testing.T) {
	t.Parallel()
	f := start(t, milter.TempFail, nil, nil)
	e := exchange(t)
	if verdict := f.run(e, slices.Concat(whole, whole[2:4], []receive.Event{receive.Aborted, receive.Disconnected})...); verdict.Action != receive.Continue {
		t.Errorf("the verdict is %+v", verdict)
	}
	f.run(e, receive.SenderGiven) // so that the abort has been seen
	want := []string{
		"connect [192.0.2.1] tcp4 4711 192.0.2.1 mx.example.com", "helo client", "mail a@b", "rcpt c@d", "header A=1\n 2", "header B=3", "header A=4",
		"headers", "body 7", "end", "mail a@b", "rcpt c@d", "abort", "mail a@b",
	}
	if got := f.seen(); !slices.Equal(got, want) {
		t.Errorf("the milter saw %q", got)
	}
}

func TestMilterChangesTheMessage(t *testing.T) {
	t.Parallel()
	f := start(t, milter.TempFail, nil, func(m *gomilter.Modifier) error {
		for _, err := range []error{
			m.AddRecipient("g@h"), m.DeleteRecipient("C@d"), m.ChangeFrom("<new@b>"), m.AddHeader("X-Last", "a\r\n b"), m.InsertHeader(0, "X-First", "x\r\nY: z"),
			m.ChangeHeader(2, "a", "five"), m.ChangeHeader(1, "B", ""), m.ChangeHeader(1, "C", "new"), m.ReplaceBody([]byte("one\r\n")), m.ReplaceBody([]byte("two\n")),
			m.Quarantine("virus"),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	e := exchange(t)
	verdict := f.run(e, whole...)
	if verdict.Action != receive.Quarantine || verdict.Reason != "virus" || e.Envelope.Sender != "new@b" || fmt.Sprint(e.Envelope.Recipients) != "[{e@f  } {g@h  }]" {
		t.Errorf("the verdict is %+v on %+v", verdict, e.Envelope)
	}
	body, err := io.ReadAll(e.Body.Tail())
	if err != nil || string(body) != "one\r\ntwo\r\n" {
		t.Errorf("the body is %q: %v", body, err)
	}
	if got := string(e.Header.Bytes()); got != "X-First: x  Y: z\r\nA: 1\r\n 2\r\na: five\r\nX-Last: a\r\n b\r\nC: new\r\n\r\n" {
		t.Errorf("the header is %q", got)
	}
}

func TestMilterDecides(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at       string
		response gomilter.Response
		action   receive.Action
		reply    string
	}{
		"reject":          {"mail a@b", gomilter.RespReject, receive.Refuse, "550 [5 7 1] Refused by a filter"},
		"defer":           {"end", gomilter.RespTempFail, receive.Refuse, "451 [4 7 1] Deferred by a filter, try again later"},
		"own reply":       {"headers", gomilter.NewResponseStr('y', "554 5.7.9 no virus here"), receive.Refuse, "554 [5 7 9] no virus here"},
		"reply, no code":  {"body 7", gomilter.NewResponseStr('y', "550 not here"), receive.Refuse, "550 [5 7 1] not here"},
		"reply, class":    {"rcpt c@d", gomilter.NewResponseStr('y', "450 5.1.1 who"), receive.Refuse, "450 [4 7 1] 5.1.1 who"},
		"reply, positive": {"end", gomilter.NewResponseStr('y', "250 2.0.0 fine"), receive.Refuse, "451 [4 7 1] A filter gave a reply that is none, try again later"},
		"discard":         {"header B=3", gomilter.RespDiscard, receive.Discard, ""},
		"accept":          {"helo client", gomilter.RespAccept, receive.Continue, ""},
		"accept message":  {"rcpt c@d", gomilter.RespAccept, receive.Continue, ""},
	} {
		f := start(t, milter.TempFail, map[string]gomilter.Response{test.at: test.response}, nil)
		verdict := f.run(exchange(t), whole...)
		reply := ""
		if verdict.Reply != nil {
			reply = fmt.Sprint(verdict.Reply.Code, " ", verdict.Reply.EnhancedCode, " ", verdict.Reply.Message)
		}
		if verdict.Action != test.action || reply != test.reply {
			t.Errorf("%s: the verdict is %d %q", name, verdict.Action, reply)
		}
		if strings.HasPrefix(name, "accept") {
			if seen := f.seen(); seen[len(seen)-1] != test.at {
				t.Errorf("%s: the milter was asked %q", name, seen)
			}
		}
	}
}

func TestMessagesWithoutTheirMilterFareAsItsDefaultSays(t *testing.T) {
	t.Parallel()
	for without, want := range map[milter.Default]string{
		milter.TempFail: "451", milter.Reject: "550", milter.Accept: "taken", milter.Quarantine: "held", "": "451",
	} {
		f := start(t, without, nil, func(*gomilter.Modifier) error { return io.ErrUnexpectedEOF })
		if got := outcome(f.run(exchange(t), whole...)); got != want {
			t.Errorf("default %q, a milter that fails: %s", without, got)
		}
		filter := milter.New("test", "tcp", "127.0.0.1:1", time.Second, without, slog.New(slog.DiscardHandler))
		session, err := filter.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(session.Handle(t.Context(), receive.SenderGiven, &receive.Exchange{})); got != want {
			t.Errorf("default %q, a milter that is not there: %s", without, got)
		}
		session.Close()
	}
}

func outcome(v receive.Verdict) string {
	switch v.Action {
	case receive.Refuse:
		return fmt.Sprint(v.Reply.Code)
	case receive.Quarantine:
		return "held"
	default:
		return "taken"
	}
}
