package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
)

// BBWConfig says how a scenario of BizTalk's wizard is played.
type BBWConfig struct {
	Frame

	Scenario BBWScenario
	// Environment gives the limits, of an Edition: "later" or "earlier". Further are environments of the user, as JSON.
	Environment, Edition string
	Further              []byte
	// Size is the bytes of a body; the original's is 188. Charset is "utf-16", with a mark, as the original's, or "utf-8".
	Size    int
	Charset string
	// Connections are the generator's, each with one body that waits for its acknowledgement; Workers those to the back end.
	Connections, Workers int
	// Rate is how many bodies are offered a second; 0: as fast as they are acknowledged, with at most Outstanding on their way to the back
	// end; the original has 10,000.
	Rate, Outstanding int
	// Duration counts, after WarmUp, which does not; a sample is taken every Every.
	Duration, WarmUp, Every time.Duration
	// BackEndTime is how long the back end takes for a message.
	BackEndTime time.Duration
	// P95 is the limit of the time of a message from end to end, in milliseconds; 0 for none.
	P95 float64
	// Sustain searches the highest rate that is sustained, and plays the three patterns.
	Sustain bool
	// Program is the program parley; empty for this one.
	Program string
}

// Check reports what is wrong with a configuration, before there is a DSN.
func (c BBWConfig) Check() error {
	e, err := c.environment()
	if err != nil {
		return err
	}
	if targets, _ := e.limits(c.Scenario); targets[c.Edition] == 0 {
		return fmt.Errorf("edition %q is unknown: there are later, earlier", c.Edition)
	}
	if err := checkBody(c.Size, c.Charset); err != nil {
		return err
	}
	if c.Connections < 1 || c.Workers < 1 || c.Outstanding < 1 || c.Rate < 0 || c.Duration <= 0 || c.WarmUp < 0 || c.Every <= 0 ||
		c.BackEndTime < 0 || c.P95 < 0 {
		return errors.New("connections, workers, outstanding, duration and the time of a sample must be at least 1, and nothing may be below 0")
	}
	return nil
}

// BBWSample has the rates of one sample.
type BBWSample struct {
	Seconds   float64 `json:"seconds"`
	Received  float64 `json:"received"`  // messages a second, by the counter of the database
	Processed float64 `json:"processed"` // messages a second
	Processor float64 `json:"processor"` // percent
	Spool     float64 `json:"spool"`     // messages in the message box
}

// BBWReport is the result of MeasureBBW. As JSON it is a stable format, described in docs/reference/json.md.
type BBWReport struct {
	record.Head

	Environment Environment `json:"environment"`
	KPIs        []KPI       `json:"kpis"`
	// Original is the verdict that the original would give: Succeeded or Failed. Thresholds are its rates of all environments.
	Original   string       `json:"original_verdict"`
	Thresholds []Threshold  `json:"thresholds"`
	Patterns   []BBWPattern `json:"patterns,omitempty"`
	BBWPlay
}

// BBWPlay holds the samples, times and accounts of one play of a scenario.
type BBWPlay struct {
	// Balance has the rates of both sides while it was measured.
	Balance  bottleneck.Balance `json:"-"`
	Taken    []BBWSample        `json:"taken"`
	Latency  Latency            `json:"latency"`
	P95MS    float64            `json:"p95_ms"` // from end to end, as Latency
	Accounts BBWAccounts        `json:"accounts"`
	Drained  float64            `json:"drained_seconds"`
	// Offered is messages a second that the generator sent; GeneratorBusy the part of its connections' time that waited for the engine.
	Offered       float64 `json:"offered_per_second"`
	GeneratorBusy float64 `json:"generator_busy"`
	// Rate is messages a second that the database counted as processed, from the first on until none was left.
	Rate float64 `json:"processed_per_second"`
}

// BBWAccounts count the messages: the generator's acknowledgements, the database's counters, and the back end's arrivals.
type BBWAccounts struct {
	Acknowledged int64   `json:"acknowledged"`
	Received     int64   `json:"received"`
	Processed    int64   `json:"processed"`
	Arrived      int64   `json:"arrived"`
	Left         int64   `json:"left"` // in the message box, when the time to drain was over
	Lost         int64   `json:"lost"`
	Doubled      int64   `json:"doubled"`
	Throttled    int64   `json:"throttled"`   // changes of a level of pressure
	SpoolSlope   float64 `json:"spool_slope"` // messages a second
}

// MeasureBBW plays a scenario of BizTalk's wizard: a generator sends over TCP, a location publishes, one port sends over TCP to a back end
// that forgets; between them stands an orchestration, or nothing. It makes databases of its own on the server and drops them before it
// returns.
func MeasureBBW(ctx context.Context, config BBWConfig) (report BBWReport, err error) {
	if err := config.Check(); err != nil {
		return BBWReport{}, err
	}
	report.Environment, _ = config.environment()
	report.Head, err = config.onServer(ctx, string(config.Scenario), config.asked(), config.Duration, func(ctx context.Context, c *cluster,
		head *record.Head,
	) error {
		run := newBBW(config, c)
		if err := run.play(ctx, &report); err != nil {
			return err
		}
		return report.judge(config, head)
	})
	return report, err
}

// asked are the settings of a run.
func (c BBWConfig) asked() map[string]any {
	return map[string]any{
		"environment": c.Environment, "edition": c.Edition, "size": c.Size, "charset": c.Charset, "connections": c.Connections,
		"workers": c.Workers, "rate": c.Rate, "outstanding": c.Outstanding, "duration_seconds": c.Duration.Seconds(),
		"warm_up_seconds": c.WarmUp.Seconds(), "back_end_ms": float64(c.BackEndTime) / float64(time.Millisecond),
	}
}
