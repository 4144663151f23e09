package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
	"github.com/parley-broker/parley/internal/publicdial"
)

// message makes one with a body.
func message(id int64, body string) *adapter.Message {
	return &adapter.Message{
		ID: id, Interchange: 3, Type: "urn:o#Order", Size: int64(len(body)), ContentType: "application/xml", Charset: "utf-8",
		Promoted: map[string]string{"urn:p#Shop": "north"}, Written: map[string]string{"urn:p#Bad": "a\r\nX-More: 1"},
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

func newSender(t *testing.T, address, settings string) adapter.Sender {
	t.Helper()
	e, _ := endpoint(t, address, settings)
	s, err := web.New().NewSender(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// serve answers requests of a test, and gives the address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func sendOne(t *testing.T, s adapter.Sender, m *adapter.Message) adapter.Delivery {
	t.Helper()
	deliveries := s.Send(t.Context(), []*adapter.Message{m})
	if len(deliveries) != 1 {
		t.Fatalf("%d deliveries of one message", len(deliveries))
	}
	return deliveries[0]
}

func failure(t *testing.T, d adapter.Delivery) *adapter.Failure {
	t.Helper()
	f, ok := errors.AsType[*adapter.Failure](d.Err)
	if !ok {
		t.Fatalf("the delivery has %v, want a failure", d.Err)
	}
	return f
}

func TestAMessageIsARequest(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	})
	s := newSender(t, address+"/in?key=1", `{"method": "PUT", "headers": {"X-Shop": "{urn:p#Shop}-{{{MessageType}", "X-None": "{urn:p#None}"},
		"authentication": "bearer"}`)
	d := sendOne(t, s, message(17, "<Order/>"))
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	if string(body) != "<Order/>" || got.ContentLength != 8 || got.Method != http.MethodPut || got.RequestURI != "/in?key=1" {
		t.Errorf("the request is %+v with %q", got, body)
	}
	for name, want := range map[string]string{
		"Idempotency-Key": "17", "Content-Type": "application/xml; charset=utf-8", "X-Shop": "north-{urn:o#Order", "X-None": "",
		"Authorization": "Bearer open sesame",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("the header %s is %q, want %q", name, value, want)
		}
	}
	if detail := string(d.Detail); detail != `{"address":"`+address+`/in","status":202}` {
		t.Errorf("tracking keeps %s", detail)
	}
}

func TestTheStatusSaysWhatFollows(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "no: open sesame")
	})
	for settings, cases := range map[string]map[int]string{
		`{}`: {
			200: "sent", 202: "sent", 204: "sent", 301: "permanent", 303: "permanent", 307: "permanent", 400: "permanent", 401: "permanent",
			404: "permanent", 408: "retry", 409: "permanent", 410: "permanent", 422: "permanent", 425: "retry", 429: "retry", 500: "retry",
			503: "retry",
		},
		`{"accepted": [202, 409], "retried": [404, "5xx"], "authentication": "bearer"}`: {
			200: "permanent", 202: "sent", 404: "retry", 409: "sent", 429: "permanent", 502: "retry",
		},
	} {
		s := newSender(t, address, settings)
		for code, want := range cases {
			status.Store(int32(code))
			d := sendOne(t, s, message(1, "x"))
			got := "sent"
			if d.Err != nil {
				f := failure(t, d)
				got = map[bool]string{true: "permanent", false: "retry"}[f.Permanent]
				if wait := map[bool]time.Duration{false: 7 * time.Second}[f.Permanent]; f.RetryAfter != wait || f.Unreachable {
					t.Errorf("%d: comes again after %s, %t", code, f.RetryAfter, f.Unreachable)
				}
				if isHidden := !strings.Contains(f.Error(), "sesame"); isHidden != strings.Contains(settings, "bearer") {
					t.Errorf("%d: the failure is %v", code, f)
				}
			}
			if got != want {
				t.Errorf("%d means %s, want %s", code, got, want)
			}
		}
	}
}

func TestAnAddressThatIsAwayIsUnreachable(t *testing.T) {
	t.Parallel()
	f := failure(t, sendOne(t, newSender(t, "http://"+free(t)+"/in?key=hidden", `{}`), message(1, "x")))
	if !f.Unreachable || f.Permanent || f.Code != "send.unreachable" || strings.Contains(f.Error(), "hidden") {
		t.Errorf("the failure is %+v", f)
	}
}

func TestNoAnswerInTimeIsAFailureOfTheMessage(t *testing.T) {
	t.Parallel()
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	f := failure(t, sendOne(t, newSender(t, address, `{"timeout": "100 milliseconds"}`), message(1, "x")))
	if f.Code != "send.timeout" || f.Unreachable || f.Permanent {
		t.Errorf("the failure is %+v", f)
	}
}

func TestRedirectsAreFollowedOnlyAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	var bodies []string
	var authorized, told atomic.Bool
	end := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Method+" "+string(body))
		authorized.Store(r.Header.Get("Authorization") != "")
		told.Store(r.Header.Get("Referer") != "")
		w.WriteHeader(http.StatusOK)
	})
	var status int
	var to string
	start := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	for name, c := range map[string]struct {
		settings string
		status   int
		to       string
		arrives  bool
	}{
		"none by default":          {`{}`, 307, end, false},
		"once":                     {`{"redirects": 1, "authentication": "bearer"}`, 307, end, true},
		"for good":                 {`{"redirects": 1}`, 308, end, true},
		"without the body":         {`{"redirects": 10}`, 302, end, false},
		"to where it may not send": {`{"redirects": 10}`, 307, "http://127.1.1.1:1/", false},
		"round and round":          {`{"redirects": 3}`, 307, start, false},
		"to a file":                {`{"redirects": 3}`, 307, "file:///etc/passwd", false},
	} {
		bodies, status, to = nil, c.status, c.to
		d := sendOne(t, newSender(t, start+"/?key=ours", c.settings), message(1, "body"))
		if c.arrives {
			if d.Err != nil || len(bodies) != 1 || bodies[0] != "POST body" || authorized.Load() || told.Load() {
				t.Errorf("%s: %v, arrived are %q, with our token: %t, with our address: %t", name, d.Err, bodies, authorized.Load(), told.Load())
			}
			continue
		}
		if f := failure(t, d); !f.Permanent || len(bodies) != 0 {
			t.Errorf("%s: the failure is %+v, arrived are %q", name, f, bodies)
		}
	}
}

func TestOnlyPublicAddressesAreDialledWhereNoHostIsNamed(t *testing.T) {
	t.Parallel()
	address := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	e, _ := endpoint(t, strings.Replace(address, "127.0.0.1", "localhost", 1), `{}`)
	e.Permission = adapter.Permission{Connect: []string{"*:*"}}
	s, err := web.New().NewSender(e)
	if err != nil {
		t.Fatal(err)
	}
	f := failure(t, sendOne(t, s, message(1, "x")))
	if !errors.Is(f, publicdial.ErrPrivate) || !f.Unreachable {
		t.Errorf("the failure is %v", f)
	}
	e.Permission = adapter.Permission{}
	if _, err := web.New().NewSender(e); !errors.Is(err, adapter.ErrNotPermitted) {
		t.Errorf("a port that may connect nowhere gave %v", err)
	}
}

func TestAPropertyAddsNoHeader(t *testing.T) {
	t.Parallel()
	address := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request came") })
	f := failure(t, sendOne(t, newSender(t, address, `{"headers": {"X-A": "{urn:p#Bad}"}}`), message(1, "x")))
	if !f.Permanent || !strings.Contains(f.Error(), "urn:p#Bad") {
		t.Errorf("the failure is %v", f)
	}
}

func TestABodyThatCannotBeReadIsAFailureOfItsPipeline(t *testing.T) {
	t.Parallel()
	var whole atomic.Bool
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		whole.Store(err == nil)
	})
	cause := &adapter.Failure{Code: "send.pipeline", Err: errors.New("record 5"), Permanent: true}
	for _, settings := range []string{`{}`, `{"authentication": "hmac"}`} {
		m := message(1, "x")
		m.Size = -1
		m.Open = func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, 100000)), failing{cause})), nil
		}
		if f := failure(t, sendOne(t, newSender(t, address, settings), m)); f != cause || whole.Load() {
			t.Errorf("the failure is %v; the receiver has a whole body: %t", f, whole.Load())
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestOurSignatureIsTakenByOurLocation(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{
		`{}`, `{"algorithm": "sha512", "encoding": "base64", "prefix": ""}`,
		`{"header": "Webhook-Signature", "encoding": "base64", "prefix": "v1,", "timestamp_header": "Webhook-Timestamp",
			"signed": "{header:Idempotency-Key}.{timestamp}.{body}"}`,
		`{"header": "Sig", "prefix": "v1=", "timestamp_prefix": "t=", "signed": "{timestamp}.{body}"}`,
	} {
		settings := fmt.Sprintf(`{"authentication": "hmac", "hmac": %s}`, scheme)
		d := openDoor(t, settings)
		body := strings.Repeat("<Order/>", 100000)
		m := message(5, body)
		m.Size = -1
		if delivery := sendOne(t, newSender(t, d.address, settings), m); delivery.Err != nil {
			t.Errorf("%s: %v", scheme, delivery.Err)
		} else if got := d.in.Bodies(); len(got) != 1 || got[0] != body {
			t.Errorf("%s: %d bodies were taken", scheme, len(got))
		}
		// Sent again it is the same.
		if delivery := sendOne(t, newSender(t, d.address, settings), m); delivery.Err != nil || len(d.in.Bodies()) != 1 {
			t.Errorf("%s: the repeat gave %v, and %d bodies were taken", scheme, delivery.Err, len(d.in.Bodies()))
		}
	}
}

func TestSettingsThatAreWrongAreRefusedBeforeTheyRun(t *testing.T) {
	t.Parallel()
	in, out := adapter.Receive, adapter.Send
	for name, c := range map[string]struct {
		direction adapter.Direction
		address   string
		settings  string
		secrets   []string
		path      string
	}{
		"no authentication":           {in, "http://h:1/", `{}`, nil, "settings.authentication"},
		"an unknown one":              {in, "http://h:1/", `{"authentication": "ntlm"}`, nil, "settings.authentication"},
		"a caller without a secret":   {in, "http://h:1/", `{"authentication": "bearer"}`, nil, "settings.callers.token"},
		"basic without callers":       {in, "http://h:1/", `{"authentication": "basic"}`, nil, "settings.callers"},
		"a time that is not signed":   {in, "http://h:1/", `{"authentication": "hmac", "hmac": {"timestamp_header": "T"}}`, []string{"key"}, "settings.hmac.signed"},
		"a signature without a body":  {in, "http://h:1/", `{"authentication": "hmac", "hmac": {"signed": "x"}}`, []string{"key"}, "settings.hmac.signed"},
		"prefixes that are the same":  {in, "http://h:1/", `{"authentication": "hmac", "hmac": {"prefix": "", "timestamp_prefix": "t=", "signed": "{timestamp}{body}"}}`, []string{"key"}, "settings.hmac.prefix"},
		"a weak algorithm":            {in, "http://h:1/", `{"authentication": "hmac", "hmac": {"algorithm": "md5"}}`, []string{"key"}, "settings.hmac.algorithm"},
		"https without a certificate": {in, "https://h:1/", `{"authentication": "none"}`, nil, "secrets"},
		"an address of something":     {in, "ftp://h/", `{"authentication": "none"}`, nil, "address"},
		"a path with dots":            {in, "http://h/a/../b", `{"authentication": "none"}`, nil, "address"},
		"a path with a query":         {in, "http://h/a?b", `{"authentication": "none"}`, nil, "address"},
		"a password in the address":   {out, "http://u:p@h/", `{}`, nil, "address"},
		"a header with a secret":      {in, "http://h:1/", `{"authentication": "none", "headers": {"authorization": "urn:p#A"}}`, nil, "settings.headers.authorization"},
		"a header with the token":     {in, "http://h:1/", `{"authentication": "bearer", "bearer_header": "X-Api-Key", "headers": {"x-api-key": "urn:p#A"}}`, []string{"token"}, "settings.headers.x-api-key"},
		"a header beside the body":    {in, "http://h:1/", `{"authentication": "hmac", "hmac": {"signed": "{header:Id}{body}"}}`, []string{"key"}, "settings.hmac.signed"},
		"a header behind the body":    {in, "http://h:1/", `{"authentication": "hmac", "hmac": {"signed": "{body}{header:Id}"}}`, []string{"key"}, "settings.hmac.signed"},
		"a property without a name":   {in, "http://h:1/", `{"authentication": "none", "query": {"a": "A"}}`, nil, "settings.query.a"},
		"a misspelt setting":          {in, "http://h:1/", `{"authentication": "none", "max_byte": 1}`, nil, "settings.max_byte"},
		"GET":                         {in, "http://h:1/", `{"authentication": "none", "methods": ["GET"]}`, nil, "settings.methods"},
		"200 for what is bad":         {in, "http://h:1/", `{"authentication": "none", "suspended_status": 200}`, nil, "settings.suspended_status"},
		"a header of the connection":  {out, "http://h/", `{"headers": {"Transfer-Encoding": "x"}}`, nil, "settings.headers.Transfer-Encoding"},
		"a header in a header":        {out, "http://h/", `{"headers": {"A": "x\r\nB: 1"}}`, nil, "settings.headers.A"},
		"a brace without an end":      {out, "http://h/", `{"headers": {"A": "{x"}}`, nil, "settings.headers.A"},
		"a status that is none":       {out, "http://h/", `{"retried": ["6xx"]}`, nil, "settings.retried"},
		"eleven redirects":            {out, "http://h/", `{"redirects": 11}`, nil, "settings.redirects"},
		"a token without a secret":    {out, "http://h/", `{"authentication": "bearer"}`, nil, "secrets"},
		"a certificate without one":   {out, "https://h/", `{"client_certificate": true}`, []string{"certificate"}, "secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := web.New().Check(c.direction, c.address, json.RawMessage(c.settings), c.secrets)
			if len(problems) != 1 || strings.Join(problems[0].Path, ".") != c.path || problems[0].Message == "" || problems[0].Remedy == "" {
				t.Errorf("the problems are %+v, want one at %s", problems, c.path)
			}
		})
	}
	if problems := web.New().Check(in, "https://h:1/", json.RawMessage(`{"authentication": "hmac"}`), []string{"key", "certificate", "private_key"}); problems != nil {
		t.Errorf("good settings have the problems %+v", problems)
	}
}
