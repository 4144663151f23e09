// Package record is what every run of the benchmark leaves: where it ran, its verdict, its figures, what limited it. Runs are kept in a
// history and compared with one another.
package record

import (
	"time"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/observe"
)

// Head begins the report of every scenario. As JSON it is a stable format, described in docs/reference/json.md.
type Head struct {
	Scenario string          `json:"scenario"`
	Machine  machine.Machine `json:"machine"`
	Settings map[string]any  `json:"settings"`

	Parley    string    `json:"parley,omitempty"` // the version of this program
	StartedAt time.Time `json:"started_at,omitzero"`
	Seconds   float64   `json:"seconds,omitempty"` // the whole run, with what was prepared
	Setup     []Check   `json:"setup,omitempty"`
	Verdict   *Verdict  `json:"verdict,omitempty"`
	// Figures are the numbers by which two runs are compared.
	Figures  []Figure             `json:"figures,omitempty"`
	Analysis *bottleneck.Analysis `json:"analysis,omitempty"`
	Samples  []observe.Sample     `json:"samples,omitempty"`
	Tried    *Trial               `json:"tried,omitempty"`
	Compared *Comparison          `json:"compared,omitempty"`
}

// Lead gives the head of a report.
func (h *Head) Lead() *Head { return h }

// Check is one thing that was checked before anything was measured.
type Check struct {
	Name  string  `json:"name"`
	State State   `json:"state"`
	Text  string  `json:"text"`
	Hint  string  `json:"hint,omitempty"` // what to do about it
	Value float64 `json:"value,omitempty"`
	Unit  string  `json:"unit,omitempty"`
}

// State is how a check went.
type State string

// The states of a check.
const (
	OK      State = "ok"
	Warning State = "warning"
	Unknown State = "unknown"
)

// Figure is one number of a run that another run has, too.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Value  float64   `json:"value"`          // the median of Runs
	Runs   []float64 `json:"runs,omitempty"` // in the order they were measured
	Spread float64   `json:"spread"`         // (max - min) / median
	// IsCost reports that less is better.
	IsCost bool `json:"is_cost,omitempty"`
	// Published is the seed's figure of the kind, 0 where it has none.
	Published float64 `json:"published,omitempty"`
	Limit
}

// Limit bounds a figure: it has to be above AtLeast and below AtMost, where they are not 0.
type Limit struct {
	AtLeast float64 `json:"at_least,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"`
}

// Keeps reports whether the figure keeps its limits.
func (f Figure) Keeps() bool {
	return (f.AtLeast == 0 || f.Value > f.AtLeast) && (f.AtMost == 0 || f.Value < f.AtMost)
}

// Trial records the effect of a change of one setting.
type Trial struct {
	Change  bottleneck.Change `json:"change"`
	Made    string            `json:"made,omitempty"` // the setting, from what to what; missing where it is for the user to make
	Before  []Figure          `json:"before"`
	After   []Figure          `json:"after"`
	Text    string            `json:"text"`
	Limited string            `json:"limited_by"` // the sentence of the second run
}
