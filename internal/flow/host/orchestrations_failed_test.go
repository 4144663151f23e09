package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/parleytest"
)

// An instance that waits for failed messages of its key gets the one that it has sent itself, and no other instance does; a receive that
// does not ask for them never gets one.
func TestAFailedMessageReachesTheInstanceThatWaitsForIt(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Ask", "Order", "[]")
	e.apply(`{"send port": {"Bank": {"application": "Orders", "host": "Send", "adapter": "FAKE", "address": "bank", "retry_policy": "never",
		"failed_message_routing": true}}}`)
	e.destination("Bank", failsWith(adapter.Failure{Code: "send.refused", Err: errors.New("no such account"), Permanent: true}))
	e.serve(orchestrations(map[string]*program{"Ask": {run: func(_ context.Context, _ process.World, state json.RawMessage, v process.Event) (process.Step, error) {
		if v.Kind == process.Received {
			return finished(publishes(v.Wait + " of " + string(state))), nil
		}
		key := v.Message.Promoted["urn:p#Key"].(string)
		written, err := json.Marshal(key)
		if err != nil {
			return process.Step{}, err
		}
		step := process.Step{State: written, Status: process.Waiting, Waits: []process.Wait{
			{ID: "answer", Receive: "2", Equal: map[string]string{"urn:p#Key": key}, IsOpen: true},
			{ID: "failure", Receive: "3", Equal: map[string]string{"urn:p#Key": key}, IsOpen: true, Filter: []match.Predicate{
				{Property: "ErrorReport.ErrorType", Type: "text", Operator: "exists"},
				{Property: "MessageType", Type: "text", Operator: "=", Value: "Asked"},
			}},
		}}
		if key == "1" {
			sent := *v.Message
			sent.Type = "Asked"
			step.Publications = []process.Publication{{Message: sent, Port: "bank", SendPort: "Bank"}}
		}
		return step, nil
	}}}))
	e.publish("Order", "2", "y")
	parleytest.Until(t, "the other one waits", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where status = 'WAITING'") == 1
	})
	e.publish("Order", "1", "x")
	parleytest.Until(t, "the failure is taken", func() bool { return slices.Equal(e.sentBy("Result"), []string{`failure of "1"`}) })
	parleytest.Until(t, "nothing is left but the other one", func() bool {
		return e.number("select (select count(*) from parley_flow._p_message)::int + (select count(*) from parley_flow._p_instance)::int") == 1
	})
	if _, suspended := e.inBox(); suspended != 0 {
		t.Errorf("%d are suspended", suspended)
	}
}
