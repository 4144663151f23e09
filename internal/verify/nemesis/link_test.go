//go:build unix

package nemesis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is a proxy on the way to a daemon: what goes through it can be cut, delayed, slowed and truncated.
type link struct {
	proxy *toxiproxy.Proxy
}

// newLink opens a proxy before an address.
func newLink(t testing.TB, upstream string) *link {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{proxy: toxiproxy.NewProxy(server, "link to "+upstream, fmt.Sprint("127.0.0.1:", freePort(t)), upstream)}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

// address is where the link is entered.
func (l *link) address() string { return l.proxy.Listen }

// cut closes all connections and takes no new ones.
func (l *link) cut() { l.proxy.Stop() }

// toxic spoils one direction of the link: "upstream" towards the daemon, "downstream" away from it.
func (l *link) toxic(t testing.TB, kind, stream, attributes string) {
	t.Helper()
	text := fmt.Sprintf(`{"name": "%[1]s_%[2]s", "type": "%[1]s", "stream": "%[2]s", "attributes": {%[3]s}}`, kind, stream, attributes)
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
		t.Errorf("spoil %s with %s: %v", l.proxy.Name, text, err)
	}
}

// heal makes the link as good as new.
func (l *link) heal(t testing.TB) {
	t.Helper()
	l.proxy.Toxics.ResetToxics(context.Background())
	if err := l.proxy.Start(); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		t.Errorf("heal %s: %v", l.proxy.Name, err)
	}
}

// givenPorts are those that freePort has given to a server, which may not listen yet or be down for a while.
var givenPorts sync.Map

// freePort finds a port that nobody else gets: outside of the range from which the system takes those of clients, and each only once.
func freePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 12000 + rand.IntN(18000)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("there is no free port")
	return 0
}
