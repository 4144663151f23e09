package verbs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/present"
)

func newBBWRatioCommand(a *measuring) *cobra.Command {
	var config bench.BBWRatioConfig
	var environments string
	cmd := &cobra.Command{
		Use:   "bbw-ratio",
		Short: "Compare the two scenarios of BizTalk's Benchmark Wizard: orchestrations as a part of messaging",
		Long: fmt.Sprintf(`Compare the two scenarios of BizTalk's Benchmark Wizard, in turns: the rate of orchestrations as a part of
that of messaging. It does not depend on the hardware: %.2f to %.2f in the wizard's own presets, %.2f in its vendor's study.`,
			bench.RatioPresetsLeast, bench.RatioPresetsMost, bench.RatioStudy),
		Example: `  parley bench bbw-ratio
  parley bench bbw-ratio --size 188 --duration 5s --repeat 1 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config.Further, err = readEnvironments(environments); err != nil {
				return err
			}
			return a.runBBWRatio(cmd, &config)
		},
	}
	addBBWFlags(cmd, &config.BBWConfig, &environments)
	flags := cmd.Flags()
	flags.IntSliceVar(&config.Sizes, "size", []int{188, 2048}, "bytes of a body; several are measured in turns")
	flags.IntVar(&config.Repeat, "repeat", 3, "plays of each scenario and size, of which the median counts")
	flags.DurationVar(&config.Duration, "duration", 20*time.Second, "time of a play that counts")
	flags.DurationVar(&config.WarmUp, "warm-up", 5*time.Second, "time before it that does not count")
	flags.DurationVar(&config.Every, "sample", time.Second, "time of a sample")
	return cmd
}

func (a *measuring) runBBWRatio(cmd *cobra.Command, config *bench.BBWRatioConfig) error {
	return a.run(cmd, measurement{
		frame: &config.Frame,
		check: config.Check,
		measure: func(ctx context.Context) (outcome, error) {
			found, err := bench.MeasureBBWRatio(ctx, *config)
			return &found, err
		},
		numbers: func(out io.Writer, o outcome) error {
			return writeBBWRatio(out, *o.(*bench.BBWRatioReport)) //nolint:forcetypeassert // as measured
		},
		changes: []string{bottleneck.SettingWorkers, bottleneck.SettingSessions},
		change:  changeOfBBW(&config.BBWConfig),
	})
}

func writeBBWRatio(out io.Writer, r bench.BBWRatioReport) error {
	writeMachine(out, r.Machine, r.Settings)
	table := present.Numbers("scenario", "size", "processed/s", "spread", "lost", "doubled")
	for _, result := range r.Results {
		var lost, doubled int64
		for _, play := range result.Plays {
			lost, doubled = lost+play.Accounts.Lost, doubled+play.Accounts.Doubled
		}
		table.Row(result.Scenario, result.Size, fmt.Sprintf("%.0f", result.Rate), fmt.Sprintf("%.0f%%", 100*result.Spread), lost, doubled)
	}
	table.Write(out)
	for _, ratio := range r.Ratios {
		fmt.Fprintln(out)
		present.Prose(out, "", fmt.Sprintf("Orchestration to messaging, %d bytes: %.2f; the original's presets have %.2f to %.2f, its "+
			"vendor's study %.2f", ratio.Size, ratio.Ratio, bench.RatioPresetsLeast, bench.RatioPresetsMost, bench.RatioStudy))
	}
	return nil
}
