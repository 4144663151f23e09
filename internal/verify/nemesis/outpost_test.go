//go:build unix

package nemesis_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/checker"
	"github.com/parley-broker/parley/parleytest"
)

// outpost is a database on the server that all tests share, and a daemon process of its own, which is to other outposts what a daemon on
// another machine is.
type outpost struct {
	*party
	*daemon
	t    testing.TB
	conn *pgx.Conn
	http string
}

// newOutpost makes a database with the services of a party and its ledger, and starts its daemon with further flags.
func newOutpost(t testing.TB, keys *trust, name string, flags ...string) *outpost {
	t.Helper()
	program(t)
	dsn := parleytest.DSN(t, parleytest.Database(t))
	o := &outpost{t: t, conn: connect(t, dsn), party: &party{name: name, at: func() string { return dsn }}}
	t.Cleanup(func() { _ = o.conn.Close(context.Background()) })
	prepare(t, o.conn)
	o.openServices(t, o.conn)
	o.http = fmt.Sprint("127.0.0.1:", freePort(t))
	o.daemon = keys.daemonAt(t, loopback, name, append([]string{"--http", o.http}, flags...), dsn)
	return o
}

// introduce lets outposts trust each other, and other holders of keys.
func introduce(t testing.TB, keys *trust, all ...*outpost) {
	t.Helper()
	for _, o := range all {
		keys.settle(t, o.conn, o.party.name)
	}
}

// instance is which broker the outpost's database is.
func (o *outpost) instance() string {
	o.t.Helper()
	return ask[string](o.t, o.conn, "select service_broker_guid::text from parley._p_broker")
}

// hand is a session that does what a test asks.
func (o *outpost) hand() *hand {
	o.t.Helper()
	h := &hand{t: o.t, conn: connect(o.t, o.dsn()), name: "hand " + o.party.name}
	o.t.Cleanup(func() { _ = h.conn.Close(context.Background()) })
	return h
}

// metric reads a figure of the daemon: the sum of all lines of that name.
func (o *outpost) metric(name string) (sum float64) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "http://"+o.http+"/metrics", http.NoBody)
	if err != nil {
		o.t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return -1 // it does not listen yet
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found && strings.ContainsAny(rest[:1], " {") {
			value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " "):]), 64)
			if err != nil {
				o.t.Fatalf("%q: %v", line, err)
			}
			sum += value
		}
	}
	return sum
}

// memoryMost is the most memory that the daemon's process has had, in MiB; 0 where the system does not report it.
func (o *outpost) memoryMost() int {
	o.t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", o.process.Process.Pid))
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				o.t.Fatal(err)
			}
			return kib >> 10
		}
	}
	return 0
}

// judgeOutposts drains, brings the ledgers together, and judges.
func judgeOutposts(t testing.TB, work *workload) checker.History {
	t.Helper()
	work.drain()
	bench := connect(t, parleytest.DSN(t, parleytest.Database(t)))
	defer bench.Close(context.Background())
	prepare(t, bench)
	return work.judge(t, bench)
}
