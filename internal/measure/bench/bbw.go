package bench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
)

//go:embed bbw.json
var environmentsFile []byte

// Environment has the expectations of BizTalk's wizard of a set of servers.
type Environment struct {
	Name  string `json:"name"`
	Short string `json:"short"`
	// Messaging and Orchestration are messages a second, by the edition of the wizard: "later" or "earlier".
	Messaging     map[string]float64 `json:"messaging"`
	Orchestration map[string]float64 `json:"orchestration"`
	// Limits of processors in percent: of the receiving, the sending and the database's server.
	ProcessorMessaging     [3]float64 `json:"processor_messaging"`
	ProcessorOrchestration [3]float64 `json:"processor_orchestration"`
}

// Environments are those of BizTalk's wizard, and those of a text like bbw.json, if there is one.
func Environments(further []byte) (all []Environment, err error) {
	for _, text := range [][]byte{environmentsFile, further} {
		var some []Environment
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &some); err != nil {
			return nil, fmt.Errorf("read environments: %w", err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// BBWConfig says how the messaging scenario of BizTalk's wizard is played.
type BBWConfig struct {
	Frame

	// Environment gives the limits, of an Edition: "later" or "earlier". Further are environments of the user, as JSON.
	Environment, Edition string
	Further              []byte
	// Size is the bytes of a body; the original's is 188.
	Size int
	// Connections are the generator's, each with one body that waits for its acknowledgement; Workers those to the back end.
	Connections, Workers int
	// Rate is how many bodies are offered a second; 0: as fast as they are acknowledged.
	Rate int
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

// environment gives the one that was chosen.
func (c BBWConfig) environment() (Environment, error) {
	all, err := Environments(c.Further)
	if err != nil {
		return Environment{}, err
	}
	var names []string
	for _, e := range slices.Backward(all) {
		if e.Name == c.Environment {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Environment{}, fmt.Errorf("environment %q is unknown: there are %s", c.Environment, strings.Join(names, ", "))
}

// Check reports what is wrong with a configuration, before there is a DSN.
func (c BBWConfig) Check() error {
	e, err := c.environment()
	switch {
	case err != nil:
		return err
	case e.Messaging[c.Edition] == 0:
		return fmt.Errorf("edition %q is unknown: there are later, earlier", c.Edition)
	case c.Size < smallestBody || c.Size > 1<<20:
		return fmt.Errorf("a size must be from %d to %d bytes", smallestBody, 1<<20)
	case c.Connections < 1 || c.Workers < 1 || c.Rate < 0 || c.Duration <= 0 || c.WarmUp < 0 || c.Every <= 0 || c.BackEndTime < 0 ||
		c.P95 < 0:
		return errors.New("connections, workers, duration and the time of a sample must be at least 1, and nothing may be below 0")
	}
	return nil
}

// The five figures of BizTalk's wizard, under its names.
const (
	kpiReceiveCPU = "Avg Processor Time (BTS Receive)"
	kpiSendCPU    = "Avg Processor Time (BTS Send)"
	kpiSQLCPU     = "SQL Processor"
	kpiReceived   = "Received Msgs/sec"
	kpiSent       = "Send Msgs/sec"
)

// KPI is one of the five, with its limit.
type KPI struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Limit     float64 `json:"limit"`
	Succeeded bool    `json:"succeeded"`
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

	// Balance has the rates of both sides while it was measured.
	Balance     bottleneck.Balance `json:"-"`
	Environment Environment        `json:"environment"`
	KPIs        []KPI              `json:"kpis"`
	// Original is the verdict that the original would give: Succeeded or Failed.
	Original string       `json:"original_verdict"`
	Taken    []BBWSample  `json:"taken"`
	Latency  Latency      `json:"latency"`
	P95MS    float64      `json:"p95_ms"` // from end to end, as Latency
	Accounts BBWAccounts  `json:"accounts"`
	Patterns []BBWPattern `json:"patterns,omitempty"`
	Drained  float64      `json:"drained_seconds"`
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

// MeasureBBW plays the messaging scenario of BizTalk's wizard: a generator sends over TCP, a location publishes, one port is the only
// subscriber and sends over TCP to a back end that forgets. It makes databases of its own on the server and drops them before it returns.
func MeasureBBW(ctx context.Context, config BBWConfig) (report BBWReport, err error) {
	if err := config.Check(); err != nil {
		return BBWReport{}, err
	}
	report.Environment, _ = config.environment()
	asked := map[string]any{
		"environment": config.Environment, "edition": config.Edition, "size": config.Size, "connections": config.Connections,
		"workers": config.Workers, "rate": config.Rate, "duration_seconds": config.Duration.Seconds(),
		"warm_up_seconds": config.WarmUp.Seconds(),
		"back_end_ms":     float64(config.BackEndTime) / float64(time.Millisecond),
	}
	report.Head, err = config.onServer(ctx, "bbw-messaging", asked, config.Duration, func(ctx context.Context, c *cluster,
		head *record.Head,
	) error {
		run := &bbw{BBWConfig: config, flow: flow{
			FlowConfig: FlowConfig{
				Frame: config.Frame, Connections: config.Connections, Workers: config.Workers,
				Program: config.Program,
			}, cluster: c,
		}}
		if err := run.play(ctx, &report); err != nil {
			return err
		}
		report.judge(config, head)
		return nil
	})
	return report, err
}

// The conditions of ours, beside those of the original.
const (
	mostDifference = 0.02 // of what is received and what is processed
	mostSlope      = 0.01 // of the rate, that the spool may grow by
	mostDrain      = 30.0 // seconds until nothing is left
)

// judge gives both verdicts.
func (r *BBWReport) judge(config BBWConfig, head *record.Head) {
	target := r.Environment.Messaging[config.Edition]
	limits := r.Environment.ProcessorMessaging
	var received, processed, processor float64
	for _, s := range r.Taken {
		received += s.Received / float64(len(r.Taken))
		processed += s.Processed / float64(len(r.Taken))
		processor += min(100, s.Processor) / float64(len(r.Taken))
	}
	r.KPIs = []KPI{
		{kpiReceiveCPU, processor, limits[0], processor < limits[0]},
		{kpiSendCPU, processor, limits[1], processor < limits[1]},
		{kpiSQLCPU, processor, limits[2], processor < limits[2]},
		{kpiReceived, received, target, received > target},
		{kpiSent, processed, target, processed > target},
	}
	r.Original = "Succeeded"
	for _, kpi := range r.KPIs {
		f := record.Figure{Name: kpi.Name, Value: kpi.Value, Unit: "messages/s", Limit: record.Limit{AtLeast: kpi.Limit}}
		if kpi.Name != kpiReceived && kpi.Name != kpiSent {
			f.Unit, f.IsCost, f.Limit = "%", true, record.Limit{AtMost: kpi.Limit}
		}
		if !kpi.Succeeded {
			r.Original = "Failed"
		}
		head.Figures = append(head.Figures, f)
	}
	// Rates first: they are what two runs differ by.
	slices.SortStableFunc(head.Figures, func(a, b record.Figure) int { return strings.Compare(b.Unit, a.Unit) })
	head.Figures = append(head.Figures,
		record.Figure{Name: "lost", Unit: record.Count, Value: float64(r.Accounts.Lost), IsCost: true, Limit: record.Limit{AtMost: 1}},
		record.Figure{Name: "doubled", Unit: record.Count, Value: float64(r.Accounts.Doubled), IsCost: true},
		record.Figure{Name: "p95 end to end", Unit: "ms", Value: r.P95MS, IsCost: true, Limit: record.Limit{AtMost: config.P95}},
		record.Figure{Name: "drained after the end", Unit: "s", Value: r.Drained, IsCost: true, Limit: record.Limit{AtMost: mostDrain}},
	)
	for _, p := range r.Patterns {
		head.Figures = append(head.Figures, p.figures()...)
	}
	r.judgeOurs(received, processed, head.Verdict)
	head.Analysis = &bottleneck.Analysis{Balance: r.Balance}
}

// judgeOurs lowers the verdict for what the original does not ask.
func (r *BBWReport) judgeOurs(received, processed float64, v *record.Verdict) {
	a := r.Accounts
	if a.Doubled > 0 {
		v.Lower(record.Warnings, "%d messages arrived twice: TCP promises each at least once", a.Doubled)
	}
	if received > 0 && (received-processed)/received > mostDifference {
		v.Lower(record.Fail, "%.0f messages a second were received and %.0f processed: more than 2%% apart", received, processed)
	}
	if a.SpoolSlope > mostSlope*max(received, 1) {
		v.Lower(record.Fail, "the spool grew by %.1f messages a second", a.SpoolSlope)
	}
	if a.Throttled > 0 {
		v.Lower(record.Fail, "hosts throttled: the level of pressure changed %d times", a.Throttled)
	}
	if a.Left > 0 {
		v.Lower(record.Fail, "%d messages were left in the message box %.0f s after the end", a.Left, mostDrain)
	}
	if a.Received < a.Acknowledged {
		v.Lower(record.Fail, "%d messages were acknowledged, the database counted %d", a.Acknowledged, a.Received)
	}
}
