package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/measure/record"
)

// JoinVersions puts reports of the matrix together that are of one version of the server each. The names of results and figures then carry
// the version. Machine, settings and analysis are those of the first.
func JoinVersions(all []Report) Report {
	if len(all) == 1 {
		return all[0]
	}
	joined := Report{Head: all[0].Head, Paper: all[0].Paper, Ratios: map[string]float64{}}
	joined.Verdict = &record.Verdict{Grade: record.Pass}
	joined.Figures, joined.Seconds = nil, 0
	var versions []string
	for i, r := range all {
		version := r.Machine.PostgresVersion
		versions = append(versions, version)
		named := func(name string) string { return fmt.Sprintf("%s, PostgreSQL %s", name, major(version)) }
		for _, result := range r.Results {
			result.Variant = named(result.Variant)
			joined.Results = append(joined.Results, result)
		}
		for _, f := range r.Figures {
			f.Name = named(f.Name)
			joined.Figures = append(joined.Figures, f)
		}
		for _, c := range r.Cells {
			if !slices.ContainsFunc(joined.Cells, func(has Cell) bool { return sameTest(has, c) }) {
				joined.Cells = append(joined.Cells, c)
			}
		}
		for _, check := range r.Setup {
			if i > 0 && check.State == record.Warning {
				joined.Setup = append(joined.Setup, check)
			}
		}
		for _, reason := range r.Verdict.Reasons {
			joined.Verdict.Lower(r.Verdict.Grade, "PostgreSQL %s: %s", major(version), reason)
		}
		joined.Seconds += r.Seconds
	}
	joined.Machine.PostgresVersion = strings.Join(versions, ", ")
	return joined
}

// major is the major version in the text of a version.
func major(version string) string {
	return strings.FieldsFunc(version+" ", func(r rune) bool { return r == '.' || r == ' ' })[0]
}
