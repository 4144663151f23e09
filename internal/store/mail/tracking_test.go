package mail_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// The page and the list from which --event refuses other names are the same.
func TestEventsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/mail/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, isThere := strings.Cut(string(page), "| Event | |\n")
	if table, _, _ = strings.Cut(table, "\n\n"); !isThere {
		t.Fatal("the page has no table of events")
	}
	var described []string
	for _, name := range regexp.MustCompile("`([A-Z]+)`").FindAllStringSubmatch(table, -1) {
		described = append(described, name[1])
	}
	slices.Sort(described)
	if known := slices.Sorted(slices.Values(mailstore.EventNames)); !slices.Equal(slices.Compact(described), known) {
		t.Errorf("the page has %q, the list %q", slices.Compact(described), known)
	}
}
