package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/broker/activation/webhook"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/parleytest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
		// The server of the tests, when this is the package that starts it.
		goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

// fixture is a database with a dialog's two services, and a web address that the queue target is delivered to.
type fixture struct {
	*testing.T
	pool    *pgxpool.Pool
	server  *httptest.Server
	starter *webhook.Starter
	log     *logtest.Log

	mu       sync.Mutex
	requests []request
	answer   func(http.ResponseWriter, request)
}

// request is a request that the web address received.
type request struct {
	header http.Header
	body   []byte
	number int             // of the request, from 1
	over   <-chan struct{} // closed at the end of the test
	// brokenOff is closed when the reader has broken it off.
	brokenOff <-chan struct{}

	posted
	Conversations []posted
}

// posted is one conversation in a request.
type posted struct {
	Queue              string
	ConversationHandle string `json:"conversation_handle"`
	ServiceName        string `json:"service_name"`
	Messages           []struct {
		MessageID             string `json:"message_id"`
		MessageSequenceNumber int64  `json:"message_sequence_number"`
		MessageTypeName       string `json:"message_type_name"`
		BodyEncoding          string `json:"body_encoding"`
		Body                  *string
	}
}

func (p posted) bodies() (bodies string) {
	for _, m := range p.Messages {
		bodies += *m.Body
	}
	return bodies
}

// await lets a handler wait. It returns at the end of the test at the latest, whether that has failed or not: the server's Close waits
// for its handlers.
func (r request) await(released <-chan struct{}) {
	select {
	case <-released:
	case <-r.over:
	}
}

func (r request) text() string {
	if len(r.Messages) == 0 || r.Messages[0].Body == nil {
		return ""
	}
	return *r.Messages[0].Body
}

// newFixture gives a test a web address that answers by answer. The definition is made of the arguments of
// create_webhook_activation that follow its address.
func newFixture(t *testing.T, settings string, answer func(http.ResponseWriter, request)) *fixture {
	t.Helper()
	b := &fixture{T: t, pool: parleytest.Database(t), log: &logtest.Log{}, answer: answer}
	b.server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.server.Close)
	permission, err := webhook.ParsePermission([]string{b.server.URL, nowhere})
	b.require(err)
	b.starter = webhook.NewStarter(b.pool, 20, permission, dialogsecurity.WebhookSecrets{}, b.log.Logger(slog.LevelInfo))
	t.Cleanup(b.starter.Close)
	b.exec("select parley.create_queue('initiator')")
	b.exec("select parley.create_service('initiator', 'initiator')")
	b.exec("select parley.create_queue('target')")
	b.exec("select parley.create_service('target', 'target', array['DEFAULT'])")
	b.exec("select parley.create_webhook_activation('target', '" + b.server.URL + "/in', secret => 'whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ==', " +
		"first_retry_ms => 1, longest_retry_ms => 1" + settings + ")")
	return b
}

// nowhere is an address at which no server listens: a port that a test's server has closed may be another's at once.
const nowhere = "http://127.0.0.1:1"

// leave moves the queue's address to where no server listens.
func (b *fixture) leave(settings string) {
	b.Helper()
	b.exec("select parley.drop_external_activation('target')")
	b.exec("select parley.create_webhook_activation('target', '" + nowhere + "/in', secret => 'whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ==', " +
		"first_retry_ms => 1, longest_retry_ms => 1" + settings + ")")
}

func accept(http.ResponseWriter, request) {}

func (b *fixture) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	received := request{header: r.Header, body: body, over: b.Context().Done(), brokenOff: r.Context().Done()}
	_ = json.Unmarshal(body, &received)
	b.mu.Lock()
	b.requests = append(b.requests, received)
	received.number = len(b.requests)
	answer := b.answer
	b.mu.Unlock()
	answer(w, received)
}

func (b *fixture) seen() []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]request(nil), b.requests...)
}

func (b *fixture) require(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *fixture) exec(statement string) {
	b.Helper()
	_, err := b.pool.Exec(b.Context(), statement)
	b.require(err)
}

func value[T any](b *fixture, query string, arguments ...any) (v T) {
	b.Helper()
	b.require(b.pool.QueryRow(b.Context(), query, arguments...).Scan(&v))
	return v
}

// dialog begins a dialog and sends messages on it.
func (b *fixture) dialog(bodies ...string) parley.UUID {
	b.Helper()
	handle, err := parley.BeginDialog(b.Context(), b.pool, "initiator", "target")
	b.require(err)
	b.send(handle, bodies...)
	return handle
}

func (b *fixture) send(handle parley.UUID, bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		b.require(parley.Send(b.Context(), b.pool, handle, parley.DefaultMessageType, []byte(body)))
	}
}

// reader prepares a reader by what the database says now.
func (b *fixture) reader(number int) activation.Reader {
	b.Helper()
	reader, err := b.newReader(number)
	b.require(err)
	return reader
}

func (b *fixture) newReader(number int) (activation.Reader, error) {
	b.Helper()
	q := activation.Queue{Name: "target", Kind: activation.KindWebhook}
	q.ID = value[int](b, "select queue_id from parley._p_queue where name = 'target'")
	q.External = value[json.RawMessage](b, "select definition from parley._p_external_readers() where kind = 'webhook'")
	return b.starter.NewReader(q, number)
}

// run runs readers until they leave, which takes seconds at the most.
func (b *fixture) run(readers int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for number := range readers {
		reader := b.reader(number + 1)
		running.Go(func() {
			if err := errors.Join(reader.Run(ctx), ctx.Err()); err != nil {
				b.Errorf("reader %d: %v; the log is\n%s", number+1, err, b.log)
			}
		})
	}
	running.Wait()
}

// start runs a reader until the test ends it.
func (b *fixture) start(number int) (stop func() error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	reader := b.reader(number)
	go func() { ended <- reader.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func (b *fixture) waitUntil(what string, is func() bool) {
	b.Helper()
	came := false
	defer func() {
		if !came {
			b.Logf("the log is\n%s", b.log)
		}
	}()
	parleytest.Until(b, what, is)
	came = true
}

func (b *fixture) requireWaiting(want int) {
	b.Helper()
	if got := value[int](b, "select count(*) from parley.queue_contents('target')"); got != want {
		b.Errorf("%d messages wait, want %d", got, want)
	}
}

func status(code int) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, _ request) { w.WriteHeader(code) }
}

func answerJSON(text string, arguments ...any) func(http.ResponseWriter, request) {
	return func(w http.ResponseWriter, _ request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, text, arguments...)
	}
}
