package demo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/report"
)

// Outcome is the outcome of a demo, whichever it was. As JSON it is the object for programs.
type Outcome interface {
	// Verdict states in a sentence how the demo ended, Command the command line that plays it again.
	Verdict() string
	Command() string
	WritePage(out io.Writer) error
	WriteTable(out io.Writer) error

	// Ending gives where the demo ran, and how it ended.
	Ending() Ending
}

// Ending is where a demo ran, and how it ended.
type Ending struct {
	Passed    bool
	Examples  []string // of what was wrong
	Machine   machine.Machine
	Server    map[string]string // settings
	StartedAt time.Time
	Servers   string // where it finds its servers, and what it leaves there
}

// theirs is of demos that play on one server.
const theirs = "Without --dsn it starts a private PostgreSQL of its own. With --keep it leaves the database."

// Ending is how the run ended.
func (r Result) Ending() Ending {
	return Ending{r.Passed, r.Examples, r.Machine, r.Server, r.StartedAt, theirs}
}

// Ending is how the run ended.
func (r ServersResult) Ending() Ending {
	return Ending{r.Passed, r.Examples, r.Machine, r.Server, r.StartedAt, "It makes its servers, and removes them at the end."}
}

// Ending is how the run ended.
func (r *MailResult) Ending() Ending {
	return Ending{r.Passed, r.Examples, r.Machine, r.Server, r.StartedAt, theirs}
}

// Ending is how the run ended.
func (r *FlowResult) Ending() Ending {
	return Ending{r.Passed, r.Examples, r.Machine, r.Server, r.StartedAt, theirs}
}

// writePage writes a page with what those of all demos have.
func writePage(out io.Writer, o Outcome, page report.Page) error {
	ending := o.Ending()
	page.Verdict = report.Verdict{Good: ending.Passed, Text: o.Verdict(), Details: ending.Examples}
	page.Sections = append(page.Sections, machineSection(ending.Machine, ending.Server), report.Section{
		Title: "Run it again",
		Text:  []string{"In a clone of the repository, with Go and nothing else set up:"},
		Code:  o.Command(),
		After: []string{ending.Servers},
	})
	page.Foot = "Made by parley demo, " + ending.StartedAt.Format("2 January 2006 15:04:05 MST") +
		". This file holds everything it shows and asks nothing of any network."
	return page.Write(out)
}

func machineSection(m machine.Machine, server map[string]string) report.Section {
	memory := "unknown"
	if m.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.1f GiB", float64(m.MemoryBytes)/(1<<30))
	}
	rows := [][]string{
		{"CPU", fmt.Sprintf("%s, %s", m.CPU, counted(int64(m.Cores), "core", "cores"))},
		{"Memory", memory},
		{"System", m.OS},
		{"PostgreSQL", m.PostgresVersion},
	}
	for _, name := range slices.Sorted(maps.Keys(server)) {
		rows = append(rows, []string{name, server[name]})
	}
	return report.Section{Title: "Machine and settings", Table: &report.Table{Head: []string{"What", "Value"}, Rows: rows, Words: true}}
}
