package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/record"
)

// The thresholds of both scenarios are those of the original, of both of its editions, in the order of its environments.
func TestThresholdsAreThoseOfTheOriginal(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[BBWScenario][]float64{
		BBWMessaging:     {200, 350, 490, 700, 770, 910, 980, 300, 700, 700, 1000, 1100, 1300, 1400},
		BBWOrchestration: {140, 210, 240, 270, 290, 320, 370, 200, 300, 350, 380, 410, 460, 520},
	} {
		found, err := BBWConfig{Scenario: scenario}.thresholds(300, 290)
		if err != nil || len(found) != len(want) {
			t.Fatalf("%s has %d thresholds, with %v", scenario, len(found), err)
		}
		for i, th := range found {
			edition := "earlier"
			if i >= 7 {
				edition = "later"
			}
			if th.Rate != want[i] || th.Edition != edition || th.IsAbove != (th.Rate < 290) {
				t.Errorf("%s, number %d, is %+v", scenario, i, th)
			}
		}
	}
}

// A body has the size that was asked for in both charsets, and its number is read again, also where an engine gives it out as UTF-8.
func TestBodiesHaveTheirSizeAndNumber(t *testing.T) {
	t.Parallel()
	for _, charset := range []string{"utf-16", "utf-8"} {
		for _, size := range []int{188, 2048} {
			body := bodiesIn(charset, size)(4711)
			number, err := numberIn(body)
			if len(body) != size || number != 4711 || err != nil || bytes.HasPrefix(body, mark16) != (charset == "utf-16") {
				t.Errorf("%s of %d bytes has %d, with number %d and %v: %q", charset, size, len(body), number, err, body)
			}
		}
	}
	for _, refused := range []struct {
		size    int
		charset string
	}{{187, "utf-16"}, {186, "utf-16"}, {100, "utf-8"}, {188, "ebcdic"}, {2 << 20, "utf-8"}} {
		if checkBody(refused.size, refused.charset) == nil {
			t.Errorf("%d bytes of %s are accepted", refused.size, refused.charset)
		}
	}
}

// played is a play that did all that it has to.
func played() BBWReport {
	environment, _ := BBWConfig{Environment: "single"}.environment()
	r := BBWReport{Environment: environment, BBWPlay: BBWPlay{
		P95MS: 20, Drained: 1, Offered: 350, GeneratorBusy: 0.2,
		Accounts: BBWAccounts{Acknowledged: 3500, Received: 3500, Processed: 3500, Arrived: 3500},
		Balance:  bottleneck.Balance{In: 350, Out: 350, BackEndBusy: 0.1},
	}}
	for i := range 10 {
		r.Taken = append(r.Taken, BBWSample{Seconds: float64(i), Received: 350, Processed: 350, Processor: 60})
	}
	return r
}

// judged gives the verdict of a play and the original's, as a whole run would have them.
func judged(t *testing.T, r BBWReport, checks []record.Check, config BBWConfig) (record.Verdict, string) {
	t.Helper()
	head := &record.Head{Setup: checks, Verdict: &record.Verdict{Grade: record.Pass}}
	if err := r.judge(config, head); err != nil {
		t.Fatal(err)
	}
	head.Conclude(nil)
	return *head.Verdict, r.Original
}

// Each of the four verdicts has its own ground; the original's is about five averages alone.
func TestEachVerdictOfAPlayHasItsGround(t *testing.T) {
	t.Parallel()
	noisy := []record.Check{{Name: record.Neighbours, State: record.Warning, Text: "others use 80%", Value: 80}}
	for name, c := range map[string]struct {
		change   func(r *BBWReport)
		checks   []record.Check
		rate     int
		p95      float64
		grade    record.Grade
		original string
		reason   string
	}{
		"all is well":                {func(*BBWReport) {}, nil, 350, 25, record.Pass, "Succeeded", ""},
		"a neighbour":                {func(*BBWReport) {}, noisy, 0, 0, record.Warnings, "Succeeded", "others use 80%"},
		"a message that came twice":  {func(r *BBWReport) { r.Accounts.Doubled = 1 }, nil, 0, 0, record.Warnings, "Succeeded", "arrived twice"},
		"a message that is lost":     {func(r *BBWReport) { r.Accounts.Lost = 1 }, nil, 0, 0, record.Fail, "Succeeded", "lost is 1"},
		"one that was not counted":   {func(r *BBWReport) { r.Accounts.Received-- }, nil, 0, 0, record.Fail, "Succeeded", "the database counted 3499"},
		"what is late":               {func(*BBWReport) {}, nil, 0, 19, record.Fail, "Succeeded", "p95 end to end"},
		"a queue that does not end":  {func(r *BBWReport) { r.Drained = 31 }, nil, 0, 0, record.Fail, "Succeeded", "drained"},
		"what is left":               {func(r *BBWReport) { r.Accounts.Left = 5 }, nil, 0, 0, record.Fail, "Succeeded", "5 messages were left"},
		"a spool that grows":         {func(r *BBWReport) { r.Accounts.SpoolSlope = 4 }, nil, 0, 0, record.Fail, "Succeeded", "the spool grew"},
		"a host that throttles":      {func(r *BBWReport) { r.Accounts.Throttled = 1 }, nil, 0, 0, record.Fail, "Succeeded", "throttled"},
		"rates that lie apart":       {func(r *BBWReport) { each(r, func(s *BBWSample) { s.Received = 360 }) }, nil, 0, 0, record.Fail, "Succeeded", "2% apart"},
		"a rate that is too low":     {func(r *BBWReport) { each(r, func(s *BBWSample) { s.Received, s.Processed = 299, 299 }) }, nil, 0, 0, record.Fail, "Failed", "has to be above 300"},
		"the same beside neighbours": {func(r *BBWReport) { each(r, func(s *BBWSample) { s.Received, s.Processed = 299, 299 }) }, noisy, 0, 0, record.Invalid, "Failed", "says nothing of this machine"},
		"a processor that is full":   {func(r *BBWReport) { each(r, func(s *BBWSample) { s.Processor = 99 }) }, nil, 0, 0, record.Fail, "Failed", "has to be below"},
		"a back end that is slow":    {func(r *BBWReport) { r.Balance = bottleneck.Balance{In: 350, Out: 300, BackEndBusy: 0.9} }, nil, 0, 0, record.Invalid, "Succeeded", "the back end was the limit"},
		"a generator that is slow":   {func(r *BBWReport) { r.Offered = 320 }, nil, 350, 0, record.Invalid, "Succeeded", "the generator was the limit"},
		"an engine that holds it up": {func(r *BBWReport) { r.Offered, r.GeneratorBusy = 320, 0.99 }, nil, 350, 0, record.Pass, "Succeeded", ""},
	} {
		r := played()
		c.change(&r)
		verdict, original := judged(t, r, c.checks, BBWConfig{
			Scenario: BBWMessaging, Environment: "single", Edition: "later", Rate: c.rate, P95: c.p95, Duration: 10 * time.Second,
		})
		has := c.reason == "" && len(verdict.Reasons) == 0
		for _, reason := range verdict.Reasons {
			has = has || c.reason != "" && strings.Contains(reason, c.reason)
		}
		if verdict.Grade != c.grade || original != c.original || !has {
			t.Errorf("%s: it is %s, the original's %s, as %q", name, verdict.Grade, original, verdict.Reasons)
		}
	}
}

func each(r *BBWReport, change func(s *BBWSample)) {
	for i := range r.Taken {
		change(&r.Taken[i])
	}
}
