package verbs

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

// model is a scenario whose rate follows from a setting: it grows with its rows up to a knee, and a lock is what limits below it.
type model struct {
	config bench.Config
	knee   int
	runs   []int // the rows of each run
	isCost bool
	limit  string // the event that sessions wait for
}

func (s *model) measurement(changes ...string) measurement {
	return measurement{
		frame: &s.config.Frame, changes: changes, change: changeOf(&s.config),
		measure: func(context.Context) (outcome, error) {
			s.runs = append(s.runs, s.config.Rows)
			rate := float64(min(s.config.Rows, s.knee))
			head := &record.Head{Scenario: "model", Figures: []record.Figure{
				{Name: "rate", Unit: "messages/s", Value: rate, IsCost: s.isCost}, {Name: "side", Unit: "ms", Value: 4},
			}}
			event := s.limit
			if s.config.Rows >= s.knee {
				event = "LWLock:WALWrite"
			}
			head.Analysis = &bottleneck.Analysis{Waits: []bottleneck.Wait{{Event: event, Share: 0.8}}}
			head.Analysis.Conclude()
			return head, nil
		},
	}
}

func tried(t *testing.T, s *model, changes ...string) *record.Trial {
	t.Helper()
	a := &measuring{App: &verb.App{Stderr: new(bytes.Buffer)}, flags: &frame{}}
	m := s.measurement(changes...)
	found, err := a.once(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.try(t.Context(), m, found.Lead()); err != nil {
		t.Fatal(err)
	}
	return found.Lead().Tried
}

func TestTryMakesTheChangeMeasuresAgainAndSaysWhatItGained(t *testing.T) {
	t.Parallel()
	s := &model{config: bench.Config{Rows: 10}, knee: 1000, limit: "Lock:tuple"}
	trial := tried(t, s, bottleneck.SettingRows)
	if fmt.Sprint(s.runs) != "[10 1000]" || trial.Made != "rows 1000 in place of 10" || trial.Change.Setting != bottleneck.SettingRows {
		t.Errorf("the runs had %v rows, and it made %q of %+v", s.runs, trial.Made, trial.Change)
	}
	for _, part := range []string{
		"rows 1000 in place of 10: it gained 9900%. rate went from 10.0/s to 1,000/s (+9900%); side went from 4.00 ms to 4.00 ms (+0%).",
		"Then: WAL flush: 80%",
	} {
		if !strings.Contains(trial.Text, part) {
			t.Errorf("it says %q, without %q", trial.Text, part)
		}
	}
	if trial.Before[0].Value != 10 || trial.After[0].Value != 1000 || !strings.HasPrefix(trial.Limited, "WAL flush") {
		t.Errorf("the trial is %+v", trial)
	}
}

func TestTrySaysThatAChangeGainedNothingOrCostSomething(t *testing.T) {
	t.Parallel()
	s := &model{config: bench.Config{Rows: 100}, knee: 109, limit: "Lock:tuple"}
	if trial := tried(t, s, bottleneck.SettingRows); !strings.Contains(trial.Text, "it changed nothing beyond the noise of 10%") {
		t.Errorf("a gain of less than a tenth is %q", trial.Text)
	}
	s = &model{config: bench.Config{Rows: 10}, knee: 1000, limit: "Lock:tuple", isCost: true}
	if trial := tried(t, s, bottleneck.SettingRows); !strings.Contains(trial.Text, "it cost 9900%") {
		t.Errorf("a cost that grew is %q", trial.Text)
	}
}

// A change that is no setting of the scenario, as one of the server, is for the user to make: it is named, and nothing runs again.
func TestTryOnlyNamesAChangeThatIsNoSettingOfTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit   string
		changes []string
		says    string
	}{
		"of the server":           {"IO:DataFileRead", []string{bottleneck.SettingRows}, "a larger shared_buffers (a setting of the server)"},
		"of another scenario":     {"Lock:tuple", []string{bottleneck.SettingBatch}, "work spread over more rows"},
		"that it does not make":   {"Lock:tuple", []string{bottleneck.SettingRows}, "work spread over more rows"},
		"of a scenario with none": {"Lock:tuple", nil, "work spread over more rows"},
	} {
		s := &model{config: bench.Config{Rows: 10}, knee: 1000, limit: c.limit}
		a := &measuring{App: &verb.App{Stderr: new(bytes.Buffer)}, flags: &frame{}}
		m := s.measurement(c.changes...)
		if name == "that it does not make" {
			m.change = func(string) string { return "" }
		}
		found, err := a.once(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.try(t.Context(), m, found.Lead()); err != nil {
			t.Fatal(err)
		}
		trial := found.Lead().Tried
		if len(s.runs) != 1 || trial.Made != "" || trial.After != nil || trial.Text != "nothing, as "+c.says+
			" is no setting of this run that it could change." {
			t.Errorf("%s: after %d runs it says %+v", name, len(s.runs), trial)
		}
	}
}
