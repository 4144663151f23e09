package pipeline_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

func TestAllDefinitionsOfADocumentAreChecked(t *testing.T) {
	t.Parallel()
	all := messageTypes()
	delete(all, "urn:other#Thing")
	document := map[string]any{
		"message type": all,
		"pipeline": map[string]any{
			"In":     defined(t, "receive", `{"disassemble": [{"component": "csv-disassembler", "settings": {"root": "1"}}]}`),
			"Marked": defined(t, "send", `{"assemble": [{"component": "xml-assembler", "settings": {"mark": true}}]}`),
			"Out":    defined(t, "send", `{"assemble": [{"component": "xml-assembler"}]}`),
		},
		"receive location": map[string]any{
			"Good":      map[string]any{"pipeline": "XMLReceive", "pipeline_settings": map[string]any{"xml-disassembler": map[string]any{"recoverable": true}}},
			"No":        map[string]any{"pipeline_settings": map[string]any{"xml-disassembler": map[string]any{}}},
			"Bad":       map[string]any{"pipeline": "In", "pipeline_settings": map[string]any{"csv-disassembler": map[string]any{"split": 1, "root": "Good"}}},
			"Also bad":  map[string]any{"pipeline": "In", "pipeline_settings": map[string]any{"csv-disassembler": map[string]any{"split": true}}},
			"Wrong way": map[string]any{"pipeline": "Out"},
		},
		"send port": map[string]any{
			"Combined": map[string]any{"pipeline": "Marked", "pipeline_settings": map[string]any{"xml-assembler": map[string]any{"charset": "1252"}}},
			"Good":     map[string]any{"pipeline": "Out"}, "Other": map[string]any{"pipeline_settings": map[string]any{"x": nil}},
		},
	}
	found, err := pipeline.Check(encode(t, document))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, strings.Join(p.Path, "/")+": "+p.Message)
	}
	want := `pipeline/In/stages/disassemble/0/settings/root: 1 is no name of an element
receive location/Bad/pipeline_settings/csv-disassembler/split: setting split is 1
receive location/No/pipeline_settings/xml-disassembler: pipeline PassThruReceive has no component "xml-disassembler"
receive location/Wrong way/pipeline: pipeline Out is one to send
send port/Combined/pipeline_settings: 1252 has no byte-order mark
send port/Other/pipeline_settings/x: pipeline PassThruTransmit has no component "x"`
	if strings.Join(got, "\n") != want {
		t.Errorf("found\n%s\nand not\n%s", strings.Join(got, "\n"), want)
	}
}
