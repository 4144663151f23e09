package flow_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/sqltest"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// examples gives the examples of pages, a file each, with roles of this test.
func examples(t *testing.T, b *sqltest.Broker, names ...string) []definitions.Source {
	t.Helper()
	roles := strings.NewReplacer("flow_receive", b.Role("receive"), "flow_send", b.Role("send"))
	sources := []definitions.Source{}
	for _, name := range names {
		page, err := os.ReadFile("../../../docs/flow/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
			sources = append(sources, definitions.Source{Name: name, Written: []byte(roles.Replace(string(block[1])))})
		}
	}
	return sources
}

func apply(t *testing.T, b *sqltest.Broker, sources ...definitions.Source) []flowstore.Change {
	t.Helper()
	document, err := definitions.Read(sources, definitions.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	written, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	faults, err := flowstore.Check(t.Context(), b.DB, written, false)
	if err != nil || len(faults) > 0 {
		t.Fatalf("faults %+v, %v", faults, err)
	}
	changes, err := flowstore.Apply(t.Context(), b.DB, written, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func TestExamplesOfThePageAreAppliedAndExportedWithoutADifference(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	for _, page := range []string{"definitions.md", "adapters.md"} {
		if changes := apply(t, b, examples(t, b, page)...); len(changes) < 10 {
			t.Errorf("the examples of %s change %+v", page, changes)
		}
	}
	exported, err := flowstore.Export(t.Context(), b.DB, "")
	if err != nil {
		t.Fatal(err)
	}
	written, err := definitions.Write(exported)
	if err != nil {
		t.Fatal(err)
	}
	if changes := apply(t, b, definitions.Source{Name: "export.yaml", Written: written}); len(changes) > 0 {
		t.Errorf("applied again they change %+v", changes)
	}
	each, err := definitions.WriteEach(exported)
	if err != nil {
		t.Fatal(err)
	}
	again := []definitions.Source{}
	for _, file := range each {
		again = append(again, definitions.Source(file))
	}
	if changes := apply(t, b, again...); len(each) != 12 || len(changes) > 0 {
		t.Errorf("applied again from %d files they change %+v", len(each), changes)
	}
}

// A setting that the page does not show is one that nobody finds.
func TestThePageShowsEverySetting(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	document, err := definitions.Read(examples(t, b, "definitions.md"), definitions.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	settings, err := flowstore.Settings(t.Context(), b.DB)
	if err != nil || len(settings) < 50 {
		t.Fatalf("%d settings, %v", len(settings), err)
	}
	written, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if s.Name == "activations" { // parley flow apply writes it
			continue
		}
		if sqltest.Value[bool](b.Session, "select not exists (select from jsonb_each($1::jsonb -> $2::text) as o where o.value ? $3::text)", string(written), s.Kind, s.Name) {
			t.Errorf("no example has %s of a %s", s.Name, s.Kind)
		}
	}
}

func TestExamplesAreValidByTheJSONSchemaAndMistakesAreNot(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	found, err := flowstore.Settings(t.Context(), b.DB)
	if err != nil {
		t.Fatal(err)
	}
	settings := []definitions.Setting{}
	for _, s := range found {
		settings = append(settings, definitions.Setting{
			Kind: s.Kind, Name: s.Name, Type: s.Type, IsRequired: s.IsRequired, Default: s.Default, Lowest: s.Lowest, Highest: s.Highest,
			Choices: s.Choices, Description: s.Description,
		})
	}
	written, err := definitions.JSONSchema(settings)
	if err != nil {
		t.Fatal(err)
	}
	source, err := jsonschema.UnmarshalJSON(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("flow.schema.json", source); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("flow.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var content any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(content)
	}
	for _, example := range examples(t, b, "definitions.md") {
		if err := validate(string(example.Written)); err != nil {
			t.Errorf("%s\n%v", example.Written, err)
		}
	}
	for _, mistake := range []string{
		"ports: {}", "host: {Send: {}}", "host: {Send: {role: 5}}", "host: {Send: {role: x, size: 1}}", "retry policy: {x: {count: -1}}", "retry policy: {x: {jitter: 2}}",
		"application: {x: {tracking: maybe}}", "send port group: {x: {application: a, ports: y}}", "variables: {x: [1]}",
		"send port: {x: {application: a, host: b, adapter: c, address: d, state: Going}}", "send port: {x: {application: a, host: b, adapter: c, address: d, secrets: {p: geheim}}}",
		"send port: {x: {application: a, host: b, adapter: c, address: d, filter: [[{property: p, operator: like, value: 1}]]}}",
	} {
		if validate(mistake) == nil {
			t.Errorf("%s is valid", mistake)
		}
	}
}

func TestTheExportOfAnApplicationIsAppliedToAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	apply(t, b, examples(t, b, "definitions.md")...)
	roles := strings.NewReplacer("RX", b.Role("receive"))
	apply(t, b, definitions.Source{Name: "other.yaml", Written: []byte(roles.Replace(
		"application: {Other: {}}\nhost: {Elsewhere: {role: RX}}\nretry policy: {unused: {count: 1}}\n"))})
	exported, err := flowstore.Export(t.Context(), b.DB, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	for name, isThere := range map[string]bool{`"Send"`: true, `"Receive"`: true, `"patient"`: true, `"Elsewhere"`: false, `"unused"`: false, `"Other"`: false} {
		if bytes.Contains(exported, []byte(name)) != isThere {
			t.Errorf("the export of one application has %s: %v", name, !isThere)
		}
	}
	written, err := definitions.Write(exported)
	if err != nil {
		t.Fatal(err)
	}
	empty := sqltest.NewBroker(t)
	if changes := apply(t, empty, definitions.Source{Name: "export.yaml", Written: written}); len(changes) < 10 {
		t.Errorf("the export changes %+v", changes)
	}
	again, err := flowstore.Export(t.Context(), empty.DB, "Orders")
	if err != nil || !bytes.Equal(again, exported) {
		t.Errorf("exported again it is\n%s\nand not\n%s, %v", again, exported, err)
	}
}
