package console

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// How many logins may fail from one address, and as one role from all addresses, before they have to wait, and how long; logins under
// way at once.
const (
	failuresMost       = 10
	failuresOfRoleMost = 50
	failurePause       = time.Minute
	countsMost         = 10_000
	loginsAtOnce       = 4
)

// attempts counts logins that failed, by address and by role. An attempt counts from its begin, so that many at once are bounded too,
// and is taken back when it succeeds. A success forgives no other: one password that is known gives no more attempts at another.
type attempts struct {
	mu     sync.Mutex
	failed map[string]failures
	places chan struct{}
	clock  func() time.Time
}

type failures struct {
	count int
	last  time.Time
}

func newAttempts() *attempts {
	return &attempts{failed: map[string]failures{}, places: make(chan struct{}, loginsAtOnce), clock: time.Now}
}

// begin counts an attempt of an address as a role, unless one of them has to wait.
func (a *attempts) begin(address, role string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock()
	for key, most := range countedAs(address, role) {
		if f := a.failed[key]; f.count >= most && now.Sub(f.last) <= failurePause {
			return false
		}
	}
	a.makeRoom(now)
	for key := range countedAs(address, role) {
		f := a.failed[key]
		if now.Sub(f.last) > failurePause {
			f.count = 0
		}
		a.failed[key] = failures{count: f.count + 1, last: now}
	}
	return true
}

// succeed takes back an attempt that has begun.
func (a *attempts) succeed(address, role string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range countedAs(address, role) {
		f := a.failed[key]
		f.count--
		a.failed[key] = f
		if f.count <= 0 {
			delete(a.failed, key)
		}
	}
}

// makeRoom forgets those whose pause is over when there are too many, and then all.
func (a *attempts) makeRoom(now time.Time) {
	if len(a.failed) < countsMost {
		return
	}
	for one, f := range a.failed {
		if now.Sub(f.last) > failurePause {
			delete(a.failed, one)
		}
	}
	if len(a.failed) >= countsMost {
		clear(a.failed)
	}
}

// countedAs names what an attempt counts for, each with how many may fail.
func countedAs(address, role string) map[string]int {
	return map[string]int{"address " + networkOf(address): failuresMost, "role " + role: failuresOfRoleMost}
}

// networkOf gives the network that an address stands for: who has one address of IPv6 has all of its /64.
func networkOf(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil || parsed.Unmap().Is4() {
		return address
	}
	network, err := parsed.Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}

// addressOf is the address that a request comes from, without its port. Behind a proxy it is the one that the proxy has added last to
// the header; without a proxy no header is believed.
func (c *Console) addressOf(request *http.Request) string {
	host, _, err := net.SplitHostPort(request.RemoteAddr)
	if err != nil {
		host = request.RemoteAddr
	}
	if !c.config.IsBehindProxy {
		return host
	}
	all := strings.Split(strings.Join(request.Header.Values("X-Forwarded-For"), ","), ",")
	return cmp.Or(strings.TrimSpace(all[len(all)-1]), host)
}
