package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
)

// playPhase sends for its share of the time, and waits until all is received.
func (r *serversExecution) playPhase(ctx context.Context, p flowPhase) (Phase, error) {
	r.observing.Lock()
	r.phase = p
	r.observing.Unlock()
	var senders []*sender
	for _, i := range r.initiators[:p.initiators] {
		senders = append(senders, i.senders...)
	}
	share := r.config.Duration / time.Duration(len(r.config.plan()))
	payload, err := r.stage.playPhase(ctx, senders, p.bytes, func(ctx context.Context) error { return r.passTime(ctx, p, share) })
	if err != nil {
		return Phase{}, err
	}
	phase := Phase{Payload: payload, Initiators: p.initiators, IsSpread: p.spread, HasCut: p.cut, label: p.label()}
	for _, s := range r.watch.since(payload.begun) {
		phase.WaitingMax = max(phase.WaitingMax, s.waiting())
	}
	if p.cut {
		r.measureCut()
	}
	return phase, nil
}

// passTime waits, with the link of the first initiator cut in the middle third if the phase has it so.
func (r *serversExecution) passTime(ctx context.Context, p flowPhase, share time.Duration) error {
	if !p.cut {
		return backoff.Wait(ctx, share)
	}
	if err := backoff.Wait(ctx, share/3); err != nil {
		return err
	}
	one := r.initiators[0]
	at, err := r.now(ctx)
	if err != nil {
		return err
	}
	r.cut = Cut{Initiator: one.name, AtSeconds: at.Sub(r.start).Seconds(), ConnectionsBroken: one.link.cut()}
	r.notice(fmt.Sprintf("The link of %s was cut (%d connections broke). Its senders go on; what they send waits.",
		one.name, r.cut.ConnectionsBroken))
	err = backoff.Wait(ctx, share/3)
	one.link.restore()
	if err != nil {
		return err
	}
	if at, err = r.now(ctx); err != nil {
		return err
	}
	r.cut.Seconds = at.Sub(r.start).Seconds() - r.cut.AtSeconds
	r.notice(fmt.Sprintf("The link of %s is whole again.", one.name))
	return backoff.Wait(ctx, share/3)
}

// measureCut reads from the samples what waited behind the cut, and how long until it had gone.
func (r *serversExecution) measureCut() {
	samples := r.watch.since(r.cut.AtSeconds)
	for _, s := range samples {
		r.cut.WaitingMax = max(r.cut.WaitingMax, s.Waiting[0])
	}
	r.cut.CaughtUpSeconds = caughtUpSeconds(samples, r.cut.AtSeconds+r.cut.Seconds, r.cut.WaitingMax)
}

// caughtUpSeconds gives the time from the restoration of a link to the first sample, after the most that waited since, in which a
// twentieth of the most or less waits: senders go on meanwhile, so some always does. Without such a sample it is the time to the last.
func caughtUpSeconds(samples []FlowSample, restored float64, most int64) float64 {
	var since []FlowSample
	for _, s := range samples {
		if s.Seconds >= restored {
			since = append(since, s)
		}
	}
	if len(since) == 0 {
		return 0
	}
	peak := 0
	for i, s := range since {
		if s.Waiting[0] > since[peak].Waiting[0] {
			peak = i
		}
	}
	for _, s := range since[peak:] {
		if s.Waiting[0] <= most/20 {
			return s.Seconds - restored
		}
	}
	return since[len(since)-1].Seconds - restored
}

// openDialogs begins the conversations of an initiator: those that stand side by side, and one in 150 of many.
func (i *initiator) openDialogs(ctx context.Context) (err error) {
	if i.handles, err = openDialogs(ctx, i.control, 1, i.conversations); err != nil {
		return err
	}
	deal(i.handles, i.first, i.senders)
	many, err := openDialogs(ctx, i.control, 1+i.conversations, i.conversations*idleBetween)
	if err != nil {
		return err
	}
	for number, handle := range many {
		if number%idleBetween == 0 {
			i.spread = append(i.spread, handle)
		} else {
			i.idle = append(i.idle, handle)
		}
	}
	return nil
}

// endDialogs lets the senders end all conversations and waits until the readers have ended the other sides.
func (r *serversExecution) endDialogs(ctx context.Context) error {
	err := each(ctx, r.initiators, func(ctx context.Context, i *initiator) error {
		if _, err := i.control.Exec(ctx, "select parley.end_conversation(h) from unnest($1::uuid[]) as h", i.idle); err != nil {
			return fmt.Errorf("end the idle conversations: %w", err)
		}
		used := append(append([]parley.UUID{}, i.handles...), i.spread...)
		return each(ctx, i.senders, func(ctx context.Context, s *sender) error {
			var mine []parley.UUID
			for number, handle := range used {
				if i.senders[number%len(i.senders)] == s {
					mine = append(mine, handle)
				}
			}
			return endDialogs(ctx, s.conn, mine)
		})
	})
	if err != nil {
		return err
	}
	r.notice("All messages are sent; the senders have ended their conversations.")
	return r.await(ctx, func() (now standing, err error) {
		for _, h := range r.hosts() {
			open, err := countOpen(ctx, h.control)
			if err != nil {
				return now, fmt.Errorf("%s: %w", h.name, err)
			}
			now.left += open
		}
		return now, nil
	})
}
