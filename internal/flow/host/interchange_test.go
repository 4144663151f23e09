package host_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/sqltest"
)

// array gives a JSON array of many documents, as an input that is opened.
func array(documents int, end string) adapter.Input {
	var text strings.Builder
	text.WriteString("[")
	for n := range documents {
		if n > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `{"n":%d}`, n)
	}
	text.WriteString(end)
	whole := text.String()
	return adapter.Input{
		Size: int64(len(whole)), Entry: []byte(`{"name": "a.json"}`),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(whole)), nil },
	}
}

func (e *engine) splits(recoverable bool) {
	e.Helper()
	e.Exec(`select parley_flow.apply(jsonb_build_object(
		'pipeline', jsonb_build_object('Split', jsonb_build_object('application', 'Orders', 'direction', 'receive', 'stages', jsonb_build_object(
			'disassemble', jsonb_build_array(jsonb_build_object('component', 'json-disassembler', 'settings', jsonb_build_object('split', true, 'recoverable', $1::boolean)))))),
		'receive location', '{"Source": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source", "pipeline": "Split"}}'::jsonb))`, recoverable)
}

// An input of very many messages is one interchange, stored in pieces of one transaction, beside the others of its call, and taken once.
func TestLargeInterchangeIsStoredAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.splits(false)
	e.serve()
	e.Exec("select parley_flow.stop('Out')")
	in := e.intake("Source")
	take := func(keys ...string) string {
		inputs := []adapter.Input{array(1, "]"), array(4500, "]"), array(2, "]")}
		for i := range inputs {
			inputs[i].Key = keys[i]
		}
		results, err := in.Take(t.Context(), inputs)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range results {
			got = append(got, fmt.Sprintf("%d %s", r.Messages, r.Outcome))
		}
		return strings.Join(got, ", ")
	}
	if got := take("a", "b", "c"); got != "1 PUBLISHED, 4500 PUBLISHED, 2 PUBLISHED" {
		t.Errorf("the first time it gave %s", got)
	}
	sqltest.Equal(e.Session, "1 2 4500", `select string_agg(count::text, ' ' order by count) from (
		select count(*) from parley_flow._p_message group by coalesce(interchange_id, message_id)) as x`)
	if got := take("d", "b", "e"); got != "1 PUBLISHED, 0 REPEATED, 2 PUBLISHED" {
		t.Errorf("the second time it gave %s", got)
	}
	sqltest.Equal(e.Session, 4506, "select count(*)::integer from parley_flow._p_message")
	entries, err := in.Taken(t.Context())
	if err != nil || len(entries) != 5 {
		t.Errorf("taken are %v, %v", entries, err)
	}
}

// An input that turns out to be bad behind its first thousands is suspended whole, and nothing of it was published.
func TestLargeInterchangeThatIsBadIsSuspendedWhole(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.splits(false)
	e.serve()
	e.Exec("select parley_flow.stop('Out')")
	bad := array(4500, `,{"n":`)
	bad.Key = "bad"
	results, err := e.intake("Source").Take(t.Context(), []adapter.Input{array(3, "]"), bad, array(2, "]")})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Messages != 3 || results[1].Outcome != adapter.Suspended || results[1].Messages != 1 || results[2].Messages != 2 {
		t.Errorf("it gave %+v", results)
	}
	sqltest.Equal(e.Session, 5, "select count(*)::integer from parley_flow._p_message where message_id not in (select message_id from parley_flow._p_suspended)")
	sqltest.Equal(e.Session, int(bad.Size), "select length(parley_flow.read_message(message_id)) from parley_flow.suspended")
}

// A large body streams through: it is not in memory at once. The memory is the process's, so this test runs alone.
func TestLargeBodyIsNotInMemory(t *testing.T) {
	e := newEngine(t)
	e.serve()
	const size = 100 << 20
	received := make(chan int64, 1)
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		opened, err := messages[0].Open(ctx)
		if err != nil {
			return []adapter.Delivery{{Err: err}}
		}
		n, err := io.Copy(io.Discard, opened)
		received <- n
		return []adapter.Delivery{{Err: err}}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := e.intake("Source").Take(t.Context(), []adapter.Input{{
		Size: size, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeros{}, size)), nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if n := <-received; n != size {
		t.Errorf("%d bytes came of %d", n, size)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 96<<20 {
		t.Errorf("the memory has grown by %d MB", grown>>20)
	}
	e.untilEmpty()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
