package transport

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// HostOf names the host at the other end of a socket, for limits: an IPv4 address, or the /64 network of an IPv6 address, of which one host
// has as many addresses as it likes.
func HostOf(address net.Addr) string {
	if address == nil {
		return ""
	}
	endpoint, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	ip := endpoint.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}

const (
	// logPause is how long further lines of the same kind and host are withheld.
	logPause = time.Minute
	// loggedMost bounds the lines of that time, and the memory.
	loggedMost = 1000
)

// LogLimit keeps hosts that connect again and again from filling the log: it lets one line pass a minute for each kind of
// trouble and each host, and a thousand altogether. Its zero value is ready; it is safe for concurrent use.
type LogLimit struct {
	mu   sync.Mutex
	last map[logKey]logged
}

type (
	logKey struct{ kind, host string }
	logged struct {
		at       time.Time
		withheld int
	}
)

// Allow reports whether a line may be written now, and how many were withheld since the last one of its kind and host.
func (l *LogLimit) Allow(kind, host string, now time.Time) (withheld int, isAllowed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := logKey{kind, host}
	entry, isKnown := l.last[key]
	if isKnown && now.Sub(entry.at) < logPause {
		entry.withheld++
		l.last[key] = entry
		return 0, false
	}
	if !isKnown && len(l.last) >= loggedMost {
		for k, e := range l.last {
			if now.Sub(e.at) >= logPause {
				delete(l.last, k)
			}
		}
		if len(l.last) >= loggedMost {
			return 0, false
		}
	}
	if l.last == nil {
		l.last = map[logKey]logged{}
	}
	l.last[key] = logged{at: now}
	return entry.withheld, true
}

// HostCount counts what hosts have open, with a limit for each. Its zero value is ready; it is safe for concurrent use.
type HostCount struct {
	mu   sync.Mutex
	open map[string]int
}

// Enter counts one more of a host, unless it has so many already.
func (c *HostCount) Enter(host string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[host] >= most {
		return false
	}
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[host]++
	return true
}

// Leave counts one less.
func (c *HostCount) Leave(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[host]--
	if c.open[host] <= 0 {
		delete(c.open, host)
	}
}
