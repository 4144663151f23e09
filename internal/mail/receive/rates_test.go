package receive // Sources and time are given, which nobody can from outside.

import (
	"net/netip"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
)

// taken counts how many of some attempts are taken.
func taken(attempts int, attempt func() bool) (n int) {
	for range attempts {
		if attempt() {
			n++
		}
	}
	return n
}

// A rate lets as many through at once as it has for a minute, and then what comes back with time; no more than that, however long nothing
// came. Refused messages cost nothing.
func TestRateFillsInAMinute(t *testing.T) {
	t.Parallel()
	source, other := sourceNumber(1), sourceNumber(2)
	for name, attempt := range map[string]func(a *accounts, now time.Time) bool{
		"messages of a source": func(a *accounts, now time.Time) bool {
			return a.message(&Connector{Name: "in", Limits: Limits{MessagesPerMinute: 60}}, source, "", 0, now)
		},
		"messages of a user": func(a *accounts, now time.Time) bool {
			return a.message(&Connector{Name: "in"}, source, "ann", 60, now)
		},
		"connections of a connector": func(a *accounts, now time.Time) bool {
			return a.connect(&Connector{Name: "in", Limits: Limits{ConnectionsPerMinute: 60}}, NodeLimits{}, source, now) == noLimit
		},
		"connections of a node": func(a *accounts, now time.Time) bool {
			return a.connect(&Connector{Name: "in"}, NodeLimits{ConnectionsPerMinute: 60}, source, now) == noLimit
		},
	} {
		a, now := newAccounts(), time.Unix(1e9, 0)
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 60}, {time.Second, 1}, {999 * time.Millisecond, 0}, {2 * time.Millisecond, 1}, {30 * time.Second, 30}, {time.Hour, 60}, {0, 0}} {
			now = now.Add(c.after)
			if got := taken(200, func() bool { return attempt(a, now) }); got != c.want {
				t.Errorf("%s: %v later %d are taken, want %d", name, c.after, got, c.want)
			}
		}
	}
	// A refusal of a connector takes nothing from the others of the node, and one of the node nothing from the connector.
	a, now := newAccounts(), time.Unix(1e9, 0)
	full, free := &Connector{Name: "full", Limits: Limits{ConnectionsPerMinute: 1}}, &Connector{Name: "free"}
	node := NodeLimits{ConnectionsPerMinute: 3}
	if got := taken(9, func() bool { return a.connect(full, node, source, now) == noLimit }); got != 1 {
		t.Errorf("a connector of one a minute takes %d", got)
	}
	if got := taken(9, func() bool { return a.connect(free, node, other, now) == noLimit }); got != 2 {
		t.Errorf("of three a minute others leave it %d", got)
	}
	late := &Connector{Name: "late", Limits: Limits{ConnectionsPerMinute: 1}}
	if a.connect(late, node, other, now) != nodeRate || a.connect(late, NodeLimits{}, other, now) != noLimit {
		t.Error("what the node refuses costs a connector its place")
	}
}

// A message that one rate refuses takes nothing from another: not that of a user from others at his address, nor that of an address from
// the user elsewhere.
func TestMessageThatIsRefusedCostsNoOtherItsPlace(t *testing.T) {
	t.Parallel()
	office, home, now := sourceNumber(1), sourceNumber(2), time.Unix(1e9, 0)
	a, connector := newAccounts(), &Connector{Name: "in", Limits: Limits{MessagesPerMinute: 3, RateOf: RateOfBoth}}
	for i, c := range []struct {
		user   string
		source netip.Prefix
		ofUser int
		want   bool
	}{
		{"ann", office, 1, true},
		{"ann", office, 1, false},
		{"ann", office, 1, false},
		{"bob", office, 0, true},
		{"eve", office, 0, true},
		{"bob", office, 0, false}, // The address has had its three.
		{"bob", office, 0, false},
		{"bob", home, 0, true},
		{"bob", home, 0, true},
		{"bob", home, 0, false},
	} {
		if got := a.message(connector, c.source, c.user, c.ofUser, now); got != c.want {
			t.Errorf("message %d, of %s from %s: %v", i, c.user, c.source, got)
		}
	}
}

// How many connections a source may have at a time: its number, or its share, whichever is less, and one at least.
func TestConnectionsOfASourceAreItsShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ connections, each, percent, want int }{
		{connections: 5000, each: 20, percent: 2, want: 20},
		{connections: 5000, percent: 2, want: 100},
		{connections: 900, each: 20, percent: 2, want: 18},
		{connections: 10, percent: 2, want: 1},
		{connections: 100, percent: 1, want: 1},
		{connections: 100, each: 1, percent: 50, want: 1},
		{connections: 100, percent: 99, want: 99},
		{connections: 100, percent: 100, want: 100},
		{connections: 100, want: 100},
		{each: 7, percent: 2, want: 7},
		{percent: 2, want: 200},
	} {
		a, now := newAccounts(), time.Unix(1e9, 0)
		connector := &Connector{Name: "in", Limits: Limits{Connections: c.connections, ConnectionsPerSource: c.each, PercentPerSource: c.percent}}
		if got := taken(200, func() bool { return a.connect(connector, NodeLimits{}, sourceNumber(1), now) == noLimit }); got != c.want {
			t.Errorf("%+v: %d connections are taken", c, got)
		}
		a.disconnect(connector, sourceNumber(1))
		if got := taken(2, func() bool { return a.connect(connector, NodeLimits{}, sourceNumber(1), now) == noLimit }); got != 1 && c.want < 200 {
			t.Errorf("%+v: for one that has ended %d are taken", c, got)
		}
	}
}

// A connection of which a proxy has spoken counts for the client, on the connector that serves him.
func TestConnectionOfAProxyCountsForItsClient(t *testing.T) {
	t.Parallel()
	a, now := newAccounts(), time.Unix(1e9, 0)
	proxies := &Connector{Name: "proxies", Limits: Limits{Connections: 1}}
	clients := &Connector{Name: "clients", Limits: Limits{ConnectionsPerSource: 1}}
	proxy, client := sourceNumber(1), sourceNumber(2)
	if a.connect(proxies, NodeLimits{}, proxy, now) != noLimit {
		t.Fatal("the proxy is refused")
	}
	a.move(proxies, proxy, clients, client)
	for _, c := range []struct {
		connector *Connector
		source    netip.Prefix
		want      connectionLimit
	}{{clients, client, sourceConnections}, {proxies, client, noLimit}, {proxies, proxy, connectorConnections}} {
		if got := a.connect(c.connector, NodeLimits{}, c.source, now); got != c.want {
			t.Errorf("%s from %s: %q, want %q", c.connector.Name, c.source, limitNames[got], limitNames[c.want])
		}
		if c.want == noLimit && a.connect(clients, NodeLimits{Connections: 2}, proxy, now) != nodeConnections {
			t.Error("a connection of a proxy counts not at all for the node, or twice")
		}
	}
}

// Other domains say for themselves who sends for them, and we say it for ours: users may send as their lists say.
func TestUserMaySendAsHisListSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		senders       []string
		local, domain string
		may           bool
	}{
		{[]string{"*"}, "ann", "anywhere.example", true},
		{[]string{"ann@example.org"}, "ANN", "Example.org", true},
		{[]string{"ann@example.org"}, "bob", "example.org", false},
		{[]string{"*.example.org"}, "bob", "a.example.org", true},
		{[]string{"*.example.org"}, "bob", "example.org", false},
		{[]string{"bob@example.org", "example.net"}, "x", "example.net", true},
		{nil, "x", "ours.example", true},
		{nil, "x", "default.example", true},
		{nil, "x", "example.net", false},
	} {
		configuration := &Configuration{
			AcceptedDomains: []string{"ours.example"}, DefaultDomain: "default.example", Users: map[string]User{"ann": {Senders: c.senders}},
		}
		if may := configuration.MaySendAs("ann", message.Address{Local: c.local, Domain: c.domain}); may != c.may {
			t.Errorf("with %q as %s@%s: %v", c.senders, c.local, c.domain, may)
		}
	}
}
