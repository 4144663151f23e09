package check_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/check"
)

var update = flag.Bool("update", false, "write the generated part of the page anew")

const (
	page  = "../../../docs/tsql/constructs.md"
	begin = "<!-- generated from internal/tsql/check/constructs.tsv -->\n"
)

// The page of constructs has the table, family by family; go test ./internal/tsql/check -run Page -update writes it.
func TestPageHasTheTable(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(content), begin)
	if !found {
		t.Fatalf("%s has no line %q", page, begin)
	}
	want := head + begin + generated()
	if want == string(content) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the table: run this test with -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// generated writes the table as text: a section for each family, a paragraph for each state and reason.
func generated() string {
	words := map[check.State]string{
		check.Runs: "Runs", check.Informs: "Taken with information", check.Later: "Does not run yet", check.Refused: "Refused",
	}
	var b strings.Builder
	family := ""
	for _, row := range check.All() {
		if row.Family == family {
			continue
		}
		family = row.Family
		b.WriteString("\n## " + strings.ToUpper(family[:1]) + family[1:] + "\n")
		for _, state := range []check.State{check.Runs, check.Informs, check.Later, check.Refused} {
			for _, reason := range reasons(family, state) {
				title := words[state]
				if reason != "" {
					title += " (" + reason + ")"
				}
				b.WriteString("\n" + wrap(title+": "+strings.Join(namesOf(family, state, reason), ", ")+".") + "\n")
			}
		}
	}
	return b.String()
}

// reasons gives the reasons of a state in a family, in the order of the table.
func reasons(family string, state check.State) (all []string) {
	seen := map[string]bool{}
	for _, row := range check.All() {
		if row.Family == family && row.State == state && !seen[row.Reason] {
			seen[row.Reason] = true
			all = append(all, row.Reason)
		}
	}
	return all
}

func namesOf(family string, state check.State, reason string) (all []string) {
	for _, row := range check.All() {
		if row.Family == family && row.State == state && row.Reason == reason {
			all = append(all, "`"+row.Name+"`")
		}
	}
	return all
}

// wrap breaks a paragraph before 116 characters, between its names.
func wrap(paragraph string) string {
	var lines []string
	line := ""
	for word := range strings.SplitSeq(paragraph, ", ") {
		switch {
		case line == "":
			line = word
		case len(line)+2+len(word) > 116:
			lines = append(lines, line+",")
			line = word
		default:
			line += ", " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
