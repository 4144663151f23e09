package bottleneck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// working is the event of a session that waits for nothing.
const working = "CPU"

// DefaultSamples is how many are taken of a run that is as long as expected, as the seed takes them.
const DefaultSamples = 600

// The bounds of the pause between two samples: each costs a query.
const (
	shortestPause = 20 * time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// Sampler samples what the sessions in the benchmark's databases wait for, while something is measured.
type Sampler struct {
	conn     *pgx.Conn
	prefix   string
	interval time.Duration
	local    bool

	mu       sync.Mutex
	stop     func()
	counts   map[waiting]int
	samples  int
	seconds  float64
	begun    time.Time
	before   map[string]float64
	counters map[string]float64
	started  ticks
	machine  usage
	failed   error
	names    map[waiting]string
	answers
}

// waiting is an event and the object of a lock, by numbers until it is named.
type waiting struct {
	event, database string
	relation        uint32
	class           string
}

// NewSampler makes a sampler on a connection of its own, which it closes. Databases of the benchmark begin with the prefix; expected is how
// long is measured in all. local reports that the server is on this machine, so that its processors and disks are the server's.
func NewSampler(conn *pgx.Conn, prefix string, expected time.Duration, local bool) *Sampler {
	return &Sampler{
		conn: conn, prefix: prefix, interval: min(max(expected/DefaultSamples, shortestPause), longestPause), local: local,
		counts: map[waiting]int{}, counters: map[string]float64{}, names: map[waiting]string{},
	}
}

// Begin starts to sample.
func (s *Sampler) Begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askBefore(ctx)
	s.before, s.failed = s.count(ctx)
	s.started, s.begun = readTicks(), time.Now()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	s.stop = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			// Not cancelled in the middle: that would cost the connection.
			if err := s.sample(context.WithoutCancel(ctx)); err != nil {
				s.failed = err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(s.interval):
			}
		}
	}()
}

// End stops to sample, and adds up.
func (s *Sampler) End(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	s.seconds += time.Since(s.begun).Seconds()
	s.machine.add(s.started, readTicks())
	if s.failed != nil {
		return
	}
	after, err := s.count(ctx)
	if err != nil {
		s.failed = err
		return
	}
	for name, value := range after {
		s.counters[name] += max(0, value-s.before[name])
	}
	s.name(ctx)
	s.askAfter(ctx)
}

// sampleStatement gives what the sessions are at. A session that has been idle for long is no session of the load: it controls or listens.
// A waiting row lock has the transaction as its object; the relation is that of the tuple lock that its waiter holds.
const sampleStatement = `
	select
		case
			when a.state <> 'active' then 'Client:ClientRead'
			when a.wait_event_type is null then 'CPU'
			else a.wait_event_type || ':' || a.wait_event
		end,
		a.datname, coalesce(l.relation, 0)::bigint, coalesce(l.locktype, ''), count(*)
	from pg_catalog.pg_stat_activity as a
	left join lateral (
		select
			h.relation,
			case
				when h.granted then 'row'
				-- The lock of no database at all: a commit that notifies holds it to its end.
				when h.locktype = 'object' and h.database = 0 and h.classid = 'pg_catalog.pg_database'::regclass and h.objid = 0
				then '` + notifying + `'
				else h.locktype
			end as locktype
		from pg_catalog.pg_locks as h
		where h.pid = a.pid and (not h.granted or h.locktype = 'tuple')
		order by h.relation is null, h.granted
		limit 1
	) as l on a.wait_event_type = 'Lock'
	where a.pid <> pg_catalog.pg_backend_pid() and pg_catalog.starts_with(a.datname, $1)
		and a.backend_type in ('client backend', 'parallel worker')
		and (a.state = 'active' or a.state like 'idle%' and a.state_change > pg_catalog.clock_timestamp() - interval '2 s')
		and coalesce(a.wait_event_type, '') not in ('Activity', 'Extension')
		and (a.state <> 'active' or coalesce(a.wait_event_type, '') not in ('Client', 'Timeout') or a.wait_event = 'CommitDelay')
	group by 1, 2, 3, 4`

// notifying names the lock of commits that notify.
const notifying = "the queue of NOTIFY"

func (s *Sampler) sample(ctx context.Context) error {
	rows, err := s.conn.Query(ctx, sampleStatement, s.prefix)
	if err != nil {
		return fmt.Errorf("sample what sessions wait for: %w", err)
	}
	var one waiting
	var relation int64
	var n int
	_, err = pgx.ForEachRow(rows, []any{&one.event, &one.database, &relation, &one.class, &n}, func() error {
		one.relation = uint32(relation)
		if one.class == "" {
			one.database = ""
		}
		s.counts[one] += n
		return nil
	})
	if err != nil {
		return fmt.Errorf("sample what sessions wait for: %w", err)
	}
	s.samples++
	return nil
}

// name finds the names of relations while their database is still there.
func (s *Sampler) name(ctx context.Context) {
	for w := range s.counts {
		if w.class == "" || s.names[w] != "" {
			continue
		}
		if w.relation == 0 {
			if w.class != "transactionid" { // which is in the event
				s.names[w] = w.class
			}
			continue
		}
		config := s.conn.Config().Copy()
		config.Database = w.database
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			continue // its database is gone: the class of the lock has to do
		}
		var name string
		if conn.QueryRow(ctx, "select $1::bigint::oid::regclass::text", int64(w.relation)).Scan(&name) == nil {
			s.names[w] = "table " + name
			if w.class == "row" || w.class == "tuple" {
				s.names[w] = "a row of " + name
			}
		}
		_ = conn.Close(ctx)
	}
}

// Conclude closes the sampler's connection and gives what it saw.
func (s *Sampler) Conclude(ctx context.Context) *Analysis {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.Close(ctx)
	a := &Analysis{
		Samples: s.samples, IntervalMS: float64(s.interval) / float64(time.Millisecond), Seconds: s.seconds, Counters: s.counters,
		Waits: []Wait{}, System: s.machine.system(s.local),
	}
	if s.failed != nil {
		a.Notes = append(a.Notes, s.failed.Error())
	}
	if !s.local {
		a.Notes = append(a.Notes, "The server is on another machine: its processors and disks are not seen from here.")
	}
	s.answer(a)
	all := 0
	merged := map[[2]string]int{}
	for w, n := range s.counts {
		all += n
		merged[[2]string{w.event, s.names[w]}] += n
	}
	for w, n := range merged {
		a.Waits = append(a.Waits, Wait{
			Event: w[0], Object: w[1], Share: float64(n) / float64(max(1, all)), Sessions: float64(n) / float64(max(1, s.samples)),
		})
	}
	slices.SortFunc(a.Waits, func(x, y Wait) int {
		switch {
		case x.Share > y.Share:
			return -1
		case x.Share < y.Share:
			return 1
		}
		return strings.Compare(x.Event+x.Object, y.Event+y.Object)
	})
	a.Sessions = float64(all) / float64(max(1, s.samples))
	a.Working = a.Sessions * (1 - a.share(isClient))
	return a
}
