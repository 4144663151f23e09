package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// A body that does not say its type is of the one that is meant, if it is in the form of that type.
func TestABodyIsOfTheTypeThatIsMeantWhereItHasItsForm(t *testing.T) {
	t.Parallel()
	types, err := pipeline.NewTypes(json.RawMessage(`{"J": {"format": "json"}, "urn:x#X": null, "F": {"format": "flat"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ meant, body, want string }{
		{"J", ` {"a": 1}`, "J"},
		{"J", `[1]`, "J"},
		{"J", `<X xmlns="urn:x"/>`, ""},
		{"J", `a;b`, ""},
		{"urn:x#X", `{"a": 1}`, ""},
		{"urn:x#X", `<X xmlns="urn:x"/>`, "urn:x#X"},
		{"F", `a;b`, "F"},
		{"F", `{"a": 1}`, ""},
		{"not defined", `{"a": 1}`, "not defined"},
		{"", `{"a": 1}`, ""},
	} {
		if got := types.TypeFor(c.meant, []byte(c.body)); got != c.want {
			t.Errorf("%s meant as %q is of type %q, not %q", c.body, c.meant, got, c.want)
		}
	}
}
