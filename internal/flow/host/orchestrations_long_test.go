package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/parleytest"
)

// 100,000 instances that wait cost rows, and neither memory of a node nor the speed of the others.
func TestManyInstancesWaitWithoutCost(t *testing.T) {
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		t.Skip("takes a minute: PARLEY_TEST_LONG=1")
	}
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Pair", "First", "[]")
	e.serve(orchestrations(map[string]*program{"Pair": collects(2, "Second")}))
	const few, many = 2000, 100000
	waiting := func(from, count int) {
		e.Exec(`with made as (
				insert into parley_flow._p_instance (send_port_id, version, status, state)
				select s.send_port_id, s.version, 'WAITING', format('{"key": "%s", "bodies": ["a%s"]}', g.n, g.n)
				from parley_flow._p_send_port as s, generate_series($1::integer, $1 + $2 - 1) as g (n) where s.name = 'Pair' order by g.n
				returning instance_id, (state::jsonb ->> 'key') as key
			)
			insert into parley_flow._p_instance_wait (instance_id, wait, receive, hash, property, value, filter, is_open)
			select m.instance_id, '1', '1', parley_flow._p_hash('urn:p#Key', m.key), 'urn:p#Key', m.key,
				'[{"property": "MessageType", "operator": "=", "value": "Second"}]', true from made as m`, from, count)
		e.Exec("insert into parley_flow._p_awaited_property values ('urn:p#Key', 'text') on conflict do nothing")
		e.Exec("analyze parley_flow._p_instance, parley_flow._p_instance_wait")
	}
	ends := func(from, sent int) time.Duration {
		began := time.Now()
		e.Exec(`select parley_flow.publish_many(array_agg('b'::bytea), array_agg(jsonb_build_object('urn:p#Key', g.n::text)), array_agg('Second'::text))
			from generate_series($1::integer, $1 + $2 - 1) as g (n)`, from, few)
		parleytest.Until(t, fmt.Sprintf("%d have ended", sent), func() bool { return len(e.sentBy("Result")) >= sent })
		return time.Since(began)
	}
	heap := func() uint64 {
		runtime.GC()
		m := runtime.MemStats{}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	waiting(0, few)
	ends(0, few)
	waiting(0, few)
	fresh := ends(0, 2*few)
	before := heap()
	waiting(few, many)
	full := ends(many/2, 3*few)
	grown := int64(heap()) - int64(before)
	t.Logf("%d ends took %v among %d instances, and %v among %d: %.2f of the speed; the heap grew by %d KB", few, fresh, few, full, many,
		fresh.Seconds()/full.Seconds(), grown>>10)
	if grown > 16<<20 {
		t.Errorf("the heap of the node grew by %d bytes", grown)
	}
	if full > 2*fresh {
		t.Errorf("among %d instances it took %v, among %d %v", many, full, few, fresh)
	}
}

// counts is a program that takes so many messages of one key, and keeps nothing of them but how many they were.
func counts(until int, next string) *program {
	return &program{run: func(_ context.Context, _ process.World, state json.RawMessage, v process.Event) (process.Step, error) {
		s := struct {
			Key   string `json:"key"`
			Count int    `json:"count"`
		}{}
		if state != nil {
			if err := json.Unmarshal(state, &s); err != nil {
				return process.Step{}, err
			}
		}
		s.Key, s.Count = v.Message.Promoted["urn:p#Key"].(string), s.Count+1
		if s.Count >= until {
			return finished(publishes(fmt.Sprint(s.Count))), nil
		}
		written, err := json.Marshal(s)
		return process.Step{State: written, Status: process.Waiting, Waits: []process.Wait{{
			ID: "1", Receive: "1", Equal: map[string]string{"urn:p#Key": s.Key}, IsOpen: true,
			Filter: []match.Predicate{{Property: "MessageType", Type: "text", Operator: "=", Value: next}},
		}}}, err
	}}
}

// The last thousand of a convoy of 10,000 messages cost what the first cost: as many rows are read for them.
func TestALongConvoyStaysAsFastAsItBegan(t *testing.T) {
	if os.Getenv("PARLEY_TEST_LONG") == "" {
		t.Skip("takes half a minute: PARLEY_TEST_LONG=1")
	}
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Convoy", "Part", `["urn:p#Key"]`)
	e.serve(orchestrations(map[string]*program{"Convoy": counts(11_001, "Part")}))
	rowsRead := func() int {
		<-time.After(2 * time.Second) // sessions report what they read once a second
		return e.number(`select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int from pg_stat_user_tables`)
	}
	thousands := func(count int) (time.Duration, int) {
		e.Exec("select parley_flow.stop('Convoy', 'orchestration')")
		for range count {
			e.Exec(`select parley_flow.publish_many(array_agg('x'::bytea), array_agg('{"urn:p#Key": "a"}'::jsonb), array_agg('Part'::text))
				from generate_series(1, 1000)`)
		}
		before, began := rowsRead(), time.Now()
		e.Exec("select parley_flow.start('Convoy', 'orchestration')")
		e.untilEmpty()
		took := time.Since(began)
		return took, rowsRead() - before
	}
	thousands(1) // warm
	first, rowsOfFirst := thousands(1)
	thousands(8)
	last, rowsOfLast := thousands(1)
	t.Logf("the first thousand took %v and %d rows, the last %v and %d: %.2f of the speed", first, rowsOfFirst, last, rowsOfLast,
		first.Seconds()/last.Seconds())
	if rowsOfLast > rowsOfFirst*3/2 {
		t.Errorf("for the last thousand %d rows were read, for the first %d", rowsOfLast, rowsOfFirst)
	}
	e.publish("Part", "a", "the last one")
	parleytest.Until(t, "it ends", func() bool { return slices.Equal(e.sentBy("Result"), []string{"11001"}) })
}
