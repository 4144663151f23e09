package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// resubmit puts messages of a lease, which an operator has resubmitted, through the receive pipeline of their location again.
func (ps *ports) resubmit(l *lease) {
	ps.mu.Lock()
	ps.inHand += len(l.items)
	ps.mu.Unlock()
	ps.work.Go(func() {
		ctx, cancel := context.WithCancelCause(l.ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-ps.ended:
				cancel(errStopping)
			case <-ctx.Done():
			}
		}()
		for i := range l.items {
			err := guarded(func() error { return ps.host.resubmitOne(ctx, l, &l.items[i]) })
			switch {
			case err == nil:
				ps.host.leases.ended(l.number, 1)
			case pgdb.SQLState(err) == "PF007":
				ps.host.leases.lose(l.number)
			default:
				ps.host.logger.Warn("a message could not be resubmitted; it is tried again", "message", l.items[i].Message, "error", err)
				if !errors.Is(context.Cause(ctx), errLeaseGone) {
					ps.host.release(l.number, []int64{l.items[i].Item})
				}
			}
			ps.left("", 1, true)
		}
	})
}

// errNoMessage keeps a message from vanishing.
var errNoMessage = errors.New("the pipeline made no message of the body; resubmit one that has a message")

// resubmitOne puts a message through the pipeline, and publishes what comes of it in its place. A message that fails again is suspended.
func (h *Host) resubmitOne(ctx context.Context, l *lease, c *flowstore.Claimed) error {
	in, err := h.intakeOf(c.Location)
	if err != nil {
		return h.suspendResubmitted(ctx, l, c, "receive.pipeline", err)
	}
	input, err := h.resubmittedInput(c)
	if err != nil {
		return err
	}
	t := newTake(in, nil, []adapter.Input{input})
	defer t.abandon()
	p := t.inputs[0]
	p.lease, p.item = l.number, c.Item
	if err := t.process(ctx); err != nil {
		return err
	}
	if p.failure == nil && p.interchange == 0 && len(p.drafts) == 0 {
		p.failure = &adapter.Failure{Code: "receive.disassemble", Err: errNoMessage, Permanent: true}
	}
	if p.failure == nil {
		if t.tx == nil {
			if t.tx, err = h.pool.Begin(ctx); err != nil {
				return err
			}
			t.isOwn = true
		}
		if err := t.commit(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	if p.failure != nil {
		d := draft{}
		d.fail(p.failure)
		t.abandon()
		return h.suspendResubmitted(ctx, l, c, d.failureCode, textError(d.failureError))
	}
	h.counts.resubmitted.Add(1)
	return nil
}

func (h *Host) suspendResubmitted(ctx context.Context, l *lease, c *flowstore.Claimed, code string, cause error) error {
	_, err := h.fail(ctx, l.number, []int64{c.Item}, flowstore.Failure{Code: code, Error: cause.Error()}, true)
	return err
}

// intakeOf makes what a location needs to put a message through its pipeline; it may be disabled.
func (h *Host) intakeOf(name string) (*intake, error) {
	c := h.settings.Load()
	l, isThere := c.Locations[name]
	if !isThere {
		return nil, fmt.Errorf("there is no receive location %q any more", name)
	}
	definition, err := c.definition(l.Pipeline)
	if err != nil {
		return nil, err
	}
	compiled, err := pipeline.CompileReceive(definition, c.types, l.PipelineSettings)
	if err != nil {
		return nil, err
	}
	maps, err := h.mapsOf(c, c.mapsOf(l), codeReceiveMap)
	if err != nil {
		return nil, err
	}
	return newIntake(h, name, l, compiled, maps), nil
}

// resubmittedInput gives a message of the box as an input, with the properties that hosts may set.
func (h *Host) resubmittedInput(c *flowstore.Claimed) (adapter.Input, error) {
	promoted, err := properties(c.Promoted)
	if err != nil {
		return adapter.Input{}, err
	}
	written, err := properties(c.Written)
	if err != nil {
		return adapter.Input{}, err
	}
	maps.DeleteFunc(promoted, isOfEngine)
	maps.DeleteFunc(written, isOfEngine)
	source := h.stored(c, promoted, written)
	return adapter.Input{
		Size: c.Size, ContentType: source.ContentType, Charset: source.Charset, MessageType: source.Type,
		Promoted: source.Promoted, Written: source.Written,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return h.openStored(ctx, c), nil },
	}, nil
}

// isOfEngine reports whether a property is one of the engine that follows from the location, the message or its failure.
func isOfEngine(name, _ string) bool {
	return !strings.Contains(name, "#") && name != "SourceFileName" || strings.HasPrefix(name, "ErrorReport.")
}
