//go:build unix

package nemesis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// fault is one way to harm the cluster. It is injected, lasts a while, and is healed by the function that it returns.
type fault struct {
	name string
	// inject harms something that the random source chooses, and returns what.
	inject func(t testing.TB, w *world, random *rand.Rand) (what string, heal func())
}

var faults = []fault{
	{"kill daemon", func(t testing.TB, w *world, random *rand.Rand) (string, func()) {
		t.Helper()
		d := w.anyDaemon(random)
		d.kill()
		return d.name, func() { d.start(t) }
	}},
	{"stop daemon", func(t testing.TB, w *world, random *rand.Rand) (string, func()) {
		t.Helper()
		d := w.anyDaemon(random)
		d.stop()
		return d.name, func() { d.start(t) }
	}},
	{"suspend daemon", func(_ testing.TB, w *world, random *rand.Rand) (string, func()) {
		d := w.anyDaemon(random)
		if d.process == nil {
			return d.name, func() {}
		}
		d.suspend()
		return d.name, func() {
			if d.process != nil {
				d.resume()
			}
		}
	}},
	{"stop server immediately", func(t testing.TB, w *world, random *rand.Rand) (string, func()) {
		t.Helper()
		s := w.anyServer(random)
		s.stopImmediately(t)
		return s.name, func() { s.startAgain(t) }
	}},
	{"kill backend", func(t testing.TB, w *world, random *rand.Rand) (string, func()) {
		t.Helper()
		s := w.anyServer(random)
		for _, pid := range backends(s, random, 1) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return s.name, func() { s.startAgain(t) }
	}},
	{"terminate backends", func(_ testing.TB, w *world, random *rand.Rand) (string, func()) {
		s := w.anyServer(random)
		for _, pid := range backends(s, random, 1+random.IntN(20)) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		return s.name, func() {}
	}},
	{"cancel backends", func(_ testing.TB, w *world, random *rand.Rand) (string, func()) {
		s := w.anyServer(random)
		for _, pid := range backends(s, random, 1+random.IntN(20)) {
			_ = syscall.Kill(pid, syscall.SIGINT)
		}
		return s.name, func() {}
	}},
	{"cut link", func(t testing.TB, w *world, random *rand.Rand) (string, func()) {
		t.Helper()
		l := w.anyLink(random)
		l.cut()
		return l.proxy.Name, func() { l.heal(t) }
	}},
	{"cut link one way", toxic("timeout", func(*rand.Rand) string { return `"timeout": 0` })},
	{"delay link", toxic("latency", func(random *rand.Rand) string {
		return fmt.Sprintf(`"latency": %d, "jitter": %d`, 50+random.IntN(500), random.IntN(200))
	})},
	{"slow link", toxic("bandwidth", func(random *rand.Rand) string { return fmt.Sprintf(`"rate": %d`, 1+random.IntN(40)) })},
	{"truncate link", toxic("limit_data", func(random *rand.Rand) string { return fmt.Sprintf(`"bytes": %d`, random.IntN(20_000)) })},
	{"slice link", toxic("slicer", func(random *rand.Rand) string {
		return fmt.Sprintf(`"average_size": %d, "size_variation": %d, "delay": 100`, 20+random.IntN(200), 10)
	})},
	{"reset link", toxic("reset_peer", func(random *rand.Rand) string { return fmt.Sprintf(`"timeout": %d`, random.IntN(300)) })},
}

func toxic(kind string, attributes func(*rand.Rand) string) func(testing.TB, *world, *rand.Rand) (string, func()) {
	return func(t testing.TB, w *world, random *rand.Rand) (string, func()) {
		t.Helper()
		l := w.anyLink(random)
		stream := []string{"upstream", "downstream"}[random.IntN(2)]
		l.toxic(t, kind, stream, attributes(random))
		return l.proxy.Name + " " + stream, func() { l.heal(t) }
	}
}

func (w *world) anyServer(random *rand.Rand) *server { return w.servers[random.IntN(len(w.servers))] }

func (w *world) anyDaemon(random *rand.Rand) *daemon { return w.daemons[random.IntN(len(w.daemons))] }

func (w *world) anyLink(random *rand.Rand) *link {
	for {
		if l := w.links[random.IntN(len(w.links))][random.IntN(len(w.links))]; l != nil {
			return l
		}
	}
}

// backends gives the numbers of some client sessions of a server; none when it cannot be asked.
func backends(s *server, random *rand.Rand, most int) []int {
	conn, err := tryConnect(s.DSN("postgres"))
	if err != nil {
		return nil
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(),
		"select pid from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() order by pid")
	if err != nil {
		return nil
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil
	}
	random.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	return pids[:min(most, len(pids))]
}

// torment injects faults for a while, one or two at a time, and heals them all. It returns how many of each there were.
func (w *world) torment(t testing.TB, work *workload, random *rand.Rand, duration, longest time.Duration) map[string]int {
	t.Helper()
	struck := map[string]int{}
	// Swarm: each run leaves some kinds of faults out, so that the others meet oftener.
	chosen := make([]fault, 0, len(faults))
	for _, f := range faults {
		if random.IntN(3) > 0 {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		chosen = faults
	}
	for deadline := time.Now().Add(duration); time.Now().Before(deadline) && !t.Failed(); {
		pause(time.Duration(random.Int64N(int64(longest) / 2)))
		var heals []func()
		used := map[string]bool{}
		for range 1 + random.IntN(2) {
			f := chosen[random.IntN(len(chosen))]
			if used[f.name] {
				continue
			}
			used[f.name] = true
			what, heal := f.inject(t, w, random)
			work.log.add(work.now(), "nemesis", f.name, what)
			struck[f.name]++
			heals = append(heals, heal)
		}
		pause(time.Duration(random.Int64N(int64(longest))))
		for _, heal := range heals {
			heal()
		}
		work.log.add(work.now(), "nemesis", "healed")
	}
	w.heal(t)
	return struck
}
