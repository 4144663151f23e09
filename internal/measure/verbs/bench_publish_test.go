package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/publish"
	"github.com/parley-broker/parley/internal/verb"
)

// One command measures each scenario that the page has a table of, once, with flags that the scenario has, into the folder that was given. A
// run that missed its limits does not end it; another error does.
func TestPublishMeasuresAllThatThePageShows(t *testing.T) {
	t.Parallel()
	fails := map[string]error{"life": errFailed}
	publishAll := func(only ...string) (done []string, err error) {
		var out bytes.Buffer
		m := &measuring{App: &verb.App{Stdout: &out, Stderr: &out}, flags: &frame{}}
		for _, s := range bench.Scenarios() {
			cmd := newScenarioCommand(m, s)
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				if m.publish != "a folder" || len(flagsGiven(cmd)) == 0 {
					t.Errorf("%s goes into %q with %v", cmd.Name(), m.publish, flagsGiven(cmd))
				}
				done = append(done, cmd.Name())
				return fails[cmd.Name()]
			}
			m.scenarios = append(m.scenarios, cmd)
		}
		steps, err := plan()
		if err != nil {
			t.Fatal(err)
		}
		err = m.publishAll(newPublishCommand(m), "a folder", steps, only)
		return done, err
	}
	if done, err := publishAll(); err != nil || !slices.Equal(done, publish.Scenarios) {
		t.Errorf("it measured %v, with %v", done, err)
	}
	if done, err := publishAll("queues", "send"); err != nil || fmt.Sprint(done) != "[send queues]" {
		t.Errorf("of two it measured %v, with %v", done, err)
	}
	if _, err := publishAll("chaos"); err == nil {
		t.Error("a scenario without a table is taken")
	}
	fails["receive"] = errors.New("no connection")
	if done, err := publishAll(); err == nil || fmt.Sprint(done) != "[send receive]" {
		t.Errorf("after an error it measured %v, with %v", done, err)
	}
}
