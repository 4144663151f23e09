package pipeline_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

var update = flag.Bool("update", false, "write the components into the page of pipelines")

const page = "../../../docs/flow/pipelines.md"

// examples are the examples of the page: a use of each component.
var examples = map[string]string{
	"xml-disassembler":       `{"envelopes": ["urn:env#Batch"], "documents": ["urn:orders#Order"], "recoverable": true}`,
	"flat-file-disassembler": `{"document": "urn:file#File", "header": "urn:head#Head", "recover_records": true}`,
	"csv-disassembler":       `{"delimiter": ";", "charset": "windows-1252", "as": "json", "type": "order", "split": true}`,
	"json-disassembler":      `{"type": "order", "path": "/orders", "recoverable": true}`,
	"json-validator":         `{"assert_format": true, "recoverable": true}`,
	"xml-validator":          `{"documents": ["urn:orders#Order"], "recoverable": true}`,
	"xml-assembler":          `{"envelope": "urn:env#Batch", "charset": "utf-16", "mark": true, "declaration": true}`,
	"flat-file-assembler":    `{"header": "urn:head#Head", "charset": "windows-1252"}`,
	"csv-assembler":          `{"delimiter": ";", "columns": ["id", "name"], "crlf": true}`,
	"json-assembler":         `{"as_array": true}`,
	"charset-encoder":        `{"charset": "iso-8859-1"}`,
	"gzip-decoder":           `{"max_bytes": 100000000}`,
	"gzip-encoder":           `{}`,
	"zip-decoder":            `{"entry": "*.xml", "max_bytes": 100000000}`,
	"zip-encoder":            `{"entry": "order.xml"}`,
	"mime-decoder":           `{"part": "*/xml", "name": "*.xml"}`,
	"mime-encoder":           `{"name": "order.xml", "header": true}`,
}

// The components of the page are those that there are, with all their settings.
func TestThePageHasEachComponentWithItsSettings(t *testing.T) {
	t.Parallel()
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const heading = "## Components\n"
	before, after, _ := strings.Cut(string(written), heading)
	want := "\n" + components()
	if *update {
		if err := os.WriteFile(page, []byte(before+heading+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if after != want {
		t.Errorf("the components of the page are not those that there are: go test ./internal/flow/pipeline -run %s -update writes them", t.Name())
	}
}

// components writes the components as the page has them.
func components() string {
	var b strings.Builder
	for i, c := range pipeline.Components() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", c.Name, wrapped(fmt.Sprintf("Stage `%s`. %s", strings.Join(c.Stages, "`, `"), c.Meaning)))
		fmt.Fprintf(&b, "```yaml\n- component: %s\n  settings: %s\n```\n", c.Name, unquoted(examples[c.Name]))
		if len(c.Settings) == 0 {
			continue
		}
		b.WriteString("\n| Setting | Value | Default | |\n| --- | --- | --- | --- |\n")
		for _, s := range c.Settings {
			kind, byDefault := string(s.Type), "`"+string(s.Default)+"`"
			if s.Type == pipeline.Choice {
				kind = "`" + strings.Join(s.Choices, "`, `") + "`"
			}
			if string(s.Default) == "null" {
				byDefault = ""
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, kind, byDefault, strings.ReplaceAll(s.Meaning, "|", `\|`))
		}
	}
	return b.String()
}

// unquoted writes JSON as YAML has it most often: keys without quotes.
func unquoted(settings string) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal([]byte(settings), &keys) != nil {
		return settings
	}
	for key := range keys {
		settings = strings.ReplaceAll(settings, `"`+key+`":`, key+":")
	}
	return settings
}

// wrapped breaks a text into lines as pages have them.
func wrapped(text string) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 120 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}

func TestTheExamplesOfThePageCanBeCompiled(t *testing.T) {
	t.Parallel()
	for _, c := range pipeline.Components() {
		settings, has := examples[c.Name]
		if !has {
			t.Errorf("component %s has no example", c.Name)
			continue
		}
		for _, stage := range c.Stages {
			definition := pipeline.Definition{Name: "P", Direction: "receive", Stages: map[string][]pipeline.Use{
				stage: {{Component: c.Name, Settings: json.RawMessage(settings)}},
			}}
			var err error
			if slices.Contains(pipeline.Stages("send"), stage) {
				definition.Direction = "send"
				_, err = pipeline.CompileSend(definition, types(t, messageTypes()), nil)
			} else {
				_, err = pipeline.CompileReceive(definition, types(t, messageTypes()), nil)
			}
			if err != nil {
				t.Errorf("%s in stage %s: %v", c.Name, stage, err)
			}
		}
	}
}

func TestSettingsHaveDefaultsThatAreNoMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range pipeline.Components() {
		if c.Meaning == "" || len(c.Stages) == 0 {
			t.Errorf("component %+v says nothing", c)
		}
		for _, s := range c.Settings {
			if s.Meaning == "" || !json.Valid(s.Default) {
				t.Errorf("setting %s of %s is %+v", s.Name, c.Name, s)
			}
		}
	}
}
