package receive

import (
	"net/netip"
	"sync"
	"time"
)

// sourceOf gives the unit that counts as one source: an address of IPv4, or a /64 of IPv6.
func sourceOf(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // bits fit the address
	return prefix
}

// sourceKey is a source on a connector, or a user; with neither connector nor source it is the user wherever he comes from.
type sourceKey struct {
	connector string
	source    netip.Prefix
	user      string
}

// accounts counts connections, messages and failures of sources on this node. Time is passed in.
type accounts struct {
	mu          sync.Mutex
	open        int
	byConnector map[string]int
	bySource    map[sourceKey]int
	connections map[string]*window    // per connector
	node        window                // connections over all connectors
	messages    map[sourceKey]*window // per source on a connector
	failures    failures
	swept       time.Time
}

func newAccounts() *accounts {
	return &accounts{
		byConnector: map[string]int{}, bySource: map[sourceKey]int{}, connections: map[string]*window{},
		messages: map[sourceKey]*window{}, failures: newFailures(),
	}
}

// window is a token bucket that fills in a minute.
type window struct {
	tokens float64
	at     time.Time
}

// has fills the bucket for so many tokens a minute, and reports whether there is one.
func (w *window) has(perMinute int, now time.Time) bool {
	full := float64(perMinute)
	if w.at.IsZero() {
		w.tokens = full
	} else {
		w.tokens = min(full, w.tokens+full*now.Sub(w.at).Minutes())
	}
	w.at = now
	return w.tokens >= 1
}

// take takes one of so many tokens a minute.
func (w *window) take(perMinute int, now time.Time) bool {
	if !w.has(perMinute, now) {
		return false
	}
	w.tokens--
	return true
}

// connect counts a connection, or says which limit refuses it. One that is refused costs no other its place in a rate.
func (a *accounts) connect(c *Connector, node NodeLimits, source netip.Prefix, now time.Time) connectionLimit {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep(now)
	key, l := sourceKey{connector: c.Name, source: source}, c.Limits
	perSource := l.ConnectionsPerSource
	if share := l.Connections * l.PercentPerSource / 100; l.Connections > 0 && l.PercentPerSource > 0 && l.PercentPerSource < 100 {
		if share = max(share, 1); perSource == 0 || share < perSource {
			perSource = share
		}
	}
	ofConnector := bucket(a.connections, c.Name)
	switch {
	case node.Connections > 0 && a.open >= node.Connections:
		return nodeConnections
	case l.Connections > 0 && a.byConnector[c.Name] >= l.Connections:
		return connectorConnections
	case perSource > 0 && a.bySource[key] >= perSource:
		return sourceConnections
	case l.ConnectionsPerMinute > 0 && !ofConnector.has(l.ConnectionsPerMinute, now):
		return connectorRate
	case node.ConnectionsPerMinute > 0 && !a.node.take(node.ConnectionsPerMinute, now):
		return nodeRate
	}
	if l.ConnectionsPerMinute > 0 {
		ofConnector.tokens--
	}
	a.open++
	a.byConnector[c.Name]++
	a.bySource[key]++
	return noLimit
}

func bucket[K comparable](of map[K]*window, key K) *window {
	if of[key] == nil {
		of[key] = &window{}
	}
	return of[key]
}

// disconnect takes back what connect counted.
func (a *accounts) disconnect(c *Connector, source netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := sourceKey{connector: c.Name, source: source}
	a.open--
	a.byConnector[c.Name]--
	if a.byConnector[c.Name] == 0 {
		delete(a.byConnector, c.Name)
	}
	a.bySource[key]--
	if a.bySource[key] == 0 {
		delete(a.bySource, key)
	}
}

// message counts a message of a source and of a user, "" for nobody, and reports whether the rates allow it. One that is refused costs no
// other its place in a rate: a user who sends too much takes nothing from others at his address.
func (a *accounts) message(c *Connector, source netip.Prefix, user string, ofUser int, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked, isAllowed := make([]*window, 0, 3), true
	ask := func(key sourceKey, perMinute int) {
		if perMinute > 0 {
			rate := bucket(a.messages, key)
			isAllowed = rate.has(perMinute, now) && isAllowed
			asked = append(asked, rate)
		}
	}
	if c.Limits.RateOf != RateOfUser || user == "" {
		ask(sourceKey{connector: c.Name, source: source}, c.Limits.MessagesPerMinute)
	}
	if c.Limits.RateOf != RateOfAddress && user != "" {
		ask(sourceKey{connector: c.Name, user: user}, c.Limits.MessagesPerMinute)
	}
	if user != "" {
		ask(sourceKey{user: user}, ofUser)
	}
	if isAllowed {
		for _, rate := range asked {
			rate.tokens--
		}
	}
	return isAllowed
}

// MaySubmit counts a message of a user beside SMTP, and reports whether his rate allows it; 0 means no limit.
func (s *Server) MaySubmit(user string, perMinute int) bool {
	return s.accounts.message(&Connector{}, netip.Prefix{}, user, perMinute, time.Now())
}

// sweep forgets what no limit depends on any more, so that the maps do not grow with every source that ever came. The caller holds mu.
func (a *accounts) sweep(now time.Time) {
	if now.Sub(a.swept) < time.Minute {
		return
	}
	a.swept = now
	for key, w := range a.messages {
		if now.Sub(w.at) > time.Minute {
			delete(a.messages, key)
		}
	}
	a.failures.sweep(now)
}

// move counts a connection under another source, of which a proxy has spoken.
func (a *accounts) move(from *Connector, fromSource netip.Prefix, to *Connector, toSource netip.Prefix) {
	a.disconnect(from, fromSource)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open++
	a.byConnector[to.Name]++
	a.bySource[sourceKey{connector: to.Name, source: toSource}]++
}
