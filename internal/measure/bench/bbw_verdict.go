package bench

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
)

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

// The conditions of ours, beside those of the original.
const (
	mostDifference = 0.02 // of what is received and what is processed
	mostSlope      = 0.01 // of the rate, that the spool may grow by
	mostDrain      = 30.0 // seconds until nothing is left
)

// rates are the averages of the samples: messages a second that were received and processed, and percent of the processors.
func (p *BBWPlay) rates() (received, processed, processor float64) {
	n := float64(len(p.Taken))
	for _, s := range p.Taken {
		received += s.Received / n
		processed += s.Processed / n
		processor += min(100, s.Processor) / n
	}
	return received, processed, processor
}

// judge gives both verdicts.
func (r *BBWReport) judge(config BBWConfig, head *record.Head) (err error) {
	targets, limits := r.Environment.limits(config.Scenario)
	target := targets[config.Edition]
	received, processed, processor := r.rates()
	r.KPIs = []KPI{
		{kpiReceiveCPU, processor, limits[0], processor < limits[0]},
		{kpiSendCPU, processor, limits[1], processor < limits[1]},
		{kpiSQLCPU, processor, limits[2], processor < limits[2]},
		{kpiReceived, received, target, received > target},
		{kpiSent, processed, target, processed > target},
	}
	if r.Thresholds, err = config.thresholds(received, processed); err != nil {
		return err
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
	r.judgeOurs(config.Rate, head.Verdict)
	head.Analysis = &bottleneck.Analysis{Balance: r.Balance}
	return nil
}

// The generator was the limit where it offered less than leastOffered of what it was asked for, though less than mostBusy of its
// connections were waiting for an acknowledgement.
const (
	leastOffered = 0.95
	mostBusy     = 0.9
)

// judgeOurs lowers the verdict for what the original does not ask. rate is what was to be offered, 0 for as much as is taken.
func (p *BBWPlay) judgeOurs(rate int, v *record.Verdict) {
	a := p.Accounts
	received, processed, _ := p.rates()
	if received > 0 && (received-processed)/received > mostDifference {
		v.Lower(record.Fail, "%.0f messages a second were received and %.0f processed: more than 2%% apart", received, processed)
	}
	if a.SpoolSlope > mostSlope*max(received, 1) {
		v.Lower(record.Fail, "the spool grew by %.1f messages a second", a.SpoolSlope)
	}
	if a.Throttled > 0 {
		v.Lower(record.Fail, "hosts throttled: the level of pressure changed %d times", a.Throttled)
	}
	p.judgeAccounts(v)
	if p.Balance.IsBackEnd() {
		v.Lower(record.Invalid, "the back end was the limit: it was busy with messages %.0f%% of the time, so the rates say nothing of the "+
			"engine", 100*p.Balance.BackEndBusy)
	}
	if p.Offered < leastOffered*float64(rate) && p.GeneratorBusy < mostBusy {
		v.Lower(record.Invalid, "the generator was the limit: of %d messages a second it offered %.0f, and %.0f%% of its connections waited "+
			"for the engine", rate, p.Offered, 100*p.GeneratorBusy)
	}
}

// judgeAccounts lowers the verdict for messages that are not where they have to be.
func (p *BBWPlay) judgeAccounts(v *record.Verdict) {
	a := p.Accounts
	if a.Doubled > 0 {
		v.Lower(record.Warnings, "%d messages arrived twice: TCP promises each at least once", a.Doubled)
	}
	if a.Left > 0 {
		v.Lower(record.Fail, "%d messages were left in the message box %.0f s after the end", a.Left, mostDrain)
	}
	if a.Received < a.Acknowledged {
		v.Lower(record.Fail, "%d messages were acknowledged, the database counted %d", a.Acknowledged, a.Received)
	}
}
