package parleyotel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/parleyotel"
	"github.com/parley-broker/parley/parleytest"
)

// The tests share the tracer of the process, and distinguish their spans by the trace.
var (
	exporter = tracetest.NewInMemoryExporter()
	provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	spans    = provider.Tracer("test")
)

func TestMain(m *testing.M) {
	parleyotel.TraceSends(provider)
	// The process of the test server is waited for as long as the tests run.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"))
}

// services creates ping and pong, each on a queue of its own, and a dialog from ping to pong.
func services(t *testing.T) (*pgxpool.Pool, parley.UUID) {
	t.Helper()
	pool := parleytest.Database(t)
	for _, name := range []string{"ping", "pong"} {
		if _, err := pool.Exec(t.Context(), "select parley.create_queue($1), parley.create_service($1, $1, array['DEFAULT'])", name); err != nil {
			t.Fatal(err)
		}
	}
	handle, err := parley.BeginDialog(t.Context(), pool, "ping", "pong")
	if err != nil {
		t.Fatal(err)
	}
	return pool, handle
}

// order sends a message as a program under a span would, and gives the trace.
func order(t *testing.T, pool *pgxpool.Pool, handle parley.UUID, text string) trace.TraceID {
	t.Helper()
	ctx, span := spans.Start(t.Context(), "order")
	defer span.End()
	if err := parley.Send(ctx, pool, handle, parley.DefaultMessageType, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return span.SpanContext().TraceID()
}

// consume runs a consumer of pong until the handler has been called so often.
func consume(t *testing.T, pool *pgxpool.Pool, calls int, handler parley.Handler) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var once sync.Mutex
	consumer := parley.Consumer{
		Pool: pool, Queue: "pong",
		Handler: func(handling context.Context, tx pgx.Tx, messages []parley.Message) error {
			once.Lock()
			defer once.Unlock()
			if calls--; calls == 0 {
				defer stop()
			}
			return parleyotel.Handler(provider, "pong", handler)(handling, tx, messages)
		},
	}
	if err := consumer.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func ofTrace(id trace.TraceID) map[string]tracetest.SpanStub {
	found := map[string]tracetest.SpanStub{}
	for _, span := range exporter.GetSpans() {
		if span.SpanContext.TraceID() == id {
			found[span.Name] = span
		}
	}
	return found
}

func TestOneTraceShowsSendWaitAndProcessing(t *testing.T) {
	t.Parallel()
	pool, handle := services(t)
	// The first message of a conversation goes the long way, the second the short one.
	for range 2 {
		id := order(t, pool, handle, "x")
		var reply trace.TraceID
		consume(t, pool, 1, func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
			reply = trace.SpanContextFromContext(ctx).TraceID()
			return parley.Send(ctx, tx, messages[0].ConversationHandle, "DEFAULT", nil)
		})
		if reply != id {
			t.Errorf("the handler works under trace %s, want %s", reply, id)
		}
		got := ofTrace(id)
		parents := map[string]string{"send DEFAULT": "", "wait pong": "", "process pong": "wait pong"}
		for name, parent := range parents {
			span, ok := got[name]
			if !ok {
				t.Fatalf("there is no span %q: %v", name, got)
			}
			if parent != "" && span.Parent.SpanID() != got[parent].SpanContext.SpanID() {
				t.Errorf("%q is not within %q", name, parent)
			}
		}
		wait := got["wait pong"]
		if !wait.Parent.IsRemote() || wait.EndTime.Before(wait.StartTime) || got["process pong"].StartTime.Before(wait.EndTime) {
			t.Errorf("the wait is from %s to %s under %+v", wait.StartTime, wait.EndTime, wait.Parent)
		}
		messages, err := parley.Receive(t.Context(), pool, "ping")
		if err != nil || len(messages) != 1 || !strings.Contains(messages[0].TraceContext, id.String()) {
			t.Errorf("the reply is %+v, %v", messages, err)
		}
	}
}

func TestAHandlerIsLinkedToTheTracesOfAllItsMessages(t *testing.T) {
	t.Parallel()
	pool, handle := services(t)
	ids := []trace.TraceID{order(t, pool, handle, "1"), order(t, pool, handle, "2"), order(t, pool, handle, "3")}
	consume(t, pool, 1, func(context.Context, pgx.Tx, []parley.Message) error { return nil })
	process := ofTrace(ids[0])["process pong"]
	if len(process.Links) != 2 {
		t.Fatalf("it is linked to %+v", process.Links)
	}
	for i, link := range process.Links {
		wait := ofTrace(ids[i+1])["wait pong"]
		if link.SpanContext.SpanID() != wait.SpanContext.SpanID() {
			t.Errorf("link %d leads to %s, want the wait of message %d", i, link.SpanContext.SpanID(), i+2)
		}
	}
}

func TestAFailedHandlerShowsInItsTraceAndTheNextTryToo(t *testing.T) {
	t.Parallel()
	pool, handle := services(t)
	id := order(t, pool, handle, "x")
	tries := 0
	consume(t, pool, 2, func(context.Context, pgx.Tx, []parley.Message) error {
		if tries++; tries == 1 {
			return errors.New("out of paper")
		}
		return nil
	})
	var failed, done int
	for _, span := range exporter.GetSpans() {
		if span.SpanContext.TraceID() != id || span.Name != "process pong" {
			continue
		}
		if span.Status.Code == codes.Error && span.Status.Description == "out of paper" {
			failed++
		} else {
			done++
		}
	}
	if failed != 1 || done != 1 {
		t.Errorf("%d tries failed and %d did not, want one of each", failed, done)
	}
}

func TestWithoutASpanNothingIsCarried(t *testing.T) {
	t.Parallel()
	pool, handle := services(t)
	if err := parley.Send(t.Context(), pool, handle, parley.DefaultMessageType, []byte("x")); err != nil {
		t.Fatal(err)
	}
	messages, err := parley.Receive(t.Context(), pool, "pong")
	if err != nil || len(messages) != 1 || messages[0].TraceContext != "" {
		t.Errorf("received %+v, %v", messages, err)
	}
}

func TestALongTraceStateStaysBehind(t *testing.T) {
	t.Parallel()
	pool, handle := services(t)
	for _, c := range []struct {
		name  string
		state string
		want  bool
	}{{"short", strings.Repeat("v", 200), true}, {"long", strings.Repeat("v", 256), false}} {
		state, err := trace.ParseTraceState("a=" + c.state + ",b=" + c.state + ",c=" + c.state[:min(len(c.state), 90)])
		if err != nil {
			t.Fatal(err)
		}
		parent := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1, byte(len(c.state))}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, TraceState: state,
		})
		if err := parley.Send(trace.ContextWithSpanContext(t.Context(), parent), pool, handle, parley.DefaultMessageType, nil); err != nil {
			t.Fatal(err)
		}
		messages, err := parley.Receive(t.Context(), pool, "pong", parley.Wait(10*time.Second))
		if err != nil || len(messages) != 1 || strings.Contains(messages[0].TraceContext, "a=v") != c.want ||
			!strings.HasPrefix(messages[0].TraceContext, "00-"+parent.TraceID().String()) {
			t.Errorf("%s: received %+v, %v", c.name, messages, err)
		}
	}
}

func TestABatchIsOneSpanAndEachOfItsMessagesCarriesTheTrace(t *testing.T) {
	t.Parallel()
	pool, handle := services(t)
	ctx, span := spans.Start(t.Context(), "order")
	defer span.End()
	if err := parley.SendBatch(ctx, pool, handle, parley.DefaultMessageType, [][]byte{[]byte("x"), []byte("y")}); err != nil {
		t.Fatal(err)
	}
	messages, err := parley.Receive(t.Context(), pool, "pong")
	if err != nil || len(messages) != 2 {
		t.Fatalf("received %d messages: %v", len(messages), err)
	}
	for _, message := range messages {
		if !strings.Contains(message.TraceContext, span.SpanContext().TraceID().String()) {
			t.Errorf("a message carries %q", message.TraceContext)
		}
	}
	if _, ok := ofTrace(span.SpanContext().TraceID())["send DEFAULT"]; !ok {
		t.Error("there is no span of the send")
	}
}
