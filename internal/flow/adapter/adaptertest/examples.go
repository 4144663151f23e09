package adaptertest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/definitions"
)

var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// CheckExamples has an adapter check the locations and ports of it in the examples of the page of adapters: each direction has one, and
// none has a problem.
func CheckExamples(t *testing.T, kind adapter.Kind) {
	t.Helper()
	text, err := readPage()
	if err != nil {
		t.Fatal(err)
	}
	var sources []definitions.Source
	for _, block := range example.FindAllSubmatch(text, -1) {
		sources = append(sources, definitions.Source{Name: "adapters.md", Written: block[1]})
	}
	document, err := definitions.Read(sources, definitions.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	written, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	type endpoint struct {
		Adapter, Address string
		Settings         json.RawMessage
		Secrets          map[string]string
	}
	var read struct {
		Locations map[string]endpoint `json:"receive location"`
		Ports     map[string]endpoint `json:"send port"`
	}
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	for direction, endpoints := range map[adapter.Direction]map[string]endpoint{adapter.Receive: read.Locations, adapter.Send: read.Ports} {
		found := 0
		for name, e := range endpoints {
			if e.Adapter != kind.Name {
				continue
			}
			found++
			for _, p := range kind.Check(direction, e.Address, e.Settings, slices.Collect(maps.Keys(e.Secrets))) {
				t.Errorf("the example %q of docs/flow/adapters.md: %s: %s. %s", name, strings.Join(p.Path, "."), p.Message, p.Remedy)
			}
		}
		if found == 0 {
			t.Errorf("docs/flow/adapters.md has no example of %s %s", kind.Name, words[direction])
		}
	}
}
