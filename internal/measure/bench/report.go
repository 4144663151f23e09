package bench

import "github.com/parley-broker/parley/internal/measure/record"

// Report is the result of a scenario. As JSON it is a stable format, described in docs/reference/json.md.
type Report struct {
	record.Head

	Results []Result `json:"results"`
	// Ratios are quotients of medians, under "variant:parley/insert", "variant:operation/fresh" for what was
	// done in an aged database, or "variant:operation/operation", and behind "p50:" of latencies.
	Ratios map[string]float64 `json:"ratios"`
	// Paper is the seed paper's figure of the kind, if it has one.
	Paper string `json:"paper,omitempty"`
	// Cells are those of the paper's matrix: of this run, and behind them those of other versions of the server that the state has.
	Cells []Cell `json:"cells,omitempty"`
	// Seed is the table that the seed has of mail, which is printed beside ours.
	Seed []SeedColumn `json:"seed,omitempty"`
}

// Result is the result of one system under one variant.
type Result struct {
	System        string `json:"system"`
	Variant       string `json:"variant"`
	Sessions      int    `json:"sessions"`
	Conversations int    `json:"conversations"`
	Size          int    `json:"size"`  // bytes of a body
	Batch         int    `json:"batch"` // messages of a call, at most
	// Operation and Phase, "fresh" or "aged", are what decay compares.
	Operation string `json:"operation,omitempty"`
	Phase     string `json:"phase,omitempty"`

	MessagesPerSecond float64   `json:"messages_per_second"` // median of Runs
	Spread            float64   `json:"spread"`              // (max - min) / median of Runs
	Runs              []float64 `json:"runs"`                // messages per second, in the order they were measured

	// Latency is from the sender's commit to the first statement of the reader, the medians of the runs, where that was measured.
	Latency *Latency `json:"latency,omitempty"`

	// ProcessorMSPerMinute is the processor time of one session, where that was measured.
	ProcessorMSPerMinute *float64 `json:"processor_ms_per_minute,omitempty"`
	// ProcessorMSPerJob is the processor time of the whole server for one job, where that was measured.
	ProcessorMSPerJob *float64 `json:"processor_ms_per_job,omitempty"`

	// Figures are those of mail, by their names in MailFigures: the medians of the runs.
	Figures map[string]float64 `json:"figures,omitempty"`

	// Base is the operation of the same variant that this one is compared with, if it is not the bare INSERT.
	Base string `json:"base,omitempty"`

	// Unit of the rate where it is no messages a second.
	Unit string `json:"unit,omitempty"`

	// published is the seed's figure of the kind, and atLeast what the rate has to be above; 0 where there is none.
	published, atLeast float64
	// isRelayed reports that it came in and went out by SMTP, and is compared with Postfix.
	isRelayed bool
}

const (
	systemParley  = "parley"
	systemInsert  = "insert"
	systemPostfix = "postfix"

	phaseFresh = "fresh"
	phaseAged  = "aged"
)

// RatioKey is the key of the report's ratio that this result stands above the line in, or "" if it stands in none.
func (r Result) RatioKey() string {
	switch {
	case r.Base != "":
		return r.Variant + ":" + r.Operation + "/" + r.Base
	case r.Phase == phaseAged:
		return r.Variant + ":" + r.Operation + "/" + phaseFresh
	case r.isRelayed && r.System == systemParley:
		return r.Variant + ":" + r.System + "/" + systemPostfix
	case r.isRelayed:
		return ""
	case r.System == systemTSQL:
		return r.Variant + ":" + r.System + "/" + systemParley
	case r.Phase == "" && r.System != systemInsert:
		return r.Variant + ":" + r.System + "/" + systemInsert
	}
	return ""
}

// IsBaseOf reports whether a result is what another is compared with.
func (r Result) IsBaseOf(above Result) bool {
	if above.Base != "" {
		return r.Variant == above.Variant && r.Operation == above.Base
	}
	if r.Variant != above.Variant || r.Operation != above.Operation {
		return false
	}
	if above.isRelayed {
		return r.System == systemPostfix
	}
	if above.System == systemTSQL {
		return r.System == systemParley
	}
	return r.Phase == phaseFresh && above.Phase == phaseAged || r.System == systemInsert && above.System != systemInsert && above.Phase == ""
}

// ratios compares each result with its base, where there is one.
func ratios(results []Result) map[string]float64 {
	found := map[string]float64{}
	for _, above := range results {
		for _, base := range results {
			if key := above.RatioKey(); key != "" && base.IsBaseOf(above) && base.MessagesPerSecond > 0 {
				found[key] = above.MessagesPerSecond / base.MessagesPerSecond
				if above.Latency != nil && base.Latency != nil && base.Latency.P50MS > 0 {
					found["p50:"+key] = above.Latency.P50MS / base.Latency.P50MS
				}
			}
		}
	}
	return found
}

// title names a result in progress and errors.
func (r Result) title() string {
	title := r.Variant
	if r.Operation != "" {
		title += ", " + r.Operation
	}
	if r.Phase != "" {
		title += ", " + r.Phase
	}
	if r.System != systemParley {
		title += ", " + r.System
	}
	return title
}
