package record

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Comparison is a run beside an earlier one of the same scenario.
type Comparison struct {
	With        string       `json:"with"` // the file of the earlier run
	Differences []Difference `json:"differences"`
	// Changed are settings that differ between the runs: their names with both values.
	Changed []string `json:"changed,omitempty"`
}

// Difference is how far a figure is from what it was.
type Difference struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Change float64 `json:"change"` // part of before; a loss is below 0, also of costs
	Noise  float64 `json:"noise"`  // how far apart the runs of both lie, half of it to each side
	Worse  bool    `json:"is_regression"`
}

// LeastNoise is the difference that two runs may have though nothing has changed; a single run says nothing of its noise.
const LeastNoise = 0.10

// Read reads a report that the benchmark wrote with --json.
func Read(path string) (*Head, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the run to compare with: %w", err)
	}
	var head Head
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%s is not what parley bench --json prints: %w", path, err)
	}
	if len(head.Figures) == 0 {
		return nil, fmt.Errorf("%s has no figures: give the output of parley bench SCENARIO --json", path)
	}
	return &head, nil
}

// Compare sets a run beside an earlier one. A figure is a regression where it lost more than the noise that was measured.
func Compare(before, after *Head, file string) (*Comparison, error) {
	if before.Scenario != after.Scenario {
		return nil, fmt.Errorf("%s is a run of %s, this one is of %s", file, before.Scenario, after.Scenario)
	}
	c := &Comparison{With: file, Differences: []Difference{}}
	for _, was := range before.Figures {
		i := slices.IndexFunc(after.Figures, func(f Figure) bool { return f.Name == was.Name && f.Unit == was.Unit })
		if i < 0 || was.Value <= 0 {
			continue
		}
		is := after.Figures[i]
		d := Difference{Name: was.Name, Before: was.Value, After: is.Value, Change: is.Value/was.Value - 1}
		if was.IsCost {
			d.Change = -d.Change
		}
		d.Noise = NoiseOf(was, is)
		d.Worse = d.Change < -d.Noise
		c.Differences = append(c.Differences, d)
	}
	if len(c.Differences) == 0 {
		return nil, fmt.Errorf("%s has none of the figures of this run", file)
	}
	for name, was := range before.Settings {
		if is, there := after.Settings[name]; there && shown(is) != shown(was) {
			c.Changed = append(c.Changed, fmt.Sprintf("%s: %s, now %s", name, shown(was), shown(is)))
		}
	}
	slices.Sort(c.Changed)
	return c, nil
}

// NoiseOf is the part by which a figure may differ between two runs though nothing has changed.
func NoiseOf(was, is Figure) float64 { return math.Max(LeastNoise, (was.Spread+is.Spread)/2) }

// shown writes the value of a setting as JSON has it, where every number is one kind of number.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	var number float64
	if json.Unmarshal(text, &number) == nil {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return strings.Trim(string(text), `"`)
}

// Regressions are the figures that got worse beyond the noise.
func (c *Comparison) Regressions() (worse []Difference) {
	for _, d := range c.Differences {
		if d.Worse {
			worse = append(worse, d)
		}
	}
	return worse
}
