package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// pipelines gives the pipelines of a location.
func (l location) pipelines() []string {
	if !l.Responds {
		return []string{l.Pipeline}
	}
	return []string{l.Pipeline, l.ResponsePipeline}
}

// compileResponse makes the pipeline of the answers of a location; nil where no client waits for one.
func (h *Host) compileResponse(kind adapter.Kind, l location, c *configuration) (*pipeline.Send, error) {
	if !l.Responds {
		return nil, nil
	}
	if !kind.Answers[adapter.Receive] {
		return nil, fmt.Errorf("the receive port responds, and clients of the adapter %s cannot wait for an answer", kind.Name)
	}
	definition, err := c.definition(l.ResponsePipeline)
	if err != nil {
		return nil, err
	}
	return pipeline.CompileSend(definition, c.types, nil)
}

// Responds says whether clients wait for answers.
func (in *intake) Responds() bool { return in.response != nil }

// Request takes an input in, and waits for its answer.
func (in *intake) Request(ctx context.Context, input adapter.Input, gone <-chan struct{}) (adapter.Reply, error) {
	results, err := in.Take(ctx, []adapter.Input{input})
	if err != nil {
		return adapter.Reply{}, err
	}
	reply := adapter.Reply{Result: results[0], End: func(bool) {}}
	switch reply.Outcome {
	case adapter.Suspended:
		in.host.requests.end(reply.Message, flowstore.RequestVoid, "")
		return reply, nil
	case adapter.Repeated, adapter.Consumed:
		return reply, nil
	case adapter.Published, adapter.FailedRouted, adapter.Joined:
	}
	in.host.counts.requests.Add(1)
	in.host.counts.waiting.Add(1)
	defer in.host.counts.waiting.Add(-1)
	answered := in.host.requests.await(reply.Message, reply.Outcome == adapter.Joined)
	timer := time.NewTimer(in.patience)
	defer timer.Stop()
	select {
	case a := <-answered:
		in.respond(ctx, a, &reply)
		return reply, nil
	case <-timer.C:
		in.host.counts.timeouts.Add(1)
	case <-gone:
	case <-ctx.Done():
	}
	in.host.requests.leave(reply.Message, answered)
	return reply, nil
}

// respond puts an answer through the pipeline of the response.
func (in *intake) respond(ctx context.Context, a *flowstore.Answer, reply *adapter.Reply) {
	if a.Failure != "" {
		reply.Refused = fmt.Errorf("nothing answers the request: %s", a.Failure)
		in.host.requests.end(a.Request, flowstore.RequestExpired, "")
		return
	}
	var m *adapter.Message
	err := guarded(func() (err error) {
		m, err = in.host.outgoing(ctx, a.Claimed(), in.response, in.responseMaps)
		return err
	})
	if err != nil {
		in.refuse(a.Request, err, reply)
		return
	}
	reply.Answer = m
	reply.End = func(isGiven bool) {
		outcome := flowstore.RequestExpired
		if isGiven {
			outcome = flowstore.RequestGiven
		}
		in.host.requests.end(a.Request, outcome, "")
	}
}

// refuse records that the pipeline refuses an answer. Where the database is away it stays, and is late.
func (in *intake) refuse(request int64, err error, reply *adapter.Reply) {
	reply.Refused = err
	failure, isFailure := errors.AsType[*adapter.Failure](err)
	_, isUnforeseen := errors.AsType[*panicked](err)
	switch {
	case isFailure:
		in.host.requests.end(request, flowstore.RequestRefused, pgdb.Storable(failure.Error()))
	case isUnforeseen:
		in.host.requests.end(request, flowstore.RequestRefused, pgdb.Storable(err.Error()))
	default:
		in.host.requests.end(request, flowstore.RequestExpired, "")
	}
}
