package notifier

// WakeUp is a signal for one who waits. Notifications before the waiter takes it are merged into one signal.
type WakeUp chan struct{}

// NewWakeUp makes a wake-up that has no signal yet.
func NewWakeUp() WakeUp { return make(WakeUp, 1) }

// Notify wakes the waiter, or the next one. It never waits.
func (w WakeUp) Notify() {
	select {
	case w <- struct{}{}:
	default:
	}
}
