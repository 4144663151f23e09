package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/process"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// orchestration is one as the configuration has it.
type orchestration struct {
	Number      int64  `json:"send_port"`
	Application string `json:"application"`
	State       string `json:"state"`
	Version     int    `json:"version"`
	Concurrency int    `json:"concurrency"`
	Batch       int    `json:"batch"`
	settings    json.RawMessage
}

// UnmarshalJSON keeps the settings as they are written besides.
func (o *orchestration) UnmarshalJSON(data []byte) error {
	type plain orchestration
	if err := json.Unmarshal(data, (*plain)(o)); err != nil {
		return fmt.Errorf("read an orchestration: %w", err)
	}
	o.settings = slices.Clone(data)
	return nil
}

// knownTo gives what orchestrations of a configuration may name, and the types of properties.
func knownTo(c *configuration) (process.Known, error) {
	all := map[string]json.RawMessage{}
	if len(c.Known) > 0 {
		if err := json.Unmarshal(c.Known, &all); err != nil {
			return process.Known{}, fmt.Errorf("read what orchestrations may name: %w", err)
		}
	}
	for kind, objects := range map[string]json.RawMessage{
		"message type": c.MessageTypes, "property schema": c.PropertySchemas, "receive port": c.ReceivePorts,
	} {
		if len(objects) > 0 {
			all[kind] = objects
		}
	}
	written, err := json.Marshal(all)
	if err != nil {
		return process.Known{}, fmt.Errorf("write what orchestrations may name: %w", err)
	}
	return process.KnownOf(written)
}

// newRunner makes the runner of a host, which uses the configuration that is the newest then.
func newRunner(h *Host) *orchestrator.Runner {
	return orchestrator.New(orchestrator.Config{
		Host: h.name, Role: h.role, Pool: h.pool, Logger: h.logger,
		Compile: h.compile, Type: h.typeOf, Transform: h.transform,
		Matcher: func() *match.Matcher {
			if c := h.settings.Load(); c != nil {
				return c.matcher
			}
			return nil
		},
		Types: func() map[string]string {
			if c := h.settings.Load(); c != nil {
				return c.known.Properties
			}
			return nil
		},
	})
}

// role gives the role of the host.
func (h *Host) role() string {
	if c := h.settings.Load(); c != nil {
		return c.Host.Role
	}
	return ""
}

// compile makes the program of an orchestration.
func (h *Host) compile(name string, settings json.RawMessage) (orchestrator.Program, error) {
	known := process.Known{}
	if c := h.settings.Load(); c != nil {
		known = c.known
	}
	if h.server.config.Compile != nil {
		return h.server.config.Compile(name, settings, known)
	}
	return orchestrator.Compile(name, settings, known)
}

// useOrchestrations makes ready the orchestrations of a configuration; it gives outlets that are used no more.
func (ps *ports) useOrchestrations(c *configuration) (retired []*outlet) {
	for _, name := range names(c.Orchestrations) {
		wanted := c.Orchestrations[name]
		fingerprint := fmt.Sprintf("orchestration %d %s %d %d", wanted.Version, wanted.State, wanted.Concurrency, wanted.Batch)
		ps.mu.Lock()
		both := []*port{ps.port(name, false), ps.port(name, true)}
		isSame := both[0].outlet != nil && both[0].outlet.fingerprint == fingerprint
		ps.mu.Unlock()
		if isSame {
			continue
		}
		var process *orchestrator.Orchestration
		var err error
		if wanted.State == "Started" {
			o := &orchestrator.Orchestration{
				Name: name, Number: wanted.Number, Version: wanted.Version, State: wanted.State, Settings: wanted.settings,
				Concurrent: wanted.Concurrency, Batch: wanted.Batch,
			}
			if err = ps.host.runner.Prepare(*o); err == nil {
				process = o
			}
		}
		if ps.host.problems.set(problemPort, "orchestration", name, err) && err != nil {
			ps.host.logger.Warn("the orchestration is left out", "orchestration", name, "error", err)
		}
		ps.mu.Lock()
		for _, p := range both {
			var made *outlet
			if process != nil {
				made = &outlet{
					fingerprint: fingerprint, process: process,
					definition: sendPort{Number: wanted.Number, State: wanted.State, Concurrency: wanted.Concurrency, Batch: wanted.Batch},
				}
			}
			retired = append(retired, ps.replace(p, made)...)
		}
		ps.mu.Unlock()
	}
	return retired
}

// stepping runs the instances for which a unit has deliveries.
type stepping struct {
	host  *Host
	port  *port
	of    *outlet
	lease *lease
	rest  []*flowstore.Claimed
}

func newStepping(h *Host, p *port, o *outlet, u unit) *stepping {
	return &stepping{host: h, port: p, of: o, lease: u.lease, rest: u.items}
}

// work runs all. It returns when all is recorded, was given back, or is in the hands of others.
func (s *stepping) work() {
	s.host.counts.sending.Add(1)
	defer s.host.counts.sending.Add(-1)
	ctx, cancel := context.WithCancelCause(s.lease.ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.host.ports.ended:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	for len(s.rest) > 0 {
		if ctx.Err() != nil {
			s.giveUp(ctx, s.rest)
			return
		}
		size := min(len(s.rest), max(s.of.process.Batch, 1))
		// A delivery of which hosts have died is run by itself.
		if s.rest[0].Stage == flowstore.StageKilled {
			size = 1
		}
		batch := s.rest[:size]
		s.rest = s.rest[size:]
		if !s.step(ctx, batch) {
			return
		}
	}
}

// step runs a batch; false: nothing of the rest can be run now.
func (s *stepping) step(ctx context.Context, batch []*flowstore.Claimed) bool {
	began := time.Now()
	s.host.leases.hand(s.lease.number, len(batch))
	outcome := s.host.runner.Run(ctx, *s.of.process, batch)
	s.host.leases.hand(s.lease.number, -len(outcome.Back))
	s.host.counts.outbound.Observe(time.Since(began))
	s.host.counts.instances.took(outcome.Ends)
	if len(outcome.Done) > 0 {
		s.host.leases.ended(s.lease.number, len(outcome.Done))
		s.host.ports.left(s.port.key(), len(outcome.Done), true)
		s.host.counts.transmitted.Add(int64(len(outcome.Done)))
		s.host.gate.observe(nil)
	}
	switch {
	case len(outcome.Back) == 0:
		return true
	case errors.Is(outcome.Err, orchestrator.ErrLost):
		s.host.leases.lose(s.lease.number)
		s.host.ports.left(s.port.key(), len(outcome.Back)+len(s.rest), true)
		return false
	case outcome.Err != nil && ctx.Err() == nil:
		s.host.gate.observe(outcome.Err)
		s.host.logger.Warn("steps could not be recorded; they are run again", "orchestration", s.port.name, "error", outcome.Err)
	}
	s.giveUp(ctx, append(slices.Clone(outcome.Back), s.rest...))
	return false
}

// giveUp gives deliveries back, unless their lease is gone.
func (s *stepping) giveUp(ctx context.Context, batch []*flowstore.Claimed) {
	if !errors.Is(context.Cause(ctx), errLeaseGone) {
		s.host.release(s.lease.number, unit{s.lease, batch}.numbers())
	}
	s.host.ports.left(s.port.key(), len(batch), false)
}

// timerInterval is how often a host asks for timers at least, while it has orchestrations.
const timerInterval = time.Second

// fireTimers wakes instances whose time has come, until ctx ends.
func (h *Host) fireTimers(ctx context.Context) {
	failures := backoff.NewFailures(h.logger, "timers cannot be asked for")
	pause := timerInterval
	for backoff.Wait(ctx, pause) == nil {
		pause = timerInterval
		c := h.settings.Load()
		if c == nil || len(c.Orchestrations) == 0 {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, statementTimeout)
		woken, next, err := flowstore.FireTimers(asking, h.pool, h.name)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = failures.Failed(err)
			continue
		}
		failures.Succeeded()
		if woken >= 1000 {
			pause = 0
		} else if !next.IsZero() {
			pause = min(max(time.Until(next), 5*time.Millisecond), timerInterval)
		}
	}
}
