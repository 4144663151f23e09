package host

import (
	"sync"
	"time"
)

// The states of throttling, by the numbers under which operators of such engines know them (spec integration 13.1).
const (
	stateNone          = 0
	stateInProcess     = 3 // more messages are in hand than may be
	stateProcessMemory = 4
	stateSystemMemory  = 5
	stateDatabaseSize  = 6
	stateSessions      = 8
	stateDelivery      = 10 // a person has asked for it
	statePublishing    = 11
)

// The bounds of a delay (spec integration 13.2): by how much each poll changes it, and the most.
const (
	delayStep = 500 * time.Millisecond
	delayMost = 300 * time.Second
)

// inProcessPause is how long nothing is claimed at most when there is no room, until it is asked again.
const inProcessPause = time.Second

// throttled is the throttling of one direction.
type throttled struct {
	state    int
	since    time.Time
	delay    time.Duration
	override string
}

// throttle is how a host is throttled on this node.
type throttle struct {
	host *Host

	mu                   sync.Mutex
	publishing, delivery throttled
	correlation          throttled // of messages that something waits for, in both directions
	isFull               bool      // whether there was no room when it was last asked
}

// states are those that the resources ask for, the most severe first.
type states struct{ publishing, correlation, delivery []int }

func newThrottle(h *Host) *throttle {
	t := &throttle{host: h}
	t.publishing.since, t.correlation.since, t.delivery.since = time.Now(), time.Now(), time.Now()
	return t
}

// poll takes which states the resources ask for, and eases the delays.
func (t *throttle) poll(asked states) {
	override := hostSettings{Publishing: "auto", Correlation: "auto", Delivery: "auto"}
	if c := t.host.settings.Load(); c != nil {
		override = c.Host
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isFull && (len(asked.delivery) == 0 || asked.delivery[0] != stateProcessMemory) {
		asked.delivery = append([]int{stateInProcess}, asked.delivery...)
	}
	t.publishing.ease(asked.publishing, override.Publishing, statePublishing)
	t.correlation.ease(asked.correlation, override.Correlation, statePublishing)
	t.delivery.ease(asked.delivery, override.Delivery, stateDelivery)
	t.isFull = false
}

// ease sets the state, and lets the delay grow while there is one and shrink while there is none.
func (d *throttled) ease(states []int, override string, forced int) {
	state := stateNone
	if len(states) > 0 {
		state = states[0]
	}
	switch override {
	case "force":
		state = forced
	case "never":
		state = stateNone
	}
	if d.override = override; state != d.state {
		d.state, d.since = state, time.Now()
	}
	switch {
	case state == stateInProcess: // there is no room: that is delay enough
	case state != stateNone:
		d.delay = min(d.delay+max(delayStep, d.delay/4), delayMost)
	case d.delay > delayStep:
		d.delay /= 2
	default:
		d.delay = 0
	}
}

// publishingDelay is how long each intake is delayed now; that of correlations has a delay of its own.
func (t *throttle) publishingDelay(ofCorrelations bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ofCorrelations {
		return t.correlation.delay
	}
	return t.publishing.delay
}

// deliveryDelay is how long the next claim is delayed, of which there is so much room. A whole delay is waited for between two claims.
func (t *throttle) deliveryDelay(room int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room <= 0 {
		t.isFull = true
		return inProcessPause
	}
	return 0
}

// claimDelays is how long is paused after a claim that gave something: until all is claimed again, and until messages for instances are.
func (t *throttle) claimDelays() (all, forInstances time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.delivery.delay, min(t.delivery.delay, t.correlation.delay)
}

// read gives all directions.
func (t *throttle) read() (publishing, correlation, delivery throttled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.publishing, t.correlation, t.delivery
}
