package demo

import (
	"context"
	"errors"

	"github.com/parley-broker/parley/internal/measure/site"
)

// link is the cable between an initiator and the target: a relay for the connections that the initiator's daemon opens,
// and one for those of the target's.
type link struct {
	toTarget, toInitiator *site.Relay
}

func newLink(ctx context.Context, initiator, target *site.Daemon) (*link, error) {
	toTarget, errTo := site.NewRelay(ctx, target.Address())
	toInitiator, errFrom := site.NewRelay(ctx, initiator.Address())
	l := &link{toTarget: toTarget, toInitiator: toInitiator}
	if err := errors.Join(errTo, errFrom); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// cut breaks what passes, both ways, and returns how many connections that were.
func (l *link) cut() int {
	broken := l.toTarget.Connections() + l.toInitiator.Connections()
	l.toTarget.Cut()
	l.toInitiator.Cut()
	return broken
}

func (l *link) restore() {
	l.toTarget.Restore()
	l.toInitiator.Restore()
}

func (l *link) state() LinkState {
	switch {
	case l.toTarget.IsCut():
		return LinkCut
	case l.toTarget.Connections()+l.toInitiator.Connections() > 0:
		return LinkUp
	}
	return LinkIdle
}

func (l *link) carriedBytes() int64 { return l.toTarget.Carried() + l.toInitiator.Carried() }

func (l *link) close() {
	for _, relay := range []*site.Relay{l.toTarget, l.toInitiator} {
		if relay != nil {
			relay.Close()
		}
	}
}
