package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// The original's own ratios of its two scenarios, which do not depend on the hardware: of its presets, and of its vendor's study.
const (
	RatioPresetsLeast = 0.35
	RatioPresetsMost  = 0.70
	RatioStudy        = 0.54
)

// BBWRatioConfig says how the two scenarios of BizTalk's wizard are compared.
type BBWRatioConfig struct {
	// BBWConfig holds what both have in common; its Scenario, Size and Sustain do not count.
	BBWConfig

	// Sizes are the sizes of bodies, in bytes.
	Sizes []int
	// Repeat is how often each scenario is played with each size, in turns.
	Repeat int
}

// BBWRatioReport is the result of MeasureBBWRatio. As JSON it is a stable format, described in docs/reference/json.md.
type BBWRatioReport struct {
	record.Head

	Results []BBWRatioResult `json:"results"`
	Ratios  []BBWRatio       `json:"ratios"`
}

// BBWRatioResult has the plays of one scenario with bodies of one size.
type BBWRatioResult struct {
	Scenario BBWScenario `json:"scenario"`
	Size     int         `json:"size"`
	Rate     float64     `json:"processed_per_second"` // the median of the plays
	Spread   float64     `json:"spread"`
	Plays    []BBWPlay   `json:"plays"`
}

// BBWRatio is the rate of orchestrations as a part of that of messaging, for bodies of one size.
type BBWRatio struct {
	Size  int       `json:"size"`
	Ratio float64   `json:"ratio"` // the median of Runs
	Runs  []float64 `json:"runs"`  // of the two plays beside each other
}

// Check reports what is wrong with a configuration, before there is a DSN.
func (c BBWRatioConfig) Check() error {
	if len(c.Sizes) == 0 || c.Repeat < 1 {
		return errors.New("repeat must be at least 1, and there must be a size")
	}
	for _, size := range c.Sizes {
		common := c.BBWConfig
		common.Scenario, common.Size = BBWMessaging, size
		if err := common.Check(); err != nil {
			return err
		}
	}
	return nil
}

// MeasureBBWRatio plays both scenarios of BizTalk's wizard in turns, and compares what was processed.
func MeasureBBWRatio(ctx context.Context, config BBWRatioConfig) (report BBWRatioReport, err error) {
	if err := config.Check(); err != nil {
		return BBWRatioReport{}, err
	}
	for _, size := range config.Sizes {
		for _, scenario := range []BBWScenario{BBWMessaging, BBWOrchestration} {
			report.Results = append(report.Results, BBWRatioResult{Scenario: scenario, Size: size})
		}
	}
	asked := config.asked()
	asked["sizes"], asked["repeat"] = config.Sizes, config.Repeat
	delete(asked, "size")
	expected := config.Duration * 2
	report.Head, err = config.onServer(ctx, "bbw-ratio", asked, expected, func(ctx context.Context, c *cluster, head *record.Head) error {
		title := func(r BBWRatioResult) string { return fmt.Sprintf("%s, %d bytes", r.Scenario, r.Size) }
		err := inTurns(ctx, &config.Frame, report.Results, config.Repeat, title, func(i int, r BBWRatioResult) error {
			one := config.BBWConfig
			one.Scenario, one.Size = r.Scenario, r.Size
			play, err := newBBW(one, c).once(ctx)
			report.Results[i].Plays = append(report.Results[i].Plays, play)
			return err
		})
		if err != nil {
			return err
		}
		report.conclude(config, head)
		return nil
	})
	return report, err
}

// conclude takes the medians, and judges each play by the conditions of ours.
func (r *BBWRatioReport) conclude(config BBWRatioConfig, head *record.Head) {
	lost := 0.0
	for i := range r.Results {
		result := &r.Results[i]
		var rates []float64
		for _, play := range result.Plays {
			rates = append(rates, play.Rate)
			lost += float64(play.Accounts.Lost)
			play.judgeAccounts(head.Verdict)
		}
		result.Rate, result.Spread = statistics.Median(rates), statistics.Spread(rates)
		head.Figures = append(head.Figures, record.Figure{
			Name: fmt.Sprintf("%s, %d bytes", result.Scenario, result.Size), Unit: "messages/s", Value: result.Rate, Runs: rates,
			Spread: result.Spread,
		})
	}
	for pair := range slices.Chunk(r.Results, 2) {
		ratio := BBWRatio{Size: pair[0].Size}
		for i, play := range pair[1].Plays {
			ratio.Runs = append(ratio.Runs, play.Rate/max(pair[0].Plays[i].Rate, 1e-3))
		}
		ratio.Ratio = statistics.Median(ratio.Runs)
		r.Ratios = append(r.Ratios, ratio)
		head.Figures = append(head.Figures, record.Figure{
			Name: fmt.Sprintf("orchestration/messaging, %d bytes", ratio.Size), Value: ratio.Ratio, Runs: ratio.Runs,
			Spread: statistics.Spread(ratio.Runs), Published: RatioStudy, Limit: record.Limit{AtLeast: RatioPresetsLeast},
		})
	}
	head.Figures = append(head.Figures,
		record.Figure{Name: "lost", Unit: record.Count, Value: lost, IsCost: true, Limit: record.Limit{AtMost: 1}})
	if n := len(r.Results); n > 0 && len(r.Results[n-1].Plays) > 0 {
		head.Analysis = &bottleneck.Analysis{Balance: r.Results[n-1].Plays[config.Repeat-1].Balance}
	}
}
