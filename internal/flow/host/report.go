package host

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// report has the figures and problems of a host on a node.
type report struct {
	ProcessID  int    `json:"process_id"`
	Version    string `json:"version,omitempty"`
	Definition int64  `json:"definitions_version"`
	InProcess  int    `json:"in_process"`
	Limit      int    `json:"in_process_limit"`
	Locations  int64  `json:"receive_locations"`
	Sending    int64  `json:"sending"`
	Received   int64  `json:"received"`
	Sent       int64  `json:"sent"`
	Failures   int64  `json:"failures"`
	rates
	Publishing throttling `json:"publishing"`
	// Correlation is the intake of messages that something waits for.
	Correlation throttling `json:"correlation"`
	Delivery    throttling `json:"delivery"`
	IsStopping  bool       `json:"is_stopping,omitempty"`
	Problems    []problem  `json:"problems"`
	Closed      []closed   `json:"closed,omitempty"`
}

// rates are messages a second between two reports.
type rates struct {
	ReceivedPerSecond float64 `json:"received_per_second"`
	SentPerSecond     float64 `json:"sent_per_second"`
}

// rating makes rates of totals.
type rating struct {
	at             time.Time
	received, sent int64
	rates          rates
}

// next takes the totals of now. A change of problems is reported at once: the rates stay those of before until some time has gone by.
func (r *rating) next(at time.Time, received, sent int64) rates {
	seconds := at.Sub(r.at).Seconds()
	switch {
	case r.at.IsZero():
		r.at, r.received, r.sent = at, received, sent
	case seconds >= ratingTime.Seconds():
		r.rates = rates{float64(received-r.received) / seconds, float64(sent-r.sent) / seconds}
		r.at, r.received, r.sent = at, received, sent
	}
	return r.rates
}

// ratingTime is how long rates are taken over at least.
const ratingTime = 2 * time.Second

// throttling is how a direction is throttled.
type throttling struct {
	State    int       `json:"state"`
	Since    time.Time `json:"since"`
	DelayMS  int64     `json:"delay_ms"`
	Override string    `json:"override,omitempty"`
}

func (d throttled) report() throttling {
	return throttling{State: d.state, Since: d.since, DelayMS: d.delay.Milliseconds(), Override: d.override}
}

// report makes the report of now.
func (h *Host) report() report {
	publishing, correlation, delivery := h.throttle.read()
	r := report{
		ProcessID: os.Getpid(), Version: h.server.config.Version, InProcess: h.ports.count(), Limit: h.ports.limit(),
		Locations: h.counts.locations.Load(), Sending: h.counts.sending.Load(), Received: h.counts.received.Load(),
		Sent: h.counts.transmitted.Load(), Failures: h.counts.failures.Load(), Publishing: publishing.report(),
		Correlation: correlation.report(), Delivery: delivery.report(),
		Problems: h.problems.all(),
	}
	if c := h.settings.Load(); c != nil {
		r.Definition, r.Closed = c.Version, c.closed(h.now())
	}
	return r
}

// reportUntil reports how the host is doing on this node, until ctx ends.
func (h *Host) reportUntil(ctx context.Context) {
	failures := backoff.NewFailures(h.logger, "how the node is doing cannot be reported")
	reported := map[string]string{} // the failure of each location, as it was reported last
	since := time.Time{}
	var rating rating
	for ctx.Err() == nil {
		pause := reportInterval
		if time.Since(since) > time.Minute {
			clear(reported)
			since = time.Now()
		}
		r := h.report()
		r.rates = rating.next(time.Now(), r.Received, r.Sent)
		if err := h.reportOnce(ctx, r, reported); err != nil && ctx.Err() == nil {
			pause = max(failures.Failed(err), time.Second)
		} else {
			failures.Succeeded()
		}
		h.problems.changed.wait(ctx, pause)
	}
}

// reportOnce reports, and says of each location what has changed since it was last reported.
func (h *Host) reportOnce(ctx context.Context, r report, reported map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	written, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := h.node().Report(ctx, h.pool, written, false); err != nil {
		if pgdb.SQLState(err) == flowstore.NameTaken { // this process did not report for a while
			h.server.fail(err)
		}
		return err
	}
	failing := map[string]string{}
	if c := h.settings.Load(); c != nil {
		for name, l := range c.Locations {
			if l.IsEnabled {
				failing[name] = ""
			}
		}
	}
	for _, p := range r.Problems {
		if _, isEnabled := failing[p.Object]; p.Code == problemLocation && isEnabled {
			failing[p.Object] = p.Cause
		}
	}
	for _, name := range names(failing) {
		if was, isThere := reported[name]; isThere && was == failing[name] {
			continue
		}
		if err := flowstore.ReportLocation(ctx, h.pool, h.name, name, h.server.config.Node, failing[name]); err != nil {
			return err
		}
		reported[name] = failing[name]
	}
	maps.DeleteFunc(reported, func(name, _ string) bool { _, isThere := failing[name]; return !isThere })
	return nil
}

// reportEnd reports that the node stops.
func (h *Host) reportEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r := h.report()
	r.IsStopping = true
	if written, err := json.Marshal(r); err == nil {
		_ = h.node().Report(ctx, h.pool, written, true) // it is gone in a minute anyway
	}
}
