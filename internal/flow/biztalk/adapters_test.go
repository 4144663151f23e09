package biztalk_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// requireKnown asks that the adapters and the components of pipelines take their settings.
func requireKnown(t *testing.T, content json.RawMessage) {
	t.Helper()
	problems, err := adapters.All().Check(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("the adapter refuses %v: %s", p.Path, p.Message)
	}
	found, err := pipeline.Check(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		t.Errorf("the pipeline refuses %v: %s", p.Path, p.Message)
	}
}
