package adapter_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

func TestEachWrongSettingIsNamedWithItsPath(t *testing.T) {
	type inner struct {
		Header string           `json:"header"`
		Wait   adapter.Duration `json:"wait"`
	}
	type outer struct {
		Count int      `json:"count"`
		Names []string `json:"names"`
		Inner inner    `json:"inner"`
	}
	into := outer{Count: 5}
	got := adapter.Problems(json.RawMessage(`{
		"cuont": 1, "names": "a", "inner": {"header": 1, "wait": "5 apples", "x": null}
	}`), &into)
	var paths []string
	for _, p := range got {
		paths = append(paths, strings.Join(p.Path, "."))
		if p.Message == "" || p.Remedy == "" {
			t.Errorf("%v has no message or no remedy", p)
		}
	}
	want := "settings.cuont settings.inner.header settings.inner.wait settings.inner.x settings.names"
	if strings.Join(paths, " ") != want {
		t.Errorf("the paths are %v, want %s", paths, want)
	}
	if got := adapter.Problems(json.RawMessage(`{"names": ["a"], "inner": {"wait": "2 seconds"}}`), &into); got != nil {
		t.Errorf("problems of good settings: %v", got)
	}
	if into.Count != 5 || len(into.Names) != 1 || time.Duration(into.Inner.Wait) != 2*time.Second {
		t.Errorf("read was %+v", into)
	}
}
