package definitions_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/definitions"
)

// A line of some megabytes is read in seconds: its length squared would be minutes.
func TestADocumentOfOneLongLineIsReadWithThePlaceOfEachFault(t *testing.T) {
	t.Parallel()
	const ports = 60_000
	var line strings.Builder
	line.WriteString(`{"receive port": {`)
	for i := range ports {
		fmt.Fprintf(&line, `"Ä%d": {"application": "Orders", "description": "%s"}, `, i, strings.Repeat("ö", 20))
	}
	line.WriteString(`"last": {}, `)
	again := utf8.RuneCountInString(line.String()) + 1
	line.WriteString(`"last": {}}}`)
	_, err := definitions.Read([]definitions.Source{{Name: "flow.json", Written: []byte(line.String())}}, definitions.Settings{})
	if want := fmt.Sprintf("flow.json:1:%d: \"last\" is given twice", again); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("the fault is %v, not %s", err, want)
	}
}
