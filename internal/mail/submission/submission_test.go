package submission_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
	"github.com/parley-broker/parley/internal/mail/submission"
)

// store keeps the last message.
type store struct {
	envelope message.Envelope
	text     string
	count    int64
	err      error
	hashes   map[string]string
}

func (s *store) Accept(envelope message.Envelope, body *spool.Body) (int64, error) {
	if hash, isKnown := s.hashes[envelope.IdempotencyKey]; isKnown && envelope.IdempotencyKey != "" {
		if hash != envelope.ContentHash {
			return 0, submission.ErrConflict
		}
		return 1, nil
	}
	text, err := io.ReadAll(body.Reader())
	if err != nil || s.err != nil {
		return 0, s.err
	}
	s.hashes[envelope.IdempotencyKey] = envelope.ContentHash
	s.count++
	s.envelope, s.text = envelope, string(text)
	return s.count, nil
}

func newHandler(t *testing.T) (*submission.Handler, *store) {
	t.Helper()
	s := &store{hashes: map[string]string{}}
	return &submission.Handler{
		Accepter: s, Spool: spool.New(t.TempDir(), 1<<20, 1<<20), Log: slog.New(slog.DiscardHandler), FQDN: "mx.example.com", MessageBytes: 5000,
		Verify: func(_ context.Context, user, password string, _ netip.Addr) (bool, error) {
			return user == "ann" && password == "secret", nil
		},
		MaySend: func(_ string, sender message.Address) bool { return sender.Domain == "example.com" },
	}, s
}

func post(t *testing.T, h http.Handler, kind, text string, fields ...string) (status int, answer string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/messages", strings.NewReader(text))
	r.Header.Set("Content-Type", kind)
	r.SetBasicAuth("ann", "secret")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestMessageIsMadeOfJSON(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	status, answer := post(t, h, "application/json; charset=utf-8", `{"from": "Ann Ä <ann@example.com>", "to": ["bob@example.net"], "bcc": ["eve@example.net"], "subject": "Grüße", "verp": true,
		"text": "one\n.\n", "html": "<b>one</b>", "headers": {"X-Tag": "a"}, "attachments": [{"name": "ä.txt", "content_type": "text/plain", "content": "aGVsbG8="}]}`)
	if status != http.StatusAccepted || answer != `{"message_id":1}` {
		t.Fatalf("the answer is %d %s", status, answer)
	}
	e := s.envelope
	if e.Sender != "ann@example.com" || len(e.Recipients) != 2 || e.Source != "HTTP" || !e.HasVERP || e.AuthenticatedAs != "ann" || e.Peer.String() != "192.0.2.1" || e.IsUTF8 {
		t.Errorf("the envelope is %+v", e)
	}
	m, err := mail.ReadMessage(strings.NewReader(s.text))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "Grüße" || m.Header.Get("Bcc") != "" || m.Header.Get("X-Tag") != "a" || m.Header.Get("Date") == "" || m.Header.Get("Message-Id") == "" {
		t.Errorf("the header is %v: %v", m.Header, err)
	}
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for parts := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if err != nil {
			break
		}
		kinds = append(kinds, strings.SplitN(part.Header.Get("Content-Type"), ";", 2)[0]+" "+part.FileName())
	}
	if got := strings.Join(kinds, ","); got != "multipart/alternative ,text/plain ä.txt" {
		t.Errorf("the parts are %q", got)
	}
}

func TestMessageIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	status, answer := post(t, h, "message/rfc822", "From: ann@example.com\nTo: bob@example.net\nX-Parley-Organization-X: 1\n\none\n.\ntwo")
	if status != http.StatusAccepted || !strings.HasSuffix(s.text, "\r\n\r\none\r\n.\r\ntwo\r\n") || strings.Contains(s.text, "Organization") {
		t.Errorf("the answer is %d %s, the message %q", status, answer, s.text)
	}
}

// Each field that names who wrote or sent a message is held to the rule for senders (403); what cannot be read is refused (400).
func TestNobodyElseIsNamedAsSender(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	for field, want := range map[string]int{
		"Sender: eve@example.net": http.StatusForbidden, "Resent-From: eve@example.net": http.StatusForbidden,
		"RESENT-SENDER: bob@example.com, eve@example.net": http.StatusForbidden, "From: eve@example.net\nSender: ann@example.com": http.StatusForbidden,
		"Resent-From: <": http.StatusBadRequest, "Sender: bob@example.com": http.StatusAccepted, "Resent-From: bob@example.com": http.StatusAccepted,
	} {
		status, answer := post(t, h, "message/rfc822", "From: ann@example.com\nTo: bob@example.net\n"+field+"\n\nx")
		if status != want || status == http.StatusAccepted && !strings.Contains(s.text, field) {
			t.Errorf("%s: the answer is %d %s", field, status, answer)
		}
	}
}

// A message has no NUL, whichever way it comes: hosts that it is sent on to may end it there, or refuse it.
func TestNULIsRefused(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t)
	for _, c := range [][2]string{
		{"message/rfc822", "From: ann@example.com\nTo: bob@example.net\n\na\x00b"},
		{"message/rfc822", "From: ann@example.com\nTo: bob@example.net\nSubject: a\x00b\n\nx"},
		{"application/json", `{"from": "ann@example.com", "to": ["bob@example.net"], "text": "a\u0000b"}`},
		{"application/json", `{"from": "ann@example.com", "to": ["bob@example.net"], "html": "a\u0000b"}`},
		{"application/json", `{"from": "ann@example.com", "to": ["bob@example.net"], "subject": "a\u0000b"}`},
		{"application/json", `{"from": "ann@example.com", "to": ["bob@example.net"], "headers": {"X-A": "a\u0000b"}}`},
	} {
		if status, answer := post(t, h, c[0], c[1]); status != http.StatusBadRequest {
			t.Errorf("%q: the answer is %d %s", c[1], status, answer)
		}
	}
}

func TestSameKeyIsOneMessage(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	const text = `{"from": "ann@example.com", "to": ["bob@example.net"], "text": "x"}`
	for range 2 {
		if status, answer := post(t, h, "application/json", text, "Idempotency-Key", "k"); status != http.StatusAccepted || answer != `{"message_id":1}` {
			t.Errorf("the answer is %d %s", status, answer)
		}
	}
	if status, _ := post(t, h, "application/json", strings.Replace(text, `"x"`, `"y"`, 1), "Idempotency-Key", "k"); status != http.StatusConflict || s.count != 1 {
		t.Errorf("another message with the key got %d", status)
	}
	s.err = io.ErrClosedPipe
	if status, _ := post(t, h, "application/json", text); status != http.StatusServiceUnavailable {
		t.Errorf("while the store is away the answer is %d", status)
	}
	h.IsRejected = func() bool { return true }
	if status, answer := post(t, h, "application/json", text); status != http.StatusServiceUnavailable || !strings.Contains(answer, "resources") {
		t.Errorf("under pressure the answer is %d %s", status, answer)
	}
}

func TestRequestsThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	h, s := newHandler(t)
	const whole = `{"from": "ann@example.com", "to": ["bob@example.net"], "subject": "s", "headers": {"X": "y"}}`
	for text, want := range map[string]int{
		"": 400, "{}": 400, "[]": 400, whole + "{}": 400, `{"foo": 1}`: 400,
		strings.Replace(whole, `"s"`, `"s\r\nBcc: x@y"`, 1): 400, strings.Replace(whole, `"y"`, `"y\nBcc: x@y"`, 1): 400, strings.Replace(whole, `"X"`, `"X: y\r\nZ"`, 1): 400,
		strings.Replace(whole, `"X"`, `"bcc"`, 1): 400, strings.Replace(whole, `bob@example.net`, `bob@example.net>\r\nRCPT TO:<x@y`, 1): 400,
		strings.Replace(strings.Replace(whole, "ann@", `\"a b\"@`, 1), `"s"`, `"s", "verp": true`, 1): 400,
		strings.Replace(strings.Replace(whole, "ann@", "ann+x@", 1), `"s"`, `"s", "verp": true`, 1):   400,
		strings.Replace(whole, "example.com", "example.org", 1):                                       403, strings.Replace(whole, `"s"`, `"`+strings.Repeat("s", 6000)+`"`, 1): 413, whole: 202,
	} {
		if status, answer := post(t, h, "application/json", text); status != want {
			t.Errorf("%.200s: the answer is %d %s, want %d", text, status, answer, want)
		}
	}
	if status, _ := post(t, h, "text/plain", whole); status != http.StatusUnsupportedMediaType {
		t.Errorf("text got %d", status)
	}
	for _, authorization := range []string{"", "Basic YW5uOndyb25n", "Bearer x"} {
		if status, _ := post(t, h, "application/json", whole, "Authorization", authorization); status != http.StatusUnauthorized {
			t.Errorf("%q got %d", authorization, status)
		}
	}
	if s.count != 1 {
		t.Errorf("%d messages were taken", s.count)
	}
}

// held is a body that is not read on until it is released.
type held struct {
	io.Reader
	begun, release chan struct{}
	once           sync.Once
}

func (h *held) Read(into []byte) (int, error) {
	h.once.Do(func() { close(h.begun) })
	<-h.release
	return h.Reader.Read(into)
}

// Submissions that are read at the same time are bounded, of a user and of all, before anything of a body is read.
func TestBodiesAtTheSameTimeAreBounded(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t)
	h.Verify = func(context.Context, string, string, netip.Addr) (bool, error) { return true, nil }
	h.Budget = &submission.Budget{Requests: 3, OfUser: 2, Bytes: 9_000}
	ask := func(user string, size int64, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/messages", body)
		r.ContentLength = size
		r.Header.Set("Content-Type", "message/rfc822")
		r.SetBasicAuth(user, "x")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	release := make(chan struct{})
	var holding sync.WaitGroup
	hold := func(user string, size int64) {
		body := &held{Reader: strings.NewReader("no message"), begun: make(chan struct{}), release: release}
		holding.Go(func() {
			if w := ask(user, size, body); w.Code != http.StatusBadRequest {
				t.Errorf("a request that had its room: %d %s", w.Code, w.Body)
			}
		})
		<-body.begun
	}
	refuse := func(user string, size int64, want int) {
		t.Helper()
		w := ask(user, size, iotest.ErrReader(errors.New("it was read")))
		if w.Code != want || want == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s with %d bytes: %d %s", user, size, w.Code, w.Body)
		}
	}
	refuse("eve", 5001, 413)
	hold("ann", 100)
	hold("ann", -1) // counts as the largest that is taken, 5000
	refuse("ann", 100, 503)
	refuse("bob", 4000, 503)
	hold("bob", 3900)
	refuse("eve", 1, 503)
	close(release)
	holding.Wait()
	if w := ask("eve", -1, strings.NewReader("From: a@example.com\nTo: b@c.example\n\nx")); w.Code != 202 {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

func TestBodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	h, _ := newHandler(t)
	h.Grace = time.Millisecond
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_, _ = io.WriteString(connection, "POST /messages HTTP/1.1\r\nHost: x\r\nContent-Type: message/rfc822\r\nContent-Length: 100\r\nAuthorization: Basic YW5uOnNlY3JldA==\r\n\r\nFrom: a")
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"from": "ann@example.com", "to": ["bob@example.net"], "subject": "ä", "text": "x", "html": "y", "headers": {"X": "y"}, "attachments": [{"name": "a", "content": "aa=="}]}`)
	s := &store{hashes: map[string]string{}}
	h := &submission.Handler{
		Accepter: s, Spool: spool.New(f.TempDir(), 1<<20, 1<<30), Log: slog.New(slog.DiscardHandler), FQDN: "mx.example.com",
		Verify: func(context.Context, string, string, netip.Addr) (bool, error) { return true, nil },
	}
	f.Fuzz(func(t *testing.T, text string) {
		if status, _ := post(t, h, "application/json", text); status != http.StatusAccepted {
			return
		}
		header, _, isComplete := message.ParseHeader([]byte(s.text))
		if !isComplete || header.HasBareLineEnd() || len(header.All("From")) != 1 || len(header.All("Bcc")) != 0 {
			t.Errorf("%q became %q", text, s.text)
		}
	})
}
