package message_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
)

//go:embed testdata/results.txt
var results string

// sql/mail/submission/submission_test.go reads the same table.
func TestResultsUnderOurNamesAreTakenOut(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(results) {
		want, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if want == "#" {
			continue
		}
		value = strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\t`, "\t").Replace(value)
		header, _, _ := message.ParseHeader([]byte("authentication-results: " + value + "\r\n\r\n"))
		if left := header.WithoutResults("elsewhere.example", "mx.example.org"); (len(left) == 0) != (want == "out") {
			t.Errorf("%q: left is %q", value, left)
		}
	}
}
