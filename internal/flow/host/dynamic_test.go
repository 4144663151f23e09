package host_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// A host says where a message of a dynamic port goes; a program that publishes, and an operator who mends a message, cannot.
func TestHostsAloneChooseTheDestinationsOfADynamicPort(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Anywhere", `{"adapter": "Dynamic", "address": "fake://*", "settings": {"adapters": {"FAKE": {}}}}`)
	e.serve()
	take := func(address string) {
		t.Helper()
		_, err := e.intake("Source").Take(t.Context(), []adapter.Input{
			{Body: []byte(address), Promoted: map[string]any{"Transport.Address": address}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	take("fake://here")
	parleytest.Until(t, "it is sent", func() bool { return len(e.sentBy("Anywhere")) == 1 })
	take("http://elsewhere")
	parleytest.Until(t, "it is suspended", func() bool {
		return sqltest.Value[bool](e.Session, `select exists (select from parley_flow.suspended where send_port = 'Anywhere' and code = 'send.refused')`)
	})
	e.RefusesFlow(10, `select parley_flow.publish('x'::text, '{"Transport.Address": "fake://thief"}')`)
	e.RefusesFlow(10, `select parley_flow.publish('x'::text, '{}', written => '{"Transport.Address": "fake://thief"}')`)
	e.RefusesFlow(10, `select parley_flow.resubmit(suspension_id, properties => '{"Transport.Address": "fake://thief"}')
		from parley_flow.suspended where send_port = 'Anywhere'`)
	if sent := strings.Join(e.sentBy("Anywhere"), " "); strings.Contains(sent, "thief") || len(e.sentBy("Anywhere")) != 1 {
		t.Errorf("sent are %s", sent)
	}
}
