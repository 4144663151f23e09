package server

import (
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/mail/receive"
)

// The actions under pressure, by their names in the database: what is not done, or done, while resources are short (spec mail 14.3).
const (
	actTarpit          = "tarpit"
	actRefuseAnonymous = "refuse anonymous senders"
	actRefuseUsers     = "refuse users"
	actRefuseNodes     = "refuse own nodes"
	actRefuseFolders   = "refuse folders and HTTP"
	actPauseResubmit   = "pause resubmission"
	actDehydrate       = "dehydrate bodies"
	actFlushCaches     = "flush caches"
	actStopSending     = "stop sending"
)

// tarpit is how MAIL FROM is delayed: the first delay, by how much each poll changes it, and the most.
type tarpit struct{ first, step, most time.Duration }

// defaultTarpit is that of the specification (spec mail 14.3).
var defaultTarpit = tarpit{first: 10 * time.Second, step: 5 * time.Second, most: 55 * time.Second}

// pressure decides which work the parts of mail do while resources are short. Any goroutine may ask.
type pressure struct {
	// isActive reports whether an action is to be taken now; nil means that none is.
	isActive func(action string) bool
	tarpit   tarpit
	// delay is that of MAIL FROM now.
	delay atomic.Pointer[time.Duration]
	// delayed and refused count senders at MAIL FROM.
	delayed atomic.Int64
	refused [receive.OwnNode + 1]atomic.Int64
}

func newPressure(isActive func(action string) bool) *pressure {
	return &pressure{isActive: isActive, tarpit: defaultTarpit}
}

var _ receive.Governor = (*pressure)(nil)

func (p *pressure) takes(action string) bool { return p.isActive != nil && p.isActive(action) }

// delayNow is how long MAIL FROM is delayed.
func (p *pressure) delayNow() time.Duration {
	if delay := p.delay.Load(); delay != nil {
		return *delay
	}
	return 0
}

// Pressure is the decision that a peer of a class meets at MAIL FROM. While our own nodes are refused everybody is; until then senders in
// our own domains pass, wherever they come from.
func (p *pressure) Pressure(class receive.PeerClass, isOurSender bool) receive.Pressure {
	met := receive.Pressure{Delay: p.delayNow()}
	switch {
	case p.takes(actRefuseNodes):
		met.IsRefused = true
	case isOurSender:
	case class == receive.AnonymousPeer:
		met.IsRefused = p.takes(actRefuseAnonymous)
	case class == receive.UserPeer:
		met.IsRefused = p.takes(actRefuseUsers)
	}
	if met.Delay > 0 {
		p.delayed.Add(1)
	}
	if met.IsRefused {
		p.refused[class].Add(1)
	}
	return met
}

// refusesFolders reports whether the pickup folder, the replay folder and HTTP take nothing: what they have waits.
func (p *pressure) refusesFolders() bool { return p.takes(actRefuseFolders) }

// pausesResubmission reports whether nothing that waits in a queue is categorized anew.
func (p *pressure) pausesResubmission() bool { return p.takes(actPauseResubmit) }

// stopsSending reports whether nothing is claimed for next hops; what is under way is finished.
func (p *pressure) stopsSending() bool { return p.takes(actStopSending) }

// ease sets the delay of MAIL FROM after a poll: it grows with each under pressure and falls with each that is not, step by step.
func (p *pressure) ease() {
	delay := p.delayNow()
	switch isTarpit := p.takes(actTarpit); {
	case isTarpit && delay == 0:
		delay = p.tarpit.first
	case isTarpit:
		delay = min(delay+p.tarpit.step, p.tarpit.most)
	case delay <= p.tarpit.first:
		delay = 0
	default:
		delay -= p.tarpit.step
	}
	p.delay.Store(&delay)
}
