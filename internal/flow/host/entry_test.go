package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

func named(name string) func(*host.Config) { return func(c *host.Config) { c.Node = name } }

// untilRefused waits until a node ends because another process has its name.
func (e *engine) untilRefused(ended <-chan error) {
	e.Helper()
	err := parleytest.Receive(e.T, ended, "the node is refused")
	refusal, is := errors.AsType[*pgconn.PgError](err)
	if !is || refusal.Code != "PF017" || !strings.Contains(refusal.Hint, "--node") {
		e.Errorf("the node has ended with %v", err)
	}
}

// since gives since when node one serves host Send, in seconds of the epoch; 0: it does not.
func (e *engine) since() float64 {
	e.Helper()
	return sqltest.Value[float64](e.Session,
		"select coalesce(max(extract(epoch from started_at)), 0)::float8 from parley_flow.hosts where host = 'Send' and node = 'one'")
}

func TestASecondNodeOfOneNameIsRefusedAndTheFirstGoesOn(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	first := e.serve(named("one"))
	e.intake("Source")
	parleytest.Until(t, "both hosts are served", func() bool { return e.since() > 0 })
	e.untilRefused(e.start(named("one")).done)
	e.start(named("two"))
	e.take("a")
	e.untilSent(1)
	select {
	case err := <-first.done:
		t.Errorf("the first has ended: %v", err)
	default:
	}
}

func TestTheNameOfAKilledNodeIsFreeAfterSomeSeconds(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for _, name := range []string{"Receive", "Send"} {
		e.Exec("select parley_flow._p_report($1, 'one', '{}', process => 'killed')", name)
	}
	killed := e.since()
	began := time.Now()
	e.Exec("update parley_flow._p_host_instance set reported_at = clock_timestamp() - interval '12 seconds'")
	e.serve(named("one"))
	e.intake("Source")
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("the name was given away after %v", took)
	}
	e.take("a")
	e.untilSent(1)
	if e.since() <= killed {
		t.Error("the node serves since the start of the one that was killed")
	}
}

func TestANodeWhoseNameAnotherHasTakenEnds(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	n := e.start(named("one"))
	e.intake("Source")
	parleytest.Until(t, "both hosts are served", func() bool { return e.since() > 0 })
	// It could not report for a while, and another one came.
	e.Exec("update parley_flow._p_host_instance set process = 'another', reported_at = clock_timestamp()")
	e.untilRefused(n.done)
}

func TestANodeServesSinceItsLastStart(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	first := e.serve(named("one"))
	e.intake("Source")
	parleytest.Until(t, "the first serves", func() bool { return e.since() > 0 })
	since := e.since()
	first.stop()
	e.serve(named("one"))
	parleytest.Until(t, "the second serves", func() bool { return e.since() > since })
}

func TestANameBelongsToAProcessUntilItEndsOrIsSilent(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	const report = "select parley_flow._p_report('Send', 'one', '{}', process => $1, is_last => $2)"
	e.Exec(report, "a", false)
	e.RefusesFlow(17, report, "b", false)
	e.RefusesFlow(17, report, nil, false)
	e.Exec("select parley_flow._p_report('Receive', 'one', '{}', process => 'b')") // of another host
	e.Exec(report, "a", false)
	e.Exec(report, "a", true)
	e.Exec(report, "b", false)
	e.RefusesFlow(17, report, "a", true)
	e.Exec("update parley_flow._p_host_instance set reported_at = clock_timestamp() - interval '15 seconds'")
	e.Exec(report, "c", false)
}

// start runs a node that may end by itself.
func (e *engine) start(change ...func(*host.Config)) *node {
	e.Helper()
	n := e.prepare(change...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	ended := make(chan struct{})
	go func() { n.done <- n.Run(ctx); close(ended) }()
	e.Cleanup(func() { cancel(); parleytest.Receive(e.T, ended, "the node has stopped") })
	return n
}
