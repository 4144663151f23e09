package host_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/parleytest"
)

// Sessions of two nodes end in the middle of claims, steps and commits, again and again: each message counts once, in its order.
func TestStepsThatAreBrokenOffHappenOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Convoy", "Part", `["urn:p#Key"]`)
	programs := orchestrations(map[string]*program{"Convoy": collects(4, "Part")})
	e.serve(programs)
	e.serve(programs)
	const keys, each = 8, 16
	broken := 0
	for n := range each {
		for key := range keys {
			e.publish("Part", fmt.Sprint(key), fmt.Sprint(n))
		}
		broken += e.number(`select count(pg_terminate_backend(a.pid))::int from pg_stat_activity as a
			where a.datname = current_database() and a.pid <> pg_backend_pid() and a.state <> 'idle'
				and a.query ~* '_p_begin_step|_p_advance|_p_claim|^commit|^begin'`)
	}
	parleytest.Until(t, "all are collected", func() bool { return len(e.sentBy("Result")) >= keys*each/4 })
	e.untilEmpty()
	got, want := e.sentBy("Result"), []string{}
	for key := range keys {
		for of := range each / 4 {
			numbers := []string{}
			for n := range 4 {
				numbers = append(numbers, fmt.Sprint(of*4+n))
			}
			want = append(want, fmt.Sprintf("%d: %s", key, strings.Join(numbers, ",")))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	// The port beside it is no part of a transaction: what it has sent is sent again where its outcome was lost.
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("after %d sessions were ended: %v", broken, got)
	}
	e.untilNone("parley_flow._p_instance")
	e.untilNone("parley_flow._p_instance_event")
}

// The real programs run in a host: a message is constructed, typed and routed by what it has, and a correlated answer ends the instance.
func TestAnOrchestrationOfDefinitionsRuns(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	settings := `{"application": "Orders", "host": "Send", "messages": {"order": "urn:s#Order", "answer": "Answer"},
		"variables": {"key": "text"}, "correlations": {"of order": ["urn:p#Key"]}, "ports": {"ask": {}},
		"body": [
			{"receive": {"message": "order", "activate": true, "initialise": ["of order"]}},
			{"send": {"message": "order", "port": "ask"}},
			{"receive": {"message": "answer", "follow": ["of order"]}},
			{"send": {"message": "answer", "port": "ask"}}
		]}`
	known, err := process.KnownOf(json.RawMessage(`{"message type": {"urn:s#Order": {}, "Answer": {}},
		"property schema": {"urn:p": {"properties": {"Key": {}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	program, problems := orchestrator.Check("Ask", json.RawMessage(settings), known)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	activation := program.Activations()[0]
	filter, err := json.Marshal(activation.Filter)
	if err != nil {
		t.Fatal(err)
	}
	e.apply(fmt.Sprintf(`{"message type": {"Answer": {"application": "Orders"}}, "orchestration": {"Ask": %s "activations":
		[{"receive": %q, "filter": %s, "convoy": []}]}},
		"send port": {"Result": {"application": "Orders", "host": "Send", "adapter": "FAKE", "address": "out",
			"filter": [[{"property": "InboundTransportLocation", "operator": "=", "value": "Ask"}]]}}}`,
		strings.TrimSuffix(settings, "}")+",", activation.Receive, strings.ReplaceAll(string(filter), `"type":"text",`, "")))
	e.serve()
	e.publish("urn:s#Order", "7", "<Order xmlns='urn:s'><Key>7</Key></Order>")
	parleytest.Until(t, "it waits", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where status = 'WAITING' and waits_for @> '[{\"is_open\": true}]'") == 1
	})
	e.publish("Answer", "7", "yes")
	parleytest.Until(t, "the answer is sent on", func() bool { return slices.Contains(e.sentBy("Result"), "yes") })
	e.untilNone("parley_flow._p_instance")
	if got := e.sentBy("Result"); len(got) != 2 {
		t.Errorf("sent are %q", got)
	}
}
