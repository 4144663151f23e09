package verbs

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/publish"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

//go:embed publish.json
var ownPlan []byte

// plan gives the scenarios that the documentation shows, with the settings of their runs.
func plan() (steps []preset, err error) {
	if err := json.Unmarshal(ownPlan, &steps); err != nil {
		return nil, fmt.Errorf("read the plan of what is published: %w", err)
	}
	return steps, nil
}

func newPublishCommand(a *measuring) *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:   "publish FOLDER",
		Short: "Measure all that the documentation shows, and write its tables and pictures",
		Long: `Measure all that the documentation shows, one scenario after another, and write the runs, the tables of README and of
docs/reference/performance.md, and the picture into the clone of the repository in a folder. It takes most of an hour. A run
that is Invalid is not written. In the clone, for the peers too: go -C bench/peers run . bench publish ../..

Scenarios: ` + strings.Join(publish.Scenarios, ", "),
		Example: "  go -C bench/peers run . bench publish ../..\n  parley bench publish . --only send,receive",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := plan()
			if err != nil {
				return err
			}
			return a.publishAll(cmd, args[0], steps, only)
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "scenarios to measure, separated by commas (default all)")
	return cmd
}

// publishAll measures one step after another. A run that did not keep its limits is shown as it is, and the next one begins.
func (a *measuring) publishAll(cmd *cobra.Command, folder string, steps []preset, only []string) error {
	wanted := map[string]bool{}
	for _, name := range only {
		wanted[name] = true
	}
	measured := 0
	for _, step := range steps {
		if len(only) > 0 && !wanted[step.Scenario] {
			continue
		}
		delete(wanted, step.Scenario)
		chosen := a.command(step.Scenario)
		if chosen == nil {
			return fmt.Errorf("the plan has scenario %q, which is unknown", step.Scenario)
		}
		for name, value := range step.Flags {
			if err := chosen.Flags().Set(name, value); err != nil {
				return fmt.Errorf("the plan of %s: --%s: %w", step.Scenario, name, err)
			}
		}
		a.publish = folder
		chosen.SetContext(cmd.Context())
		chosen.SetOut(cmd.OutOrStdout())
		fmt.Fprintf(a.Stderr, "Publishing %s\n", step.Scenario)
		if err := chosen.RunE(chosen, nil); err != nil && !errors.Is(err, errFailed) {
			return fmt.Errorf("publish %s: %w", step.Scenario, err)
		}
		measured++
	}
	if len(wanted) > 0 || measured == 0 {
		return verb.Usagef("--only takes %s", strings.Join(publish.Scenarios, ", "))
	}
	return nil
}

// publishRun writes a run into the documentation, unless it says nothing of the broker.
func (a *measuring) publishRun(cmd *cobra.Command, scenario bench.Scenario, report bench.Report) error {
	if report.Verdict.Grade == record.Invalid {
		fmt.Fprintf(a.Stderr, "The run of %s is invalid, and is not published: %s\n", scenario.Name, strings.Join(report.Verdict.Reasons, "; "))
		return nil
	}
	command := "parley bench "
	if scenario.HasPeers {
		command = "go -C bench/peers run . bench "
	}
	return publish.Write(a.publish, publish.Run{
		Report: report, Command: command + strings.Join(append([]string{scenario.Name}, flagsGiven(cmd)...), " "),
	})
}
