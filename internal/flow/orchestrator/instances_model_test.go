package orchestrator_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/sqltest"
)

// lifeBody takes an answer or gives up after an hour, and then takes the next beginning of its key; convoyBody takes three parts.
const (
	lifeBody = `[
		{"receive": {"message": "begun", "activate": true, "initialise": ["of key"]}},
		{"set": {"seen": "begun.body()"}},
		{"listen": [
			{"receive": {"message": "answer", "follow": ["of key"]}, "do": [{"set": {"seen": "seen + ' ' + answer.body()", "last": "answer.body()"}}]},
			{"delay": "1 hour", "do": [{"set": {"seen": "seen + ' late'"}}]}
		]},
		{"decide": [{"when": "last.endsWith('s')", "do": [{"suspend": "see {{last}}"}]}]},
		{"receive": {"message": "next", "follow": ["of key"]}},
		{"construct": {"message": "done", "template": "<d>{{seen}} {{next.body()}}</d>"}},
		{"send": {"message": "done", "port": "out"}}
	]`
	convoyBody = `[
		{"receive": {"message": "part", "activate": true, "initialise": ["of key"]}},
		{"set": {"seen": "part.body()", "parts": "1"}},
		{"while": {"when": "parts < 3", "do": [
			{"receive": {"message": "part", "follow": ["of key"]}},
			{"set": {"seen": "seen + ' ' + part.body()", "parts": "parts + 1", "last": "part.body()"}},
			{"decide": [{"when": "parts < 3 && last.endsWith('s')", "do": [{"suspend": "see {{last}}"}]}]}
		]}},
		{"construct": {"message": "done", "template": "<d>{{seen}}</d>"}},
		{"send": {"message": "done", "port": "out"}}
	]`
	instancesDocument = `{
		"application": {"$": {}},
		"message type": {"$ begin": {"application": "$"}, "$ answer": {"application": "$"}, "$ part": {"application": "$"}, "$ done": {"application": "$"}},
		"send port": {"$ result": {"application": "$", "host": "Receive", "adapter": "FILE", "address": "/x", "state": "Stopped",
			"filter": [[{"property": "MessageType", "operator": "=", "value": "$ done"}]]}},
		"orchestration": {
			"$ life": {"application": "$", "host": "Send", "unread": "$unread", "messages": {"begun": "$ begin", "next": "$ begin", "answer": "$ answer", "done": "$ done"},
				"variables": {"seen": "text", "last": {"type": "text", "value": ""}}, "correlations": {"of key": ["urn:p#Key"]}, "ports": {"out": {}},
				"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "$ begin"}]], "convoy": []}], "body": ` + lifeBody + `},
			"$ convoy": {"application": "$", "host": "Send", "unread": "$unread", "messages": {"part": "$ part", "done": "$ done"},
				"variables": {"seen": "text", "last": {"type": "text", "value": ""}, "parts": "integer"}, "correlations": {"of key": ["urn:p#Key"]}, "ports": {"out": {}},
				"activations": [{"receive": "0", "filter": [[{"property": "MessageType", "operator": "=", "value": "$ part"}]], "convoy": ["urn:p#Key"]}], "body": ` + convoyBody + `}
		}
	}`
)

// applications numbers them.
var applications atomic.Int64

// model is an application with two orchestrations that two nodes serve, and all that has to be true of it.
type model struct {
	sqltest.Flow
	*world
	application  string
	known        process.Known
	settings     map[string]json.RawMessage
	nodes        []*node
	bodies       int
	isStopped    map[string]bool
	batches      []*batch
	hasCrowded   bool
	transaction  pgx.Tx
	beganAt      int         // the step in which it wrote first
	open         []*delivery // of the transaction
	openUnrouted []*modelMessage
}

func (m *model) name(of string) string { return m.application + " " + of }

// Messages come, also from transactions that stay open, while nodes are killed between any two messages of the protocol, lose their
// leases, and operators stop orchestrations, resume and terminate instances. Each message is consumed once by the instance that waits for
// it, or handled as the policy says; an instance stands where its last persistence point says; nothing waits for one that is over.
func TestInstancesModel(t *testing.T) {
	t.Parallel()
	// A check takes half a second; an engineer who wants more gives -rapid.checks.
	if given := flag.Lookup("rapid.checks"); given.Value.String() == given.DefValue && os.Getenv("PARLEY_TEST_LONG") == "" {
		if err := given.Value.Set("12"); err != nil {
			t.Fatal(err)
		}
	}
	f := sqltest.NewFlow(t)
	nodes := []*node{{name: "one"}, {name: "two"}}
	for _, n := range nodes {
		(&model{Flow: f}).start(n)
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			n.pool.Close()
		}
	})
	rapid.Check(t, func(r *rapid.T) {
		m := newModel(r, f, nodes)
		defer m.close()
		r.Repeat(map[string]func(*rapid.T){
			"publish": m.publish, "publish more": m.publish, "publish most": m.publish, "publish in": m.publishIn, "end": m.end, "crowd": m.crowd,
			"state": m.changeState, "claim": m.claim, "claim more": m.claim, "run": m.run, "run more": m.run, "lose": m.loseLease,
			"time": m.passTime, "time again": m.passTime, "resume": m.resume, "terminate": m.terminateOne,
			"": func(r *rapid.T) {
				m.compare(r)
				m.step++
			},
		})
		m.drain(r)
	})
}

func newModel(r *rapid.T, f sqltest.Flow, nodes []*node) *model {
	m := &model{
		Flow: f, nodes: nodes, application: fmt.Sprintf("app%d", applications.Add(1)), isStopped: map[string]bool{}, settings: map[string]json.RawMessage{},
		world: &world{policy: rapid.SampledFrom([]string{"republish", "republish", "hand_over", "dead_letter"}).Draw(r, "unread"), step: 1},
	}
	document := strings.NewReplacer("$unread", m.policy, "$", m.application).Replace(instancesDocument)
	var all map[string]map[string]json.RawMessage
	if err := json.Unmarshal([]byte(document), &all); err != nil {
		r.Fatal(err)
	}
	all["property schema"] = map[string]json.RawMessage{"urn:p": json.RawMessage(`{"properties": {"Key": {}}}`)}
	written, err := json.Marshal(all)
	if err != nil {
		r.Fatal(err)
	}
	if m.known, err = process.KnownOf(written); err != nil {
		r.Fatal(err)
	}
	for _, of := range []string{"life", "convoy"} {
		m.settings[of] = all["orchestration"][m.name(of)]
		settings := map[string]json.RawMessage{}
		if err := json.Unmarshal(m.settings[of], &settings); err != nil {
			r.Fatal(err)
		}
		delete(settings, "activations")
		if m.settings[of], err = json.Marshal(settings); err != nil {
			r.Fatal(err)
		}
		if _, problems := orchestrator.Check(m.name(of), m.settings[of], m.known); len(problems) > 0 {
			r.Fatal(problems)
		}
	}
	exec(r, m.DB, "select parley_flow.apply($1::jsonb)", document)
	for _, n := range nodes {
		n.of.Store(m)
	}
	return m
}

func (m *model) close() {
	if m.transaction != nil {
		_ = m.transaction.Rollback(context.Background())
	}
}

// compare holds what the database has against what has to be there.
func (m *model) compare(r *rapid.T) {
	lines := []string{}
	for _, i := range m.instances {
		status := "WAITING"
		if i.isSuspended && !i.isResumed {
			status = "SUSPENDED"
		}
		inbox := []string{}
		for _, b := range i.inbox {
			inbox = append(inbox, fmt.Sprint(b.message.id))
		}
		open, others := i.waits()
		timers := 0
		if !i.isConvoy && i.phase == 0 {
			timers = 1
		}
		lines = append(lines, fmt.Sprintf("%d %s %s: %d open, %d others, %d timers, not taken %s", i.number, status, strings.Join(i.seen, " "),
			open, others, timers, strings.Join(inbox, " ")))
	}
	slices.Sort(lines)
	results := slices.Clone(m.results)
	slices.Sort(results)
	want := fmt.Sprintf("%s\nunread %d, unrouted %d\nresults %s", strings.Join(lines, "\n"), len(m.unread), len(m.unrouted), strings.Join(results, "; "))
	got := value[string](r, m.DB, `
		select (
			select coalesce(string_agg(format('%s %s %s: %s open, %s others, %s timers, not taken %s', i.instance_id, i.status,
					jsonb_path_query_first(i.state::jsonb, '$.**.v.seen') #>> '{}', w.open, w.others,
					(select count(*) from parley_flow._p_instance_timer as t where t.instance_id = i.instance_id),
					(select string_agg(e.message_id::text, ' ' order by e.event_id) from parley_flow._p_instance_event as e
						where e.instance_id = i.instance_id and e.kind <> 'RESUMED')
				), E'\n' order by i.instance_id::text collate "C"), '')
			from parley_flow._p_instance as i
			join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
			cross join lateral (
				select count(*) filter (where is_open) as open, count(*) filter (where not is_open) as others
				from parley_flow._p_instance_wait as o where o.instance_id = i.instance_id
			) as w
			where s.application = $1
		) || format(E'\nunread %s, unrouted %s\nresults %s',
			(select count(*) from parley_flow._p_suspended where application = $1 and stage = 'PROCESS'),
			(select count(*) from parley_flow._p_suspended where message_type like $1 || ' %' and stage = 'ROUTE'),
			(select string_agg(d.text, '; ' order by d.text collate "C")
				from (select translate(convert_from(body, 'UTF8'), '</d>', '') as text from parley_flow._p_message where message_type = $1 || ' done') as d))`, m.application)
	if got != want {
		r.Fatalf("the database has\n%s\nbut should have\n%s", got, want)
	}
}

// drain ends everything: each message has its one fate, and nothing is left of instances that are over.
func (m *model) drain(r *rapid.T) {
	if m.transaction != nil {
		m.commit(r)
	}
	m.startAll(r)
	m.work(r)
	for len(m.instances) > 0 {
		i := m.instances[0]
		exec(r, m.DB, "select parley_flow.terminate_instances(jsonb_build_object('instances', jsonb_build_array($1::bigint)))", i.number)
		m.terminate(i)
		m.step++
		m.work(r)
	}
	m.compare(r)
	left := value[string](r, m.DB, `
		select concat_ws(', ',
			(select 'waits ' || nullif(count(*), 0) from parley_flow._p_instance_wait as w where not exists (select from parley_flow._p_instance as i where i.instance_id = w.instance_id)),
			(select 'timers ' || nullif(count(*), 0) from parley_flow._p_instance_timer as w where not exists (select from parley_flow._p_instance as i where i.instance_id = w.instance_id)),
			(select 'events ' || nullif(count(*), 0) from parley_flow._p_instance_event as w where not exists (select from parley_flow._p_instance as i where i.instance_id = w.instance_id)),
			(select 'holds ' || nullif(count(*), 0) from parley_flow._p_instance_hold as w where not exists (select from parley_flow._p_instance as i where i.instance_id = w.instance_id)),
			(select 'messages ' || string_agg(e.message_id::text, ' ') from parley_flow._p_message as e where e.message_type like $1 || ' %' and e.message_type <> $1 || ' done'
				and not exists (select from parley_flow._p_suspended as s where s.message_id = e.message_id)))`, m.application)
	if left != "" {
		r.Fatalf("left are %s", left)
	}
}

// work has nodes work until nothing is left to do.
func (m *model) work(r *rapid.T) {
	isIdle := func() bool { return len(m.batches) == 0 && len(m.deliveries) == 0 }
	// A claim may give nothing, because it has moved what it claimed, or the lane waits for a transaction that is open.
	isEmpty, began := false, m.step
	for empty := 0; (!isIdle() || !isEmpty) && empty < 30; {
		if m.step-began > 2000 {
			r.Fatalf("the work does not end: %d deliveries are left", len(m.deliveries))
		}
		for len(m.batches) > 0 {
			b := m.batches[0]
			m.batches = m.batches[1:]
			m.runBatch(r, b)
			m.compare(r)
			m.step++
		}
		isEmpty = m.claimBy(r, m.nodes[m.step%2], 100, map[bool]time.Duration{true: 50 * time.Millisecond}[isEmpty])
		if empty++; !isEmpty {
			empty = 0
		}
	}
	if !isIdle() {
		d := m.deliveries[0]
		r.Fatalf("message %d for %q was never claimed", d.message.id, d.key())
	}
}
