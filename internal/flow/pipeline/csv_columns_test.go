package pipeline_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// A header line is held against the schema of the message type, and against the columns of the setting.
func TestCSVOfAnotherDelimiterOrFileIsRefusedByItsHeaderLine(t *testing.T) {
	t.Parallel()
	const rows = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:rows"><xs:element name="Rows"><xs:complexType><xs:sequence>
		<xs:element name="Row" maxOccurs="unbounded"><xs:complexType><xs:sequence><xs:element name="No"/><xs:element name="Name"/></xs:sequence>
		</xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element></xs:schema>`
	schema := func(file, text string) map[string]any {
		return map[string]any{"schema": map[string]any{"file": file, "documents": map[string]any{file: text}}}
	}
	known := types(t, map[string]any{
		"urn:rows#Rows": schema("rows.xsd", rows),
		"rows":          schema("rows.json", `{"type": "array", "items": {"type": "object", "properties": {"No": {}, "Name": {}}}}`),
	})
	for settings, ofSchema := range map[string]bool{
		`"namespace": "urn:rows"`: true, `"as": "json", "type": "rows"`: true, `"columns": ["No"]`: false,
	} {
		p, err := pipeline.CompileReceive(defined(t, "receive",
			`{"disassemble": [{"component": "csv-disassembler", "settings": {`+settings+`}}]}`), known, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, p, body("No,Name\n1,Bolt\n")); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
		want := `does not name the column "No"`
		if ofSchema {
			want = "the schema of the message type has none of the columns"
		}
		for _, content := range []string{"No;Name\n1\n", "Id,Amount\n1,2\n"} {
			if _, err := run(t, p, body(content)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q gives %v", settings, content, err)
			}
		}
	}
}
