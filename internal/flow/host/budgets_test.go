package host_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/parleytest"
)

// Activations that fill the hands of a host, and hang, keep nothing from the instances that are there: these have a budget of their own.
func TestMessagesForInstancesComeWhileActivationsFillTheHost(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.Exec(`select parley_flow.apply(jsonb_build_object('host', jsonb_build_object('Send', jsonb_build_object('role', $1::text, 'in_process_per_cpu', 2))))`, e.send)
	e.orchestration("Pair", "First", "[]")
	pair, released := collects(2, "Second"), make(chan struct{})
	e.Cleanup(func() { close(released) })
	e.serve(orchestrations(map[string]*program{"Pair": {activations: pair.activations, run: func(ctx context.Context, w process.World, state json.RawMessage, v process.Event) (process.Step, error) {
		if v.Kind == process.Activated && strings.HasPrefix(v.Message.Promoted["urn:p#Key"].(string), "hangs") {
			select {
			case <-released:
			case <-ctx.Done():
			}
			return process.Step{}, context.Cause(ctx)
		}
		return pair.run(ctx, w, state, v)
	}}}))
	e.publish("First", "k", "a")
	parleytest.Until(t, "it waits", func() bool {
		return e.number("select count(*)::int from parley_flow.instances where status = 'WAITING'") == 1
	})
	e.untilEmpty()
	for range 60 {
		e.publish("First", "hangs", "x")
	}
	parleytest.Until(t, "the host has its hands full", func() bool {
		return e.number("select count(*)::int from parley_store._p_in_flight") > 1
	})
	e.publish("Second", "k", "b")
	parleytest.Until(t, "the instance ends", func() bool { return slices.Equal(e.sentBy("Result"), []string{"k: a,b"}) })
}

// A claim passes by messages that begin instances apart from those that are for instances.
func TestAClaimPassesByWhatBeginsInstances(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.orchestration("Pair", "First", "[]")
	e.orchestration("Pairs", "Third", "[]")
	for _, name := range []string{"Pair", "Pairs"} {
		e.Exec(`with made as (
				insert into parley_flow._p_instance (send_port_id, version, status, state)
				select s.send_port_id, 1, 'WAITING', '{}' from parley_flow._p_send_port as s where s.name = $1
				returning instance_id
			)
			select parley_flow._p_wake_instances(array_agg(m.instance_id)) from made as m`, name)
	}
	e.publish("First", "k", "x")
	e.publish("Third", "k", "x")
	claimed := func(passedBy ...string) string {
		found := ""
		err := e.DB.QueryRow(t.Context(), `select coalesce(string_agg(c.send_port || case when c.message_id is null then '#' else '' end, ' '
			order by c.send_port collate "C", c.message_id), '') from parley_flow._p_claim('Send', 'x', passed_by => $1, lanes => 50) as c`, passedBy).Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
		e.Exec("select parley_flow._p_release('Send', l.lease_id) from parley_store._p_lease as l")
		e.Exec("select parley_store.repair_lanes(overdue => '0')")
		return found
	}
	for _, c := range []struct {
		passedBy []string
		want     string
	}{
		{[]string{"Pair", "Pairs"}, "Pair# Pairs#"},
		{[]string{"Pair#", "Pairs#"}, "Pair Pairs"},
		{[]string{"Pair"}, "Pair# Pairs Pairs#"},
		{[]string{"Pair#", "Pairs", "Pairs#"}, "Pair"},
		{nil, "Pair Pair# Pairs Pairs#"},
	} {
		parleytest.Until(t, "a claim has "+c.want, func() bool { return claimed(c.passedBy...) == c.want })
	}
}
