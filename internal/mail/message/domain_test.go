package message_test

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
)

//go:embed testdata/domains.txt
var domains string

// sql/mail/base/addresses_test.go reads the same table.
func TestDomainsHaveOneForm(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(domains) {
		written, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if written == "#" {
			continue
		}
		written, err := strconv.Unquote(`"` + written + `"`)
		if err != nil {
			t.Fatal(err)
		}
		got, err := message.CanonicalDomain(written)
		if err != nil {
			got = "-"
		}
		if got != want {
			t.Errorf("%+q is %s, want %s", written, got, want)
		}
		if want != "-" && message.Fold("Änn+K@*."+written) != "Änn+k@*."+want {
			t.Errorf("%+q is folded to %s", written, message.Fold("Änn+K@*."+written))
		}
	}
}
