package host_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

func TestAWorkerAnswersAnActivity(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec("select parley.create_queue('work', kind => 'SIMPLE')")
	e.Exec("select parley.grant('SEND', 'QUEUE', 'work', $1)", e.send)
	e.orchestration("Work", "Order", "[]")
	e.serve(orchestrations(map[string]*program{"Work": {run: func(_ context.Context, w process.World, _ json.RawMessage, v process.Event) (process.Step, error) {
		if v.Kind == process.ActivityDone {
			return finished(publishes(string(v.Result) + v.Error)), nil
		}
		return process.Step{State: json.RawMessage(`{}`), Status: process.Waiting, Activities: []process.Activity{{
			ID: w.NewID(), Name: "add", Queue: "work", Input: json.RawMessage(`{"a": 1}`), Attempts: 2, TimeOut: time.Minute,
		}}}, nil
	}}}))
	work := func(statement string) {
		parleytest.Until(t, "the work is there", func() bool {
			return e.number(`with t as materialized (select convert_from(body, 'UTF8')::jsonb as body from parley.take('work', 1, timeout => 1000))
				select count(`+statement+`)::int from t`) == 1
		})
	}
	e.publish("Order", "k", "x")
	work(`parley_flow.complete_activity(body ->> 'activity', to_jsonb((body -> 'input' ->> 'a')::int + 1))::text`)
	parleytest.Until(t, "it is answered", func() bool { return slices.Equal(e.sentBy("Result"), []string{"2"}) })
	e.publish("Order", "k", "x")
	first := ""
	parleytest.Until(t, "the work is there", func() bool {
		_ = e.DB.QueryRow(t.Context(), "select convert_from(body, 'UTF8')::jsonb ->> 'activity' from parley.take('work', 1, timeout => 1000)").Scan(&first)
		return first != ""
	})
	e.Exec("select parley_flow.fail_activity($1, 'no')", first)
	parleytest.Until(t, "it is asked for again", func() bool { return e.number("select max(attempt) from parley_flow._p_instance_activity") == 2 })
	// The worker of an attempt that was given up has no say about the next one.
	for _, late := range []string{"fail_activity($1, 'late')", "fail_activity($1, 'late', is_final => true)", "complete_activity($1, '0')"} {
		e.RefusesFlow(18, "select parley_flow."+late, first)
	}
	e.RefusesFlow(6, "select parley_flow.fail_activity('x.1', 'late')")
	sqltest.Equal(e.Session, false, "select parley_flow.renew_activity($1)", first)
	work(`parley_flow.fail_activity(body ->> 'activity', 'never')::text`)
	parleytest.Until(t, "it has failed", func() bool { return slices.Contains(e.sentBy("Result"), "never") })
	e.untilNone("parley_flow._p_instance_activity")
}
