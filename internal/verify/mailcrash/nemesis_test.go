//go:build unix

package mailcrash_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

// nemesis kills what mail transport is made of, and remembers when.
type nemesis struct {
	hub    *hub
	random *rand.Rand
	// done counts what was done, by name.
	done map[string]int

	mu     sync.Mutex
	faults mailcheck.Faults
}

// torment does one harm after the other for a while, and then has everything run again. Intervals are up to longest.
func (n *nemesis) torment(t testing.TB, duration, longest time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(duration); time.Now().Before(deadline) && !t.Failed(); {
		n.hub.startAll(t)
		pause(time.Duration(n.random.Int64N(int64(longest))))
		switch n.random.IntN(10) {
		case 0, 1, 2, 3:
			n.killDaemon(t, longest)
		case 4:
			n.count("daemons stopped")
			d := n.anyDaemon()
			d.end(syscall.SIGTERM)
			d.start(t)
		case 5, 6:
			n.killBackend(t)
		case 7:
			n.count("servers crashed")
			n.away(t, func() bool { return n.hub.crash() })
		case 8:
			n.count("sessions terminated")
			for _, pid := range n.some(n.hub.backends(), 5) {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		case 9:
			n.closeHost(t, longest)
		}
	}
}

// startAll starts the daemons that do not run: one that finds no database when it starts has ended by itself.
func (h *hub) startAll(t testing.TB) {
	t.Helper()
	for _, d := range h.daemons {
		d.start(t)
	}
}

func (n *nemesis) count(what string) { n.done[what]++ }

func (n *nemesis) anyDaemon() *daemon { return n.hub.daemons[n.random.IntN(len(n.hub.daemons))] }

func (n *nemesis) some(pids []int, most int) []int {
	n.random.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	return pids[:min(most, len(pids))]
}

// killDaemon kills one or all daemons, and starts them again after a while.
func (n *nemesis) killDaemon(t testing.TB, longest time.Duration) {
	t.Helper()
	victims := []*daemon{n.anyDaemon()}
	if n.random.IntN(6) == 0 {
		victims = n.hub.daemons
	}
	for _, d := range victims {
		if d.lives() {
			n.count("daemons killed")
		}
		n.mu.Lock()
		n.faults.Killed = append(n.faults.Killed, time.Now())
		n.mu.Unlock()
		d.end(syscall.SIGKILL)
	}
	pause(time.Duration(n.random.Int64N(int64(longest))))
	for _, d := range victims {
		d.start(t)
	}
}

// killBackend kills a session's process as the kernel would when memory runs out. The server restarts itself.
func (n *nemesis) killBackend(t testing.TB) {
	t.Helper()
	for _, pid := range n.some(n.hub.backends(), 1) {
		n.count("backends killed")
		n.away(t, func() bool { return syscall.Kill(pid, syscall.SIGKILL) == nil })
	}
}

// away does something that takes the database away, and waits until it takes commits again.
func (n *nemesis) away(t testing.TB, harm func() bool) {
	t.Helper()
	span := mailcheck.Span{From: time.Now()}
	if !harm() {
		return
	}
	pause(50 * time.Millisecond)
	await(t, "the database is back", n.hub.answers)
	// Sessions of the daemons need a moment to connect again.
	span.To = time.Now().Add(time.Second)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults.Away = append(n.faults.Away, span)
}

// closeHost has a host away for a while: connections are cut, and no new ones taken.
func (n *nemesis) closeHost(t testing.TB, longest time.Duration) {
	t.Helper()
	n.count("hosts away")
	name := []string{"steady", "flaky", "bare", "lmtp"}[n.random.IntN(4)]
	host := n.hub.hosts[name]
	if err := host.Close(); err != nil {
		t.Error(err)
	}
	pause(time.Duration(n.random.Int64N(int64(longest))))
	var listener net.Listener
	await(t, "the address of the host is free", func() (is bool) {
		var err error
		listener, err = net.Listen("tcp", n.hub.addresses[name])
		return err == nil
	})
	host.Serve(listener)
}
