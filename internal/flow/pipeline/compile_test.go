package pipeline_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

func problemsOf(t *testing.T, err error) pipeline.Problems {
	t.Helper()
	problems, are := errors.AsType[pipeline.Problems](err)
	if err != nil && !are {
		t.Fatalf("the error has no problems: %v", err)
	}
	return problems
}

func TestEverythingThatIsWrongWithAPipelineIsSaidWithItsPathAndRemedy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ direction, stages, overrides, path, message, remedy string }{
		{"receive", `{"disassemble": [{"component": "yaml"}]}`, ``, "stages disassemble 0 component", `no component "yaml"`, "xml-disassembler"},
		{"receive", `{"decode": [{"component": "xml-disassembler"}]}`, ``, "stages decode 0 component", "cannot stand in stage decode", "disassemble"},
		{"receive", `{"encode": []}`, ``, "stages encode", `no stage "encode"`, "decode, disassemble, validate"},
		{"send", `{"assemble": [{"component": "xml-assembler"}, {"component": "csv-assembler"}]}`, ``, "stages assemble", "several", "leave one"},
		{
			"receive", `{"disassemble": [{"component": "xml-disassembler", "settings": {"recover": true}}]}`, ``,
			"stages disassemble 0 settings recover", `no setting "recover"`, "recoverable",
		},
		{
			"receive", `{"disassemble": [{"component": "xml-disassembler", "settings": {"recoverable": "yes"}}]}`, ``,
			"stages disassemble 0 settings recoverable", `is "yes"`, "true or false",
		},
		{
			"receive", `{"disassemble": [{"component": "xml-disassembler", "settings": {"documents": ["urn:x#Y"]}}]}`, ``,
			"stages disassemble 0 settings documents", `no message type "urn:x#Y"`, "urn:orders#Order",
		},
		{
			"receive", `{"disassemble": [{"component": "xml-disassembler", "settings": {"envelopes": ["urn:orders#Order"]}}]}`, ``,
			"stages disassemble 0 settings envelopes", "no envelope", "is_envelope",
		},
		{
			"receive", `{"disassemble": [{"component": "xml-disassembler", "settings": {"charset": "klingon"}}]}`, ``,
			"stages disassemble 0 settings charset", "klingon", "windows-1252",
		},
		{"receive", `{"disassemble": [{"component": "flat-file-disassembler"}]}`, ``, "stages disassemble 0 settings document", "needs document", "give"},
		{
			"receive", `{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:orders#Order"}}]}`, ``,
			"stages disassemble 0 settings document", "says nothing about flat files", "annotations",
		},
		{
			"receive", `{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:other#Thing"}}]}`, ``,
			"stages disassemble 0 settings document", "no XML schema", "give it one",
		},
		{
			"receive", `{"disassemble": [{"component": "flat-file-disassembler", "settings": {"document": "urn:file#File"}}]}`,
			`{"flat-file-disassembler": {"document": "urn:other#Thing"}}`, "over flat-file-disassembler document", "no XML schema", "give it one",
		},
		{
			"receive", `{"disassemble": [{"component": "csv-disassembler"}]}`, `{"csv-disassembler": {"delimiter": ";;"}}`,
			"over csv-disassembler delimiter", `is ";;"`, "one character",
		},
		{"receive", `{}`, `{"csv-disassembler": {}}`, "over csv-disassembler", "has no component", "no settings"},
		{"receive", `{"disassemble": [{"component": "csv-disassembler"}]}`, `[]`, "over", "no object", "component"},
		{
			"receive", `{"disassemble": [{"component": "json-disassembler", "settings": {"path": "$.orders"}}]}`, ``,
			"stages disassemble 0 settings path", "no JSON Pointer", "write instead /orders",
		},
		{
			"send", `{"assemble": [{"component": "xml-assembler", "settings": {"charset": "iso-8859-1", "mark": true}}]}`, ``,
			"stages assemble 0 settings mark", "no byte-order mark", "leave",
		},
		{
			"send", `{"assemble": [{"component": "xml-assembler", "settings": {"processing_instructions": ["a ?><b/>"]}}]}`, ``,
			"stages assemble 0 settings processing_instructions", "has ?>", "xml-stylesheet",
		},
		{
			"send", `{"assemble": [{"component": "flat-file-assembler", "settings": {"header": "urn:head#Head", "header_document": "<x/>"}}]}`, ``,
			"stages assemble 0 settings header_document", "the document is x", "schema",
		},
		{"send", `{"encode": [{"component": "charset-encoder"}]}`, ``, "stages encode 0 settings charset", "needs charset", "give"},
	} {
		definition := defined(t, c.direction, c.stages)
		var err error
		if c.direction == "send" {
			_, err = pipeline.CompileSend(definition, types(t, messageTypes()), json.RawMessage(c.overrides))
		} else {
			_, err = pipeline.CompileReceive(definition, types(t, messageTypes()), json.RawMessage(c.overrides))
		}
		problems := problemsOf(t, err)
		want := "pipeline P " + c.path
		if over, is := strings.CutPrefix(c.path, "over"); is {
			want = "pipeline_settings" + over
		}
		if len(problems) != 1 || strings.Join(problems[0].Path, " ") != want || !strings.Contains(problems[0].Message, c.message) ||
			!strings.Contains(problems[0].Remedy, c.remedy) {
			t.Errorf("%s %s: %+v\nand not at %q: %s; %s", c.stages, c.overrides, problems, want, c.message, c.remedy)
		}
	}
}

func TestAPipelineOfTheOtherDirectionIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := pipeline.CompileSend(defined(t, "receive", `{}`), types(t, nil), nil); len(problemsOf(t, err)) != 1 {
		t.Errorf("it is refused as %v", err)
	}
	if _, err := pipeline.CompileReceive(defined(t, "send", `{}`), types(t, nil), nil); len(problemsOf(t, err)) != 1 {
		t.Errorf("it is refused as %v", err)
	}
}

func TestSettingsOfAPlaceComeBeforeThoseOfThePipeline(t *testing.T) {
	t.Parallel()
	definition := defined(t, "receive", `{"disassemble": [{"component": "csv-disassembler", "settings": {"delimiter": ";", "split": true}}]}`)
	p, err := pipeline.CompileReceive(definition, types(t, nil), json.RawMessage(`{"csv-disassembler": {"delimiter": "|", "split": null, "as": "json"}}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := run(t, p, body("a|b\n1|2\n3|4\n"))
	if err != nil || c.bodies() != `[{"a":"1","b":"2"},{"a":"3","b":"4"}]` {
		t.Errorf("it gives %s, %v", c.bodies(), err)
	}
}

func TestPathsThatAreNotCanonicalAreRefusedWithWhatToWriteInstead(t *testing.T) {
	t.Parallel()
	const canonical = "/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Id' and namespace-uri()='']"
	for written, instead := range map[string]string{
		canonical:      "",
		"/Order/Id":    canonical,
		"/o:Order/Id":  canonical,
		"/Order/@date": "/*[local-name()='Order' and namespace-uri()='urn:orders']/@*[local-name()='date' and namespace-uri()='']",
		"/*[local-name()='Order']/*[local-name()='Id']": canonical,
		"//Id":          "canonical",
		"/Order/None":   "write each step",
		"/Order/Id[1]":  "write each step",
		"/Order/text()": "write each step",
		"/*[local-name()='Other' and namespace-uri()='']": "begin it with the root",
	} {
		all := messageTypes()
		all["urn:orders#Order"] = map[string]any{
			"schema": schema("order.xsd", orderSchema), "promotions": map[string]string{"urn:p#Id": written},
		}
		_, err := pipeline.CompileReceive(defined(t, "receive",
			`{"disassemble": [{"component": "xml-disassembler", "settings": {"documents": ["urn:orders#Order"]}}]}`), types(t, all), nil)
		problems := problemsOf(t, err)
		switch {
		case instead == "" && err == nil:
		case len(problems) != 1 || strings.Join(problems[0].Path, " ") != "message type urn:orders#Order promotions urn:p#Id":
			t.Errorf("%s: %v", written, err)
		case instead == "canonical" && !strings.Contains(problems[0].Message, "//"):
			t.Errorf("%s: %v", written, err)
		case strings.HasPrefix(instead, "/") && problems[0].Remedy != "write instead "+instead,
			instead != "canonical" && !strings.Contains(problems[0].Remedy, instead):
			t.Errorf("%s: %s, and not %s", written, problems[0].Remedy, instead)
		}
	}
}

func TestProblemsOfSchemasHaveTheirPlaceInTheFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<xs:schema": "order.xsd:1",
		strings.Replace(orderSchema, `name="Order"`, `name="Orders"`, 1):                             "no root of message type urn:orders#Order",
		strings.Replace(orderSchema, `type="xs:decimal"`, `type="xs:no"`, 1):                         "order.xsd:6",
		strings.Replace(orderSchema, `/*[local-name()='Total' and namespace-uri()='']`, `/Total`, 1): "order.xsd:3",
	} {
		all := map[string]any{"urn:orders#Order": map[string]any{"schema": schema("order.xsd", text)}}
		_, err := pipeline.CompileReceive(defined(t, "receive",
			`{"disassemble": [{"component": "xml-disassembler", "settings": {"documents": ["urn:orders#Order"]}}]}`), types(t, all), nil)
		problems := problemsOf(t, err)
		if len(problems) != 1 || !slices.Equal(problems[0].Path, []string{"message type", "urn:orders#Order", "schema"}) {
			t.Errorf("%.60s: %v", text, err)
			continue
		}
		file, line, isPlace := strings.Cut(want, ":")
		if isPlace && strings.HasPrefix(file, "order") {
			if problems[0].File != file || string(rune('0'+problems[0].Line)) != line {
				t.Errorf("%.60s: placed at %s, line %d: %s", text, problems[0].File, problems[0].Line, problems[0].Message)
			}
		} else if !strings.Contains(problems[0].Message, want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
