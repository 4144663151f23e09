package notifier

import "strconv"

// Subscription collects the notifications for one part of the process. Its methods are safe for concurrent use.
type Subscription struct {
	// IDs brings the ids of queues and destinations that have got messages: those that the subscription owns, and those that nobody owns.
	// It is nil for a subscription without ids.
	IDs <-chan int32
	// Missed has a signal when notifications were lost, or may have been before listening began.
	Missed WakeUp

	notifier *Notifier
	ids      chan int32
	named    map[string]WakeUp // held by mu of the notifier
}

// Subscribe begins a subscription, in which so many ids may wait to be taken; 0 is for one that is notified by On alone. Close it.
func (n *Notifier) Subscribe(idsMax int) *Subscription {
	s := &Subscription{Missed: NewWakeUp(), notifier: n, named: map[string]WakeUp{}}
	if idsMax > 0 {
		s.ids = make(chan int32, idsMax)
		s.IDs = s.ids
	}
	// Earlier notifications went to others.
	s.Missed.Notify()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscriptions[s] = true
	return s
}

// Close ends the subscription; what it owned nobody owns.
func (s *Subscription) Close() {
	n := s.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.subscriptions, s)
	for id, owner := range n.owners {
		if owner == s {
			delete(n.owners, id)
		}
	}
}

// On has a payload notify w, and gives w back.
func (s *Subscription) On(payload string, w WakeUp) WakeUp {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	s.named[payload] = w
	return w
}

// Off ends what On began.
func (s *Subscription) Off(payload string) {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	delete(s.named, payload)
}

// Own keeps an id from all other subscriptions.
func (s *Subscription) Own(id int32) {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	s.notifier.owners[id] = s
}

// Disown ends what Own began.
func (s *Subscription) Disown(id int32) {
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if s.notifier.owners[id] == s {
		delete(s.notifier.owners, id)
	}
}

// missed wakes everybody: listening begins.
func (n *Notifier) missed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subscriptions {
		s.Missed.Notify()
	}
}

// notify wakes whom a payload is for. Anybody may notify on the channel, so a payload may be anything.
func (n *Notifier) notify(payload string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	isNamed := false
	for s := range n.subscriptions {
		if w := s.named[payload]; w != nil {
			w.Notify()
			isNamed = true
		}
	}
	id, err := strconv.ParseInt(payload, 10, 32)
	if isNamed || err != nil || id < 1 {
		return
	}
	owner := n.owners[int32(id)]
	for s := range n.subscriptions {
		if s.ids == nil || owner != nil && owner != s {
			continue
		}
		select {
		case s.ids <- int32(id):
		default:
			s.Missed.Notify()
		}
	}
}
