package verbs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
)

// keepChanges leaves a change to the user that is no setting of the scenario.
func keepChanges(a *bottleneck.Analysis, settings []string) {
	if a == nil {
		return
	}
	changes := []*bottleneck.Change{&a.Limit.Change}
	for i := range a.Others {
		changes = append(changes, &a.Others[i].Change)
	}
	for _, change := range changes {
		if !slices.Contains(settings, change.Setting) {
			change.Setting = ""
		}
	}
}

// try makes the change that the analysis suggests, measures again, and says what it did and gained. A change that is no setting of the run
// is named, and nothing is measured.
func (a *measuring) try(ctx context.Context, m measurement, head *record.Head) error {
	change := head.Analysis.Limit.Change
	tried := &record.Trial{Change: change, Before: head.Figures}
	head.Tried = tried
	made := ""
	if change.Setting != "" {
		made = m.change(change.Setting)
	}
	if made == "" {
		tried.Text = "nothing, as " + change.Text + " is no setting of this run that it could change."
		return nil
	}
	fmt.Fprintf(a.Stderr, "Trying %s\n", made)
	a.flags.checks = head.Setup
	found, err := a.once(ctx, m)
	if err != nil {
		return fmt.Errorf("measure again with %s: %w", made, err)
	}
	again := found.Lead()
	tried.Made, tried.After = made, again.Figures
	tried.Text = made + ": " + effect(head.Figures, again.Figures)
	if again.Analysis != nil {
		tried.Limited = again.Analysis.Limit.Sentence
		tried.Text += " Then: " + tried.Limited
	}
	return nil
}

// mostEffects are how many figures are told apart.
const mostEffects = 3

// effect says what a change gained, by the first figure that both runs have, and what became of the first few.
func effect(before, after []record.Figure) string {
	gained := ""
	var effects []string
	for _, was := range before {
		i := slices.IndexFunc(after, func(f record.Figure) bool { return f.Name == was.Name && f.Unit == was.Unit })
		if i < 0 || was.Value <= 0 || len(effects) == mostEffects {
			continue
		}
		is := after[i]
		change := is.Value/was.Value - 1
		effects = append(effects, fmt.Sprintf("%s went from %s to %s (%+.0f%%)", was.Name, record.Text(was.Value, was.Unit),
			record.Text(is.Value, was.Unit), 100*change))
		if gained == "" {
			gained = gain(was, is, change)
		}
	}
	if len(effects) == 0 {
		return "the runs have no figure in common."
	}
	return gained + ". " + strings.Join(effects, "; ") + "."
}

// gain says whether a change is more than the noise that was measured, and to which side.
func gain(was, is record.Figure, change float64) string {
	if was.IsCost {
		change = -change
	}
	switch noise := record.NoiseOf(was, is); {
	case change > noise:
		return fmt.Sprintf("it gained %.0f%%", 100*change)
	case change < -noise:
		return fmt.Sprintf("it cost %.0f%%", 100*math.Abs(change))
	default:
		return fmt.Sprintf("it changed nothing beyond the noise of %.0f%%", 100*noise)
	}
}

// changeNumber multiplies a number of a scenario's settings, and says from what to what.
func changeNumber(name string, value *int, usual, factor int) string {
	was := *value
	if was == 0 {
		was = usual
	}
	*value = was * factor
	return fmt.Sprintf("%s %d in place of %d", name, *value, was)
}

// changeOf makes changes of the common configuration.
func changeOf(config *bench.Config) func(setting string) string {
	return func(setting string) string {
		switch setting {
		case bottleneck.SettingBatch:
			return changeNumber("batch", &config.Batch, 1, 10)
		case bottleneck.SettingSessions:
			return changeNumber("sessions", &config.Sessions, 16, 2)
		case bottleneck.SettingRows:
			return changeNumber("rows", &config.Rows, bench.DefaultRows, 100)
		}
		return ""
	}
}
