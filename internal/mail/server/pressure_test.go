package server

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// active is a governor that takes some actions.
type active []string

func (a *active) takes(action string) bool { return slices.Contains(*a, action) }

func TestMailFromIsDelayedStepByStep(t *testing.T) {
	t.Parallel()
	taken := active{actTarpit}
	p := newPressure(taken.takes)
	requireDelays := func(want ...float64) {
		t.Helper()
		for i, seconds := range want {
			p.ease()
			if got := p.Pressure(receive.OwnNode, true).Delay; got.Seconds() != seconds {
				t.Errorf("delay %d is %s, want %g s", i, got, seconds)
			}
		}
	}
	requireDelays(10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 55)
	taken = nil
	requireDelays(50, 45, 40, 35, 30, 25, 20, 15, 10, 0, 0)
	taken = active{actTarpit}
	requireDelays(10)
}

func TestPressureRefusesTheFarthestFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		taken                  active
		anonymous, users, node bool
		ours                   bool // whether senders in our own domains are refused
	}{
		{nil, false, false, false, false},
		{active{actTarpit, actRefuseFolders}, false, false, false, false},
		{active{actRefuseAnonymous}, true, false, false, false},
		{active{actRefuseAnonymous, actRefuseUsers}, true, true, false, false},
		{active{actRefuseNodes}, true, true, true, true},
	} {
		p := newPressure(c.taken.takes)
		got := []bool{
			p.Pressure(receive.AnonymousPeer, false).IsRefused, p.Pressure(receive.UserPeer, false).IsRefused,
			p.Pressure(receive.OwnNode, false).IsRefused, p.Pressure(receive.AnonymousPeer, true).IsRefused,
		}
		if want := []bool{c.anonymous, c.users, c.node, c.ours}; !slices.Equal(got, want) {
			t.Errorf("%v: refused are %v, want %v", c.taken, got, want)
		}
	}
}
