package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/web"
	"github.com/parley-broker/parley/parleytest"
)

func TestARequestIsAnsweredWhenItsMessageIsThere(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "none", "headers": {"X-Shop": "urn:p#Shop"}, "promoted_headers": {"X-Order": "urn:p#Order"},
		"query": {"from": "urn:p#From"}, "promoted_query": {"n": "urn:p#N"}, "message_type": "urn:o#Order"}`)
	r := d.do(http.MethodPost, d.address+"?from=a%00b&n=5", strings.NewReader("<Order/>"),
		"Content-Type", "application/xml; charset=ISO-8859-1", "X-Shop", "north", "X-Order", "17")
	d.want(r, http.StatusAccepted)
	if r.body.Outcome != "PUBLISHED" || r.body.MessageID != 1 || r.header.Get("Parley-Message-Id") != "1" {
		t.Errorf("the answer is %+v", r)
	}
	got := d.in.Inputs()[0]
	if got.Body != "<Order/>" || got.Input.ContentType != "application/xml" || got.Input.Charset != "ISO-8859-1" ||
		got.Input.MessageType != "urn:o#Order" {
		t.Errorf("taken was %+v", got)
	}
	want := "map[urn:p#From:a\uFFFDb urn:p#Shop:north urn:parley:http#Method:POST] map[urn:p#N:5 urn:p#Order:17]"
	if properties := fmt.Sprint(got.Input.Written, " ", got.Input.Promoted); properties != want {
		t.Errorf("the properties are %s, want %s", properties, want)
	}
}

func TestABodyOfAnySizeIsTakenUpToTheLimit(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "none", "max_bytes": 1000000}`)
	for _, size := range []int{0, 1, 256 << 10, 256<<10 + 1, 1000000} {
		body := strings.Repeat("x", size)
		d.want(d.post(body), http.StatusAccepted)
		if got := d.in.Bodies(); got[len(got)-1] != body {
			t.Errorf("of %d bytes %d came", size, len(got[len(got)-1]))
		}
	}
	taken := len(d.in.Bodies())
	d.want(d.post(strings.Repeat("x", 1000001)), http.StatusRequestEntityTooLarge)
	// Without a length that is said before.
	d.want(d.do(http.MethodPost, d.address, io.MultiReader(bytes.NewReader(make([]byte, 1000001)))), http.StatusRequestEntityTooLarge)
	if len(d.in.Bodies()) != taken {
		t.Error("a body beyond the limit was taken")
	}
}

func TestARepeatIsAnsweredWithTheFirstMessage(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "bearer", "callers": {"north": "token", "south": "other"}, "idempotency": "required"}`)
	north, south := "Bearer "+keys["token"], "Bearer "+keys["other"]
	d.want(d.post("a", "Authorization", north), http.StatusBadRequest)
	first := d.post("a", "Authorization", north, "Idempotency-Key", "k1")
	d.want(first, http.StatusAccepted)
	again := d.post("a", "Authorization", north, "Idempotency-Key", "k1")
	d.want(again, http.StatusOK)
	if again.body.MessageID != first.body.MessageID || again.body.Outcome != "REPEATED" {
		t.Errorf("the repeat was answered %+v", again.body)
	}
	// Another caller has keys of its own.
	d.want(d.post("b", "Authorization", south, "Idempotency-Key", "k1"), http.StatusAccepted)
	d.want(d.post("b", "Authorization", south, "Idempotency-Key", strings.Repeat("k", 256)), http.StatusBadRequest)
	if got := d.in.Bodies(); len(got) != 2 {
		t.Errorf("taken were %q", got)
	}
	for _, key := range d.in.Keys() {
		if strings.Contains(key, "k1") || len(key) > 100 {
			t.Errorf("the ledger has the key %s", key)
		}
	}
	if who := d.in.Inputs()[1].Input.Written["urn:parley:http#Caller"]; who != "south" {
		t.Errorf("the caller is %v", who)
	}
}

func TestRequestsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "none", "content_types": ["application/xml"], "methods": ["POST", "PUT"]}`)
	xml := []string{"Content-Type", "application/XML; charset=utf-8"}
	d.want(d.do(http.MethodPut, d.address, strings.NewReader("x"), xml...), http.StatusAccepted)
	r := d.do(http.MethodDelete, d.address, nil, xml...)
	d.want(r, http.StatusMethodNotAllowed)
	if r.header.Get("Allow") != "POST, PUT" {
		t.Errorf("allowed are %q", r.header.Get("Allow"))
	}
	d.want(d.post("x", "Content-Type", "text/plain"), http.StatusUnsupportedMediaType)
	d.want(d.post("x", "Content-Type", "application/xml;;"), http.StatusUnsupportedMediaType)
	d.want(d.post("x"), http.StatusUnsupportedMediaType)
	d.want(d.post("x", "Content-Type", "application/xml", "Content-Encoding", "gzip"), http.StatusUnsupportedMediaType)
	for _, path := range []string{"/", "/orders/", "/orders/../orders", "/Orders", "/orders/x", "//orders", "/%2e%2e/orders"} {
		address := strings.TrimSuffix(d.address, "/orders") + path
		d.want(d.do(http.MethodPost, address, strings.NewReader("x"), xml...), http.StatusNotFound)
	}
	if len(d.in.Bodies()) != 1 {
		t.Errorf("%d requests were taken", len(d.in.Bodies()))
	}
}

func TestNothingIsTakenWhileIntakeIsThrottledOrTheDatabaseAway(t *testing.T) {
	t.Parallel()
	d := openDoor(t, open)
	d.in.Throttle(true)
	r := d.post("x")
	d.want(r, http.StatusServiceUnavailable)
	if r.header.Get("Retry-After") != "5" {
		t.Errorf("come again after %q", r.header.Get("Retry-After"))
	}
	d.in.Throttle(false)
	d.in.Refuse = func([]adapter.Input) error { return errors.New("the database of secrets is away") }
	r = d.post("x")
	d.want(r, http.StatusServiceUnavailable)
	if strings.Contains(r.body.Error, "secrets") || r.header.Get("Retry-After") == "" {
		t.Errorf("the answer is %+v", r)
	}
}

func TestMoreRequestsThanMayBeAreAskedToComeAgain(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "none", "max_requests": 1}`)
	entered, release := make(chan struct{}), make(chan struct{})
	d.in.Refuse = func([]adapter.Input) error { close(entered); <-release; return nil }
	first := make(chan reply, 1)
	go func() { first <- d.post("a") }()
	parleytest.Receive(t, entered, "the first request")
	r := d.post("b")
	d.want(r, http.StatusServiceUnavailable)
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("come again after %q", r.header.Get("Retry-After"))
	}
	close(release)
	d.want(parleytest.Receive(t, first, "the answer of the first"), http.StatusAccepted)
}

func TestALocationThatEndsAnswersWhatIsInHand(t *testing.T) {
	t.Parallel()
	d := openDoor(t, open)
	entered, release := make(chan struct{}), make(chan struct{})
	d.in.Refuse = func([]adapter.Input) error { close(entered); <-release; return nil }
	first := make(chan reply, 1)
	go func() { first <- d.post("a") }()
	parleytest.Receive(t, entered, "the request")
	ended := make(chan error, 1)
	go func() { ended <- d.stop() }()
	parleytest.Until(t, "nothing is taken any more", func() bool {
		_, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(d.address, "http://"), "/orders"))
		return err != nil
	})
	select {
	case err := <-ended:
		t.Fatalf("the location ended with %v before its request was answered", err)
	default:
	}
	close(release)
	d.want(parleytest.Receive(t, first, "the answer"), http.StatusAccepted)
	if err := parleytest.Receive(t, ended, "the end"); err != nil {
		t.Errorf("the location ended with %v", err)
	}
}

func TestASlowBodyIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	d := openDoor(t, `{"authentication": "none", "read_timeout": "200 milliseconds"}`)
	host := strings.TrimSuffix(strings.TrimPrefix(d.address, "http://"), "/orders")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	// The time of one request is not that of the next one on its connection.
	d.want(d.post("x"), http.StatusAccepted)
	if len(d.in.Bodies()) != 1 {
		t.Errorf("taken were %q", d.in.Bodies())
	}
}

func TestABodyThatEndsEarlyIsNotTaken(t *testing.T) {
	t.Parallel()
	d := openDoor(t, open)
	host := strings.TrimSuffix(strings.TrimPrefix(d.address, "http://"), "/orders")
	for _, request := range []string{
		"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
		"POST /orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
			t.Errorf("the answer is %q", answer)
		}
	}
	if len(d.in.Bodies()) != 0 {
		t.Errorf("taken were %q", d.in.Bodies())
	}
}

func TestBadInputIsAcceptedOrRefusedAsTheSettingSays(t *testing.T) {
	t.Parallel()
	for settings, status := range map[string]int{open: 202, `{"authentication": "none", "suspended_status": 422}`: 422} {
		d := openDoor(t, settings)
		_ = d.stop()
		d.address = "http://" + free(t) + "/orders"
		failing := suspending{d.in}
		openAt(t, web.New(), failing, d.address, settings)
		r := d.post("<bad")
		d.want(r, status)
		if r.body.Outcome != "SUSPENDED" || r.body.MessageID == 0 || strings.Contains(r.body.Error, "line 1") != (status == 422) {
			t.Errorf("the answer is %+v", r.body)
		}
	}
}

// suspending is an intake whose pipeline refuses everything.
type suspending struct{ *adaptertest.Intake }

func (s suspending) Take(ctx context.Context, inputs []adapter.Input) ([]adapter.Result, error) {
	results, err := s.Intake.Take(ctx, inputs)
	for i := range results {
		results[i].Outcome, results[i].Failure = adapter.Suspended, errors.New("line 1: no end")
	}
	return results, err
}

func TestLocationsShareAListenerByPath(t *testing.T) {
	t.Parallel()
	kind, base := web.New(), "http://"+free(t)
	orders, invoices := &adaptertest.Intake{}, &adaptertest.Intake{}
	stop, _ := openAt(t, kind, orders, base+"/orders", open)
	openAt(t, kind, invoices, base+"/invoices", open)
	d := &door{T: t}
	d.want(d.do(http.MethodPost, base+"/orders", strings.NewReader("o")), http.StatusAccepted)
	d.want(d.do(http.MethodPost, base+"/invoices", strings.NewReader("i")), http.StatusAccepted)
	if len(orders.Bodies()) != 1 || invoices.Bodies()[0] != "i" {
		t.Errorf("taken were %q and %q", orders.Bodies(), invoices.Bodies())
	}
	e, _ := endpoint(t, base+"/orders", open)
	second, err := kind.NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), orders); err == nil || !strings.Contains(err.Error(), `belongs to location "Orders"`) {
		t.Errorf("a second location of the path gave %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// The client of a location that is away for a while comes again; the other goes on.
	d.want(d.do(http.MethodPost, base+"/orders", strings.NewReader("o")), http.StatusServiceUnavailable)
	d.want(d.do(http.MethodPost, base+"/invoices", strings.NewReader("i")), http.StatusAccepted)
	openAt(t, kind, orders, base+"/orders", open)
	d.want(d.do(http.MethodPost, base+"/orders", strings.NewReader("o")), http.StatusAccepted)
}

func TestALocationListensOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	e, _ := endpoint(t, "http://"+free(t)+"/orders", open)
	e.Permission = adapter.Permission{}
	receiver, err := web.New().NewReceiver(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Run(t.Context(), &adaptertest.Intake{}); !errors.Is(err, adapter.ErrNotPermitted) {
		t.Errorf("the location ended with %v", err)
	}
}
