package layering

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	specReference = regexp.MustCompile(`\bspec ((?:[0-9]+(?:\.[0-9]+)?(?:, | and | to )?)+)`)
	sectionNumber = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)
	specHeading   = regexp.MustCompile(`(?m)^#+ ([0-9]+(?:\.[0-9]+)?)\.? `)
	keeps         = regexp.MustCompile(`(?i)\bkeeps ((?:S[0-9]+(?:, | and | to )?)+)`)
	invariant     = regexp.MustCompile(`S[0-9]+`)
	invariantRow  = regexp.MustCompile(`(?m)^\| (S[0-9]+) \|`)
)

// Code and pages name sections of spec/service-broker.md ("spec 6.10") and invariants of spec/reliability.md ("keeps S4").
func TestReferencesToTheSpecificationLeadSomewhere(t *testing.T) {
	t.Parallel()
	sections := submatches(specHeading, read(t, "spec/service-broker.md"))
	invariants := submatches(invariantRow, read(t, "spec/reliability.md"))
	references := 0
	for _, path := range paths(t, ".go", ".sql", ".md") {
		if strings.HasPrefix(path, "spec/") {
			continue
		}
		text := read(t, path)
		for _, found := range submatches(specReference, text) {
			for _, section := range sectionNumber.FindAllString(found, -1) {
				references++
				if !slices.Contains(sections, section) {
					t.Errorf("%s refers to spec %s, which spec/service-broker.md does not have", path, section)
				}
			}
		}
		for _, found := range submatches(keeps, text) {
			for _, name := range invariant.FindAllString(found, -1) {
				references++
				if !slices.Contains(invariants, name) {
					t.Errorf("%s keeps %s, which spec/reliability.md does not have", path, name)
				}
			}
		}
	}
	if references < 400 {
		t.Errorf("only %d references found: are they written otherwise now?", references)
	}
}

// submatches gives the first group of each match.
func submatches(pattern *regexp.Regexp, text string) []string {
	var all []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}
