package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
)

// runningLocation is a receive location that this node takes in from.
type runningLocation struct {
	name        string
	fingerprint string
	intake      *intake // nil where it cannot be served
	opening     opening
	cancel      context.CancelFunc
	done        sync.WaitGroup
}

// useLocations starts, replaces and ends locations as a configuration says. A location that is replaced has ended before its successor
// begins, because both may listen at the same address.
func (h *Host) useLocations(ctx context.Context, c *configuration) {
	for _, name := range names(h.locations) {
		running := h.locations[name]
		wanted, isThere := c.Locations[name]
		if isThere && wanted.IsEnabled && running.fingerprint == c.fingerprint(wanted, c.allMapsOf(wanted), wanted.pipelines()...) {
			continue
		}
		running.end(h)
		delete(h.locations, name)
		h.problems.set(problemLocation, "receive location", name, nil)
		if isThere && !wanted.IsEnabled {
			h.logger.Info("the location takes in no more: it is disabled", "location", name)
		}
	}
	for _, name := range names(c.Locations) {
		if wanted := c.Locations[name]; wanted.IsEnabled && h.locations[name] == nil {
			h.locations[name] = h.startLocation(ctx, name, wanted, c)
		}
	}
	h.countLocations()
}

// retryLocations starts those locations that were left out.
func (h *Host) retryLocations(ctx context.Context, c *configuration) {
	for _, name := range names(h.locations) {
		if h.locations[name].intake == nil {
			h.locations[name] = h.startLocation(ctx, name, c.Locations[name], c)
		}
	}
	h.countLocations()
}

// countLocations counts those that are served.
func (h *Host) countLocations() {
	intakes := []*intake{}
	for _, running := range h.locations {
		if running.intake != nil {
			intakes = append(intakes, running.intake)
		}
	}
	h.intakes.Store(&intakes)
	h.counts.locations.Store(int64(len(intakes)))
}

// pauseLocations throttles those locations whose messages go to paused ports alone.
func (h *Host) pauseLocations(paused map[int64]bool) {
	intakes := h.intakes.Load()
	if intakes == nil {
		return
	}
	for _, in := range *intakes {
		var cause error
		if in.feeding.ease(paused) {
			cause = errPaused
		}
		if h.problems.set(problemPaused, "receive location", in.name, cause) && cause != nil {
			h.logger.Warn("the location is throttled: too many messages wait for the send ports that it feeds", "location", in.name)
		}
	}
}

// errPaused says why a location is throttled though its host is not.
var errPaused = errors.New("as many messages wait for the send ports that it feeds as pause_at of them allows")

// endLocations ends all.
func (h *Host) endLocations() {
	var ending sync.WaitGroup
	for _, name := range names(h.locations) {
		ending.Go(func() { h.locations[name].end(h) })
	}
	ending.Wait()
	clear(h.locations)
	h.counts.locations.Store(0)
}

// startLocation starts a location. One that cannot be served is reported, and tried again when its definition changes,
// and now and then.
func (h *Host) startLocation(ctx context.Context, name string, l location, c *configuration) *runningLocation {
	running := &runningLocation{name: name, fingerprint: c.fingerprint(l, c.allMapsOf(l), l.pipelines()...), cancel: func() {}}
	taking, newReceiver, err := h.prepareLocation(name, l, c)
	if err != nil {
		if h.problems.set(problemLocation, "receive location", name, err) {
			h.logger.Warn("the location is left out", "location", name, "error", err)
		}
		return running
	}
	running.intake, running.opening = taking, l.opening
	ctx, running.cancel = context.WithCancel(ctx)
	running.done.Go(func() { h.receive(ctx, running, newReceiver) })
	return running
}

// prepareLocation makes what a location needs, and gives how to make its receiver.
func (h *Host) prepareLocation(name string, l location, c *configuration) (*intake, func() (adapter.Receiver, error), error) {
	kind, known := h.server.config.Adapters.Find(l.Adapter)
	if !known || kind.NewReceiver == nil {
		return nil, nil, fmt.Errorf("there is no adapter %q that takes in; there are %v", l.Adapter, h.server.config.Adapters.Names())
	}
	permission := h.server.config.Permission
	if err := checkSecrets(l.Secrets, permission); err != nil {
		return nil, nil, err
	}
	if kind.Check != nil {
		if found := kind.Check(adapter.Receive, l.Address, l.Settings, names(l.Secrets)); len(found) > 0 {
			return nil, nil, fmt.Errorf("%v: %s. %s", found[0].Path, found[0].Message, found[0].Remedy)
		}
	}
	if l.opening.err != nil {
		return nil, nil, l.opening.err
	}
	definition, err := c.definition(l.Pipeline)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := pipeline.CompileReceive(definition, c.types, l.PipelineSettings)
	if err != nil {
		return nil, nil, err
	}
	maps, err := h.mapsOf(c, c.mapsOf(l), codeReceiveMap)
	if err != nil {
		return nil, nil, err
	}
	taking := newIntake(h, name, l, compiled, maps)
	if taking.response, err = h.compileResponse(kind, l, c); err != nil {
		return nil, nil, err
	}
	if taking.responseMaps, err = h.mapsOf(c, c.receivePorts[l.ReceivePort].ResponseMaps, codeSendMap); err != nil {
		return nil, nil, err
	}
	endpoint := adapter.Endpoint{
		Name: name, Address: l.Address, Settings: l.Settings, Secret: secretsOf(l.Secrets, permission), Pool: h.pool, Role: c.Host.Role,
		Permission: permission, Node: h.server.config.Node, Logger: h.logger.With("location", name, "adapter", l.Adapter),
		Describe: func(messageType string) (json.RawMessage, error) { return h.describeLocation(name, messageType) },
	}
	newReceiver := func() (adapter.Receiver, error) { return kind.NewReceiver(endpoint) }
	// Most of what a definition can have wrong is found here.
	if err := guarded(func() error { _, err := newReceiver(); return err }); err != nil {
		return nil, nil, err
	}
	return taking, newReceiver, nil
}

// receive runs receivers of a location while its schedule is open, until ctx ends.
func (h *Host) receive(ctx context.Context, running *runningLocation, newReceiver func() (adapter.Receiver, error)) {
	for h.awaitOpening(ctx, running) {
		open, end := context.WithCancel(ctx)
		running.done.Go(func() {
			defer end()
			h.awaitClosing(open, running)
		})
		h.logger.Info("the location takes in", "location", running.name)
		h.receiveWhileOpen(open, running, newReceiver)
		end()
		h.problems.set(problemLocation, "receive location", running.name, nil)
	}
}

// receiveWhileOpen runs receivers of a location, one after the other, until ctx ends.
func (h *Host) receiveWhileOpen(ctx context.Context, running *runningLocation, newReceiver func() (adapter.Receiver, error)) {
	policy := backoff.Policy{First: restartPause, Longest: longestRestart}
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		// One that has failed may take its time to fail again.
		after := restartPause
		if failures > 0 {
			after = longestRestart
		}
		worked := time.AfterFunc(after, func() { h.problems.set(problemLocation, "receive location", running.name, nil) })
		err := guarded(func() error {
			receiver, err := newReceiver()
			if err != nil {
				return err
			}
			return receiver.Run(ctx, running.intake)
		})
		worked.Stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errEndedEarly
		}
		if time.Since(began) > longestRestart {
			failures = 0
		}
		failures++
		if failures == 1 {
			h.logger.Warn("the location fails; it is begun again", "location", running.name, "error", err)
		}
		h.problems.set(problemLocation, "receive location", running.name, err)
		_ = backoff.Wait(ctx, policy.Pause(failures))
	}
}

// end ends a location, and returns when nothing of it runs any more, or its receiver does not end in the time of a node that stops.
func (r *runningLocation) end(h *Host) {
	r.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done.Wait()
		if r.intake != nil {
			r.intake.committer.close()
		}
	}()
	timer := time.NewTimer(h.server.config.Drain)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		h.logger.Error("a receiver does not end", "location", r.name)
	}
}
