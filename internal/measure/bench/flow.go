package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/measure/record"
)

// FlowConfig says how one hop through engines of integration is measured.
type FlowConfig struct {
	Frame

	// Systems are the systems to measure; none: all.
	Systems []string
	// Sizes are the sizes of bodies, in bytes.
	Sizes []int
	// Connections are the generator's, each with one body that waits for its acknowledgement; Workers the deliveries of an engine at once.
	Connections, Workers int
	// Duration of a run, and before it WarmUp, which does not count.
	Duration, WarmUp time.Duration
	// Repeat is how often each system is run, in turns.
	Repeat int
	// Peers are measured beside Parley.
	Peers []HopPeer
	// Program is the program parley; empty for this one.
	Program string
}

// smallestBody has room for the number of a message, in bytes.
const smallestBody = 120

// Check reports what is wrong with a configuration, before there is a DSN.
func (c FlowConfig) Check() error {
	if c.Connections < 1 || c.Workers < 1 || c.Repeat < 1 || c.Duration <= 0 || c.WarmUp < 0 || len(c.Sizes) == 0 {
		return errors.New("connections, workers, repeat and duration must be at least 1, and there must be a size")
	}
	for _, size := range c.Sizes {
		if size < smallestBody || size > 1<<20 {
			return fmt.Errorf("a size must be from %d to %d bytes", smallestBody, 1<<20)
		}
	}
	if err := checkHops(c.Peers, systemParley, systemFloor, systemRequest, systemOrchestration); err != nil {
		return err
	}
	var known []string
	for _, system := range FlowSystems(c.Peers) {
		known = append(known, system.Name)
	}
	for _, name := range c.Systems {
		if !slices.Contains(known, name) {
			return fmt.Errorf("system %q is unknown: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// systemFloor is COPY in batches and DELETE in batches, the most that PostgreSQL does for such bodies.
const systemFloor = "copy"

// systemOrchestration is Parley with an orchestration between the two ports: receive, instance, send.
const systemOrchestration = "parley-orchestration"

// FlowSystems lists what can be measured, with a line on each.
func FlowSystems(peers []HopPeer) []Variant {
	list := []Variant{
		{systemParley, "one hop through the message box: a TCP location, a subscription by content, a TCP port, tracking on"},
		{systemOrchestration, "receive, an instance of an orchestration for each message, send: the same ports, tracking on"},
		{systemRequest, "a request by HTTP that a function of PostgreSQL answers through the message box: how long its client waits"},
		{systemFloor, "the same bodies by COPY in batches of 100, and deleted in batches of 100, in one session"},
	}
	for _, p := range peers {
		list = append(list, Variant{p.Name, p.Short})
	}
	return list
}

// FlowReport is the result of MeasureFlow. As JSON it is a stable format, described in docs/reference/json.md.
type FlowReport struct {
	record.Head

	Results  []FlowResult  `json:"results"`
	Latency  *FlowLatency  `json:"latency"`
	Requests *FlowRequests `json:"requests"`
	// Ratios are quotients of processed messages a second, under "parley/camel 188" and so on.
	Ratios map[string]float64 `json:"ratios"`
	// Missing are the systems that were left out, each with what gets it.
	Missing map[string]string `json:"missing"`
}

// FlowResult is how fast one system was with bodies of one size; the numbers are the medians of its runs.
type FlowResult struct {
	System  string      `json:"system"`
	Size    int         `json:"size"`
	Promise string      `json:"promises_less,omitempty"`
	Spread  float64     `json:"spread"` // of what was processed, (max - min) / median
	Runs    []FlowRound `json:"runs"`
	FlowRound
}

// FlowRound is one run of a system.
type FlowRound struct {
	Messages           int64   `json:"messages"`
	ReceivedPerSecond  float64 `json:"received_per_second"`
	ProcessedPerSecond float64 `json:"processed_per_second"` // all of them, until the back end had the last
	Backlog            int64   `json:"backlog"`              // when the generator ended
}

// FlowLatency is how long a message is on its way at a quarter of the rate, from the generator to the back end.
type FlowLatency struct {
	Latency
	Rate        int     `json:"rate"`
	Size        int     `json:"size"`
	InsertP50MS float64 `json:"insert_p50_ms"` // of a bare INSERT with its commit, in the same run
}

// MeasureFlow measures one hop through Parley, beside COPY and DELETE of the same bodies, and beside peers. It makes databases of its
// own on the server and drops them before it returns, also when ctx ends.
func MeasureFlow(ctx context.Context, config FlowConfig) (report FlowReport, err error) {
	if err := config.Check(); err != nil {
		return FlowReport{}, err
	}
	asked := map[string]any{
		"connections": config.Connections, "workers": config.Workers, "duration_seconds": config.Duration.Seconds(),
		"warm_up_seconds": config.WarmUp.Seconds(), "repeat": config.Repeat, "sizes": config.Sizes,
	}
	expected := time.Duration(config.Repeat*len(config.Sizes)) * config.Duration
	report.Head, err = config.onServer(ctx, "flow", asked, expected, func(ctx context.Context, c *cluster, head *record.Head) error {
		f := flow{FlowConfig: config, cluster: c}
		err := f.measure(ctx, &report)
		head.Figures = flowFigures(report.Results)
		return err
	})
	return report, err
}
