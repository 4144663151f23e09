package verbs

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/report"
)

// addMatrixFlags adds what only the paper's matrix takes.
func addMatrixFlags(cmd *cobra.Command, config *bench.Config) {
	cmd.Long += `

Without a DSN it makes a private PostgreSQL server of its own, as the scenario dialog does. There are 264 cells for a version of the
server; the paper has 528, for two versions. Each cell that is done has a line in the state, and is not measured again.`
	flags, options := cmd.Flags(), &config.Matrix
	flags.IntSliceVar(&options.Initiators, "initiators", nil, "initiator databases (of 1 to 3)")
	flags.IntSliceVar(&options.Threads, "threads", nil, "sessions of each initiator (of 1 to 50)")
	flags.IntSliceVar(&options.Sizes, "sizes", nil, "bytes of a body (of 100, 1024, 4096, 8192)")
	flags.IntSliceVar(&options.Dialogs, "dialogs", nil, "dialogs that are begun for each that is used (1 or 150)")
	flags.BoolVar(&options.All, "all", false, "all 264 cells")
	state := ""
	if history := defaultHistory(); history != "" {
		state = filepath.Join(filepath.Dir(history), "matrix.jsonl")
	}
	flags.StringVar(&options.State, "state", state, "file with a line for each cell that is done; empty for none")
	flag := flags.Lookup("repeat")
	flag.DefValue = "1"
	config.Repeat = 1
}

// matrixSections draws the matrix as the paper does: the rate over the threads, a line for each size, a picture for each number of
// initiators; and then what every 150th dialog brings.
func matrixSections(cells []bench.Cell) (sections []report.Section) {
	var initiators []int
	for _, c := range cells {
		if !slices.Contains(initiators, c.Initiators) {
			initiators = append(initiators, c.Initiators)
		}
	}
	slices.Sort(initiators)
	for _, n := range initiators {
		if chart := matrixLines(cells, n); chart != nil {
			sections = append(sections, report.Section{Title: fmt.Sprintf("%d initiators and one target", n), Lines: chart})
		}
	}
	if chart := trickBars(cells); chart != nil {
		sections = append(sections, report.Section{
			Title: "Every 150th dialog", Bars: chart,
			Text: []string{"How much more goes through when only every 150th dialog is used, as the paper advises for SQL Server: up to " +
				"315% there, nothing " +
				"at 15 threads or fewer. A send of Parley changes no row of its conversation, so there is nothing to gain here."},
		})
	}
	return sections
}

// matrixLines has a line for each size, of the most dialogs that were measured.
func matrixLines(cells []bench.Cell, initiators int) *report.LineChart {
	most := 0
	for _, c := range cells {
		most = max(most, c.Dialogs)
	}
	series := map[int]*report.Series{}
	var sizes []int
	for _, c := range cells {
		if c.Initiators != initiators || c.Dialogs != most {
			continue
		}
		if series[c.Size] == nil {
			series[c.Size] = &report.Series{Name: fmt.Sprintf("%d B", c.Size)}
			sizes = append(sizes, c.Size)
		}
		series[c.Size].Points = append(series[c.Size].Points, report.Point{X: float64(c.Threads), Y: c.Rate})
	}
	chart := &report.LineChart{
		ID: fmt.Sprintf("matrix%d", initiators), Title: fmt.Sprintf("Messages a second, %d initiators", initiators),
		Description: "The rate over the threads of each initiator, a line for each size of " +
			"bodies.", Unit: "messages/s", XUnit: "threads of each initiator",
	}
	slices.Sort(sizes)
	for _, size := range sizes {
		if len(series[size].Points) > 1 {
			chart.Series = append(chart.Series, *series[size])
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	return chart
}

// trickBars compares cells that differ in their dialogs only.
func trickBars(cells []bench.Cell) *report.BarChart {
	chart := &report.BarChart{
		ID: "trick", Title: "What every 150th dialog brings", Description: "The rate with it in percent of the rate without.",
		Unit: "percent of the rate with one dialog a thread",
	}
	for _, with := range cells {
		for _, without := range cells {
			if with.Dialogs > 1 && without.Dialogs == 1 && with.Initiators == without.Initiators && with.Threads == without.Threads &&
				with.Size == without.Size && without.Rate > 0 && len(chart.Bars) < mostTricks {
				percent := 100 * with.Rate / without.Rate
				chart.Bars = append(chart.Bars, report.Bar{
					Label: fmt.Sprintf("%dx%d, %d B", with.Initiators, with.Threads, with.Size), Value: percent, Text: fmt.Sprintf("%.0f", percent),
				})
			}
		}
	}
	if len(chart.Bars) == 0 {
		return nil
	}
	return chart
}

const mostTricks = 40
