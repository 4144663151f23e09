//go:build unix

package mailcrash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/mailcheck"
)

// Daemons, backends and the server are killed under load, and hosts fail; then all comes to rest, and is judged.
func TestMailOutlivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a server of its own and crashes it again and again")
	}
	seed, duration, longest, lease, sessions := uint64(1), 5*time.Second, 600*time.Millisecond, 3*time.Second, 1
	if *durationFlag > 0 {
		seed, duration, longest, lease, sessions = *seedFlag, *durationFlag, 3*time.Second, 15*time.Second, 4
		if seed == 0 {
			seed = rand.Uint64N(1 << 32)
		}
	}
	t.Logf("repeat with: go test ./internal/verify/mailcrash -mailcrash.duration=%v -mailcrash.seed=%d", duration, seed)
	h := newHub(t, seed, 3, lease)
	work := startWorkload(h, seed, sessions, 2*lease)
	n := &nemesis{hub: h, random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	n.torment(t, duration, longest)
	work.stop()
	// Mail that has piled up before a host that fails would take hours.
	h.isHealed.Store(true)
	healed := time.Now()
	h.drain(t)
	t.Logf("everything has arrived or was reported %v after the last kill", time.Since(healed).Round(time.Millisecond))
	found := mailcheck.Judge(work.settle(t), h.arrivals(t), n.faults)
	figures, _ := json.MarshalIndent(found, "", "  ")
	t.Logf("done: %v; hosts failed: %v\n%s", counts(n.done), h.failures(), figures)
	if !found.Clean() {
		t.Error("mail transport has not kept its promises")
	}
	if found.Arrived == 0 || found.Reported == 0 || found.NotAccepted == 0 || n.done["daemons killed"] == 0 {
		t.Error("the workload or the nemesis did nothing")
	}
	h.keepOf(t, found.Examples)
}

// left are the tables that hold what is under way.
var left = []string{
	"parley_mail._p_message", "parley_mail._p_recipient", "parley_store.work_items", "parley_mail._p_report", "parley_store._p_lease",
}

// drain waits until nothing is under way. Work that does not come to an end is an error.
func (h *hub) drain(t testing.TB) {
	t.Helper()
	conn := h.connect(t)
	defer conn.Close(context.Background())
	var parts []string
	for _, table := range left {
		parts = append(parts, fmt.Sprintf("(select count(*) from %s)", table))
	}
	query := "select " + strings.Join(parts, " + ")
	if awaitFor(2*patience+*durationFlag, func() bool {
		h.startAll(t)
		h.resumePoison(t, conn)
		return ask[int](t, conn, query) == 0
	}) {
		return
	}
	t.Error("something is under way still and does not arrive")
	for _, table := range append(left, "parley_store.lanes") {
		rows := column[string](t, conn, "select left((to_jsonb(r) - 'body')::text, 1500) from (select * from "+table+" limit 100) as r")
		keep(t, table, []byte(strings.Join(rows, "\n")))
	}
}

// resumePoison does what an operator does with messages that are set aside because their categorizer was killed twice, here by chance.
func (h *hub) resumePoison(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	const poison = "POISON/-/-"
	if held := ask[int](t, conn, `select count(*) from parley_store.work_items where lane = $1`, poison); held > 0 {
		t.Logf("%d messages were set aside, and are resumed", held)
		must(t, conn, `select parley_mail.resume_queue($1)`, poison)
	}
}

// failures counts what the hosts did.
func (h *hub) failures() string {
	all := map[string]int{}
	for _, host := range h.hosts {
		faults, _ := host.Failed()
		for fault, times := range faults {
			all[string(fault)] += times
		}
	}
	return counts(all)
}

// keepOf keeps what tracking knows about the letters of findings.
func (h *hub) keepOf(t testing.TB, examples []string) {
	t.Helper()
	if len(examples) == 0 {
		return
	}
	conn := h.connect(t)
	defer conn.Close(context.Background())
	rows := column[string](t, conn, "select to_jsonb(e)::text from parley_store.tracking as e order by 1")
	keep(t, "tracking", []byte(strings.Join(rows, "\n")))
}

func counts(counted map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		parts = append(parts, fmt.Sprintf("%d %s", counted[name], name))
	}
	return strings.Join(parts, ", ")
}
