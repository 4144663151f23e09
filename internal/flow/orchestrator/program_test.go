package orchestrator_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
)

func TestTheOrchestrationOfTheBenchmarkCompiles(t *testing.T) {
	t.Parallel()
	known, err := process.KnownOf(json.RawMessage(`{"message type": {"o#Order": {}}, "send port": {"TCP out": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := orchestrator.Compile("Forward", json.RawMessage(`{"messages": {"order": "o#Order"}, "ports": {"out": {"send_port": "TCP out"}},
		"body": [{"receive": {"message": "order", "activate": true}}, {"send": {"message": "order", "port": "out"}}],
		"state": "Started", "send_port": 3, "version": 1, "activations": [], "application": "Bench", "host": "Hop"}`), known)
	if err != nil {
		t.Fatal(err)
	}
	if a := p.Activations(); len(a) != 1 || len(a[0].Convoy) != 0 {
		t.Errorf("it begins by %+v", a)
	}
}
