//go:build linux

package nemesis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// network is two hosts with a router between them, as namespaces of this machine. Packets that the router does not pass on are lost without
// a word, as in a network that is broken somewhere; a proxy would close the connections.
type network struct {
	t      testing.TB
	router string
	hosts  [2]host
}

// newNetwork makes a network, or skips the test where the machine does not allow that.
func newNetwork(t testing.TB) *network {
	t.Helper()
	name := fmt.Sprintf("parley-%06x", rand.IntN(1<<24))
	n := &network{t: t, router: name + "-r"}
	if out, err := exec.Command("ip", "netns", "add", n.router).CombinedOutput(); err != nil {
		t.Skipf("network namespaces cannot be made here: %v %s", err, out)
	}
	t.Cleanup(func() { n.ip("netns", "del", n.router) })
	// The range that is reserved for tests of network devices (RFC 2544).
	block := rand.IntN(256)
	for i := range n.hosts {
		namespace := fmt.Sprint(name, "-", i)
		gateway, address := fmt.Sprintf("198.18.%d.%d", block, 4*i+1), fmt.Sprintf("198.18.%d.%d", block, 4*i+2)
		n.ip("netns", "add", namespace)
		t.Cleanup(func() { n.ip("netns", "del", namespace) })
		n.ip("link", "add", "name", "eth0", "netns", namespace, "type", "veth", "peer", "name", fmt.Sprint("eth", i), "netns", n.router)
		n.ip("-n", namespace, "link", "set", "lo", "up")
		n.ip("-n", namespace, "link", "set", "eth0", "up")
		n.ip("-n", n.router, "link", "set", fmt.Sprint("eth", i), "up")
		n.ip("-n", namespace, "addr", "add", address+"/30", "dev", "eth0")
		n.ip("-n", n.router, "addr", "add", gateway+"/30", "dev", fmt.Sprint("eth", i))
		n.ip("-n", namespace, "route", "add", "default", "via", gateway)
		n.hosts[i] = host{way: []string{"ip", "netns", "exec", namespace}, address: address}
	}
	n.forward(true)
	return n
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Errorf("ip %s: %v %s", strings.Join(args, " "), err, out)
	}
}

// forward lets the router pass packets on, or not.
func (n *network) forward(does bool) {
	n.t.Helper()
	setting := "net.ipv4.ip_forward=0"
	if does {
		setting = "net.ipv4.ip_forward=1"
	}
	n.ip("netns", "exec", n.router, "sysctl", "-qw", setting)
}

// lose makes the router lose what goes to a host, in that direction only, or stop doing so.
func (n *network) lose(to int, does bool) {
	n.t.Helper()
	verb := "del"
	if does {
		verb = "add"
	}
	n.ip("-n", n.router, "route", verb, "blackhole", n.hosts[to].address+"/32")
}

// Keeps S1 to S8, L1: daemons on hosts of their own find out that nothing arrives any more, though nobody closes a connection.
func TestHostsThatLoseSightOfEachOtherLoseNothingElse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits until dead peers are found, twice")
	}
	network := newNetwork(t)
	program(t)
	var servers [2]*server
	var daemons [2]*daemon
	var parties []*party
	keys := newTrust(t)
	for i, name := range []string{"a", "b"} {
		servers[i] = newServer(t, "server_"+name)
		servers[i].createDatabase(t, name)
		daemons[i] = keys.daemonAt(t, network.hosts[i], "daemon "+name, nil, servers[i].DSN(name))
		parties = append(parties, &party{name: name, at: func() string { return servers[i].DSN(name) }})
	}
	for i, p := range parties {
		conn := connect(t, p.dsn())
		p.openServices(t, conn)
		keys.settle(t, conn, daemons[i].name)
		_ = conn.Close(context.Background())
		p.route(t, parties[1-i], "tcp://"+daemons[1-i].address())
	}
	logged := func(what string) int { return strings.Count(daemons[0].log.String(), what) }
	const connected, closed = "msg=connected", `msg="connection closed"`
	work := newWorkload(t, 1, parties)
	stop := work.run(1)
	for n, fault := range []struct {
		name string
		do   func(does bool)
	}{
		{"both ways", func(does bool) { network.forward(!does) }},
		{"one way", func(does bool) { network.lose(1, does) }},
	} {
		await(t, "daemon a is connected, before "+fault.name, func() bool { return logged(connected) > n })
		pause(time.Second)
		fault.do(true)
		await(t, "daemon a finds out that nothing arrives, "+fault.name, func() bool { return logged(closed) > n })
		fault.do(false)
	}
	stop()
	work.drain()
	servers[1].createDatabase(t, "court")
	bench := connect(t, servers[1].DSN("court"))
	defer bench.Close(context.Background())
	h := work.judge(t, bench)
	t.Logf("%d messages sent, %d received, quiet after %v; %s", len(h.Sent), len(h.Received), (h.Quiet - h.Healed).Round(time.Millisecond),
		counts(work.done))
}
