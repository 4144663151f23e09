package verbs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/report"
)

// matrixSections draws the matrix as the paper does, for each version of the server: the rate over the threads, a line for each size, a
// picture for each number of initiators; and then what every 150th dialog brings.
func matrixSections(cells []bench.Cell) (sections []report.Section) {
	for _, version := range distinct(cells, func(c bench.Cell) string { return c.Version }) {
		of := slices.DeleteFunc(slices.Clone(cells), func(c bench.Cell) bool { return c.Version != version })
		for _, n := range distinct(of, func(c bench.Cell) int { return c.Initiators }) {
			if chart := matrixLines(of, n); chart != nil {
				chart.ID = chartID(chart.ID, version)
				sections = append(sections, report.Section{
					Title: fmt.Sprintf("%s and one target, PostgreSQL %s", initiators(n), version), Lines: chart,
				})
			}
		}
		sections = append(sections, trickSections(of, version)...)
	}
	return sections
}

func initiators(n int) string {
	if n == 1 {
		return "1 initiator"
	}
	return fmt.Sprintf("%d initiators", n)
}

// chartID distinguishes a chart from that of another version, whose dots may stand in no name.
func chartID(name, version string) string {
	id := []rune(name + "-" + version)
	for i, r := range id {
		if r == '.' {
			id[i] = '-'
		}
	}
	return string(id)
}

// distinct are the values of a property that cells have, in their order.
func distinct[T cmp.Ordered](cells []bench.Cell, of func(bench.Cell) T) (values []T) {
	for _, c := range cells {
		values = append(values, of(c))
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// matrixLines has a line for each size, of the most dialogs that were measured.
func matrixLines(cells []bench.Cell, n int) *report.LineChart {
	most := slices.Max(distinct(cells, func(c bench.Cell) int { return c.Dialogs }))
	chart := &report.LineChart{
		ID: fmt.Sprintf("matrix%d", n), Title: "Messages a second, " + initiators(n),
		Description: "The rate over the threads of each initiator, a line for each size of bodies.",
		Unit:        "messages/s", XUnit: "threads of each initiator",
	}
	for _, size := range distinct(cells, func(c bench.Cell) int { return c.Size }) {
		chart.Series = append(chart.Series, overThreads(cells, fmt.Sprintf("%d B", size), func(c bench.Cell) bool {
			return c.Initiators == n && c.Dialogs == most && c.Size == size
		})...)
	}
	if len(chart.Series) == 0 {
		return nil
	}
	return chart
}

// overThreads is a line through some cells; one point makes none.
func overThreads(cells []bench.Cell, name string, isOn func(bench.Cell) bool) []report.Series {
	line := report.Series{Name: name}
	for _, c := range cells {
		if isOn(c) {
			line.Points = append(line.Points, report.Point{X: float64(c.Threads), Y: c.Rate})
		}
	}
	slices.SortFunc(line.Points, func(a, b report.Point) int { return cmp.Compare(a.X, b.X) })
	if len(line.Points) < 2 {
		return nil
	}
	return []report.Series{line}
}

// trick compares two cells that differ in their dialogs only.
type trick struct {
	bench.Cell

	percent float64 // the rate with it in percent of the rate without
}

func tricks(cells []bench.Cell) (all []trick) {
	for _, with := range cells {
		for _, without := range cells {
			if with.Dialogs > 1 && without.Dialogs == 1 && with.Initiators == without.Initiators && with.Threads == without.Threads &&
				with.Size == without.Size && without.Rate > 0 {
				all = append(all, trick{with, 100 * with.Rate / without.Rate})
			}
		}
	}
	return all
}

// mostTricks are those that a chart has room for.
const mostTricks = 40

// trickSections compares one dialog a thread with every 150th, as the paper's figure 5: over the threads, and in percent.
func trickSections(cells []bench.Cell, version string) (sections []report.Section) {
	all := tricks(cells)
	if len(all) == 0 {
		return nil
	}
	n := slices.Max(distinct(cells, func(c bench.Cell) int { return c.Initiators }))
	size := slices.Min(distinct(cells, func(c bench.Cell) int { return c.Size }))
	lines := &report.LineChart{
		ID: chartID("dialogs", version), Title: "One dialog a thread, and every 150th",
		Description: "The rate over the threads of each initiator, with one dialog a thread and with every 150th of many.",
		Unit:        "messages/s", XUnit: "threads of each initiator",
	}
	for _, dialogs := range distinct(cells, func(c bench.Cell) int { return c.Dialogs }) {
		name := "one dialog a thread"
		if dialogs > 1 {
			name = fmt.Sprintf("one used of %d", dialogs)
		}
		lines.Series = append(lines.Series, overThreads(cells, name, func(c bench.Cell) bool {
			return c.Initiators == n && c.Size == size && c.Dialogs == dialogs
		})...)
	}
	if len(lines.Series) > 1 {
		sections = append(sections, report.Section{
			Title: fmt.Sprintf("1 dialog and 150 dialogs, %s, %d B, PostgreSQL %s", initiators(n), size, version), Lines: lines,
		})
	}
	bars := &report.BarChart{
		ID: chartID("trick", version), Title: "What every 150th dialog brings",
		Description: "The rate with it in percent of the rate without.", Unit: "percent of the rate with one dialog a thread",
	}
	for _, t := range all[:min(mostTricks, len(all))] {
		bars.Bars = append(bars.Bars, report.Bar{
			Label: fmt.Sprintf("%dx%d, %d B", t.Initiators, t.Threads, t.Size), Value: t.percent, Text: fmt.Sprintf("%.0f", t.percent),
		})
	}
	return append(sections, report.Section{Title: "Every 150th dialog, PostgreSQL " + version, Text: []string{trickText(all)}, Bars: bars})
}

// trickText says what the trick brings here, beside what it brings in the paper.
func trickText(all []trick) string {
	byPercent := func(a, b trick) int { return cmp.Compare(a.percent, b.percent) }
	most, least := slices.MaxFunc(all, byPercent), slices.MinFunc(all, byPercent)
	return fmt.Sprintf("The paper advises to use every 150th dialog only: the rows of senders then lie on pages of their own, which "+
		"brings up to +315%% there, and nothing at 15 threads or fewer. A send of Parley changes no row of its conversation. Here it brings "+
		"%+.0f%% at most (%dx%d, %d B) and %+.0f%% at least (%dx%d, %d B).",
		most.percent-100, most.Initiators, most.Threads, most.Size, least.percent-100, least.Initiators, least.Threads, least.Size)
}
