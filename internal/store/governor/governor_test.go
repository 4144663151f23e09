package governor

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/parleytest"
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := parleytest.Database(t)
	_, err := pool.Exec(t.Context(), `
		select parley_store.add_system('mail'), parley_store.seed_thresholds('mail'),
			parley_store.set_threshold('mail', 'uncommitted', 120, 200, 121, 80, 2, 'units'),
			parley_store.set_pressure_action('mail', 'uncommitted', 'tarpit', 'MEDIUM'),
			parley_store.set_pressure_action('mail', 'uncommitted', 'stop', 'HIGH')`)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// own is the store itself, as its owner has it.
type own struct{ pool *pgxpool.Pool }

func (o own) Policy(ctx context.Context) (thresholds []Threshold, actions []Action, err error) {
	rows, _ := o.pool.Query(ctx, `select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below,
		coalesce(t.floor_at, 0), coalesce(t.reserve_bytes, 0), t.history_polls from parley_store.thresholds as t where t.is_watched`)
	if thresholds, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Threshold]); err != nil {
		return nil, nil, err
	}
	rows, _ = o.pool.Query(ctx, `select a.resource, a.action, array_position('{MEDIUM,HIGH,FLOOR}', a.from_level), a.after_history
		from parley_store.pressure_actions as a`)
	actions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Action])
	return thresholds, actions, err
}

func (o own) Record(ctx context.Context, e Event) error {
	_, err := o.pool.Exec(ctx, "select parley_store.record_pressure('mail', $1, $2, $3, $4, $5, $6, $7, $8)",
		e.Node, e.Resource, e.ID, e.From.Column(), e.To.Column(), e.Value, e.Actions, e.Message)
	return err
}

func (o own) measure(ctx context.Context) (map[string]float64, error) {
	rows, _ := o.pool.Query(ctx, "select m.resource, m.value from parley_store.measure('mail') as m")
	values := map[string]float64{}
	var resource string
	var value float64
	_, err := pgx.ForEachRow(rows, []any{&resource, &value}, func() error { values[resource] = value; return nil })
	return values, err
}

// A change is a record of the log, a row of the history and a notification, with the values, levels and thresholds of all resources.
func TestAChangeIsReportedEverywhere(t *testing.T) {
	t.Parallel()
	pool := database(t)
	listener, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Release()
	if _, err := listener.Exec(t.Context(), "listen parley_store_pressure"); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	var value float64
	var polls []Pressure
	g := New(Config{
		Store: own{pool}, System: "mail", Node: "n1", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Sources: []Source{own{pool}.measure, Gauge("uncommitted", func() float64 { return value })},
		OnPoll:  func(_ context.Context, p Pressure) { polls = append(polls, p) },
	})
	for _, value = range []float64{10, 213, 213, 90, 10} {
		g.Poll(t.Context())
	}
	if len(polls) != 5 || polls[1].Level != High || len(polls[1].Active) != 2 || polls[4].Level != Normal {
		t.Errorf("the polls were %+v", polls)
	}
	if g.IsActive("tarpit") || g.IsActive("stop") {
		t.Error("actions are left")
	}
	var history, message string
	err = pool.QueryRow(t.Context(), `
		select string_agg(event_id || ' ' || from_level || ' ' || to_level || ' ' || array_to_string(actions, ','), '; ' order by change_id),
			min(message)
		from parley_store.pressure_changes where node = 'n1'`).Scan(&history, &message)
	if err != nil {
		t.Fatal(err)
	}
	if want := "15004 NORMAL HIGH stop,tarpit; 15005 HIGH MEDIUM tarpit; 15005 MEDIUM NORMAL "; history != want {
		t.Errorf("the history is %q, want %q", history, want)
	}
	for _, part := range []string{"uncommitted = 90 units [Medium] [Normal=80 Medium=120 High=200]", "connections = ", "commit latency = not measured"} {
		if !strings.Contains(message, part) {
			t.Errorf("no event says %q: %s", part, message)
		}
	}
	for _, part := range []string{`level=WARN msg="pressure of a resource rose" resource=uncommitted`, `value="213 units"`, `actions="stop, tarpit" remedy=`} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not say %s: %s", part, log.String())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), parleytest.Patience)
	defer cancel()
	notification, err := listener.Conn().WaitForNotification(ctx)
	if err != nil || !strings.Contains(notification.Payload, `"event_id" : 15004`) {
		t.Errorf("notified of %v, %v", notification, err)
	}
}

// A source that fails and a database that is away end nothing: what is known goes on, and what was not recorded is recorded later.
func TestAGovernorOutlastsFailures(t *testing.T) {
	t.Parallel()
	pool := database(t)
	broken := errors.New("broken")
	var log bytes.Buffer
	g := New(Config{
		Store: own{pool}, System: "mail", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Sources: []Source{
			func(context.Context) (map[string]float64, error) { return nil, broken },
			Gauge("uncommitted", func() float64 { return 500 }),
		},
	})
	g.Poll(t.Context())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	g.announce(t.Context(), Pressure{}, Change{Resource: "data volume", From: Medium, To: High})
	g.record(gone)
	if !g.IsActive("stop") || len(g.unrecorded) != 2 {
		t.Errorf("%d events are kept", len(g.unrecorded))
	}
	g.Poll(t.Context())
	var recorded int
	if err := pool.QueryRow(t.Context(), "select count(*) from parley_store.pressure_changes").Scan(&recorded); err != nil || recorded != 3 {
		t.Errorf("%d events are recorded, %v", recorded, err)
	}
	if strings.Count(log.String(), "broken") != 1 {
		t.Errorf("a failure is logged when it begins: %s", log.String())
	}
	if strings.Contains(log.String(), context.Canceled.Error()) {
		t.Errorf("the end of its context is logged as a failure: %s", log.String())
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := database(t)
	ctx, cancel := context.WithCancel(t.Context())
	polled := make(chan Pressure, 10)
	g := New(Config{Store: own{pool}, System: "mail", Logger: slog.New(slog.DiscardHandler), OnPoll: func(_ context.Context, p Pressure) { polled <- p }})
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	parleytest.Receive(t, polled, "a poll")
	cancel()
	if err := parleytest.Receive(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}

func TestMemoryIsThatOfTheControlGroup(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := fstest.MapFS{
		"proc/meminfo":    file("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    250 kB\n"),
		"proc/self/statm": file("500 100 20 1 0 30 0\n"),
	}
	requireMemory(t, machine, 75, 10)
	machine["proc/pressure/memory"] = file("some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	if values, err := measureMemory(machine, 1024); err != nil || values[MemoryStalls] != 12.5 {
		t.Errorf("stalls are %v, %v", values, err)
	}
	machine["sys/fs/cgroup/memory.max"] = file("max\n")
	machine["sys/fs/cgroup/memory.current"] = file("409600\n")
	requireMemory(t, machine, 75, 10)
	machine["sys/fs/cgroup/memory.max"] = file("512000\n")
	requireMemory(t, machine, 80, 20)
	machine["sys/fs/cgroup/memory.stat"] = file("anon 1\ninactive_file 102400\n")
	requireMemory(t, machine, 60, 20)
	delete(machine, "proc/self/statm")
	if _, err := measureMemory(machine, 1024); err == nil {
		t.Error("a process without memory")
	}
	if values, err := Memory()(t.Context()); err != nil || values[ProcessMemory] <= 0 || values[SystemMemory] <= 0 {
		t.Errorf("this machine has %v, %v", values, err)
	}
}

func requireMemory(t *testing.T, machine fstest.MapFS, system, process float64) {
	t.Helper()
	values, err := measureMemory(machine, 1024)
	if err != nil || math.Abs(values[SystemMemory]-system) > 0.1 || math.Abs(values[ProcessMemory]-process) > 0.1 {
		t.Errorf("got %v, %v, want %v and %v", values, err, system, process)
	}
}

func TestVolumesAndLatencies(t *testing.T) {
	t.Parallel()
	values, err := Volumes(map[string]string{DataVolume: t.TempDir(), LogVolume: "/nowhere/at/all"})(t.Context())
	if err == nil || values[DataVolume] <= 0 || values[DataVolume] > 100 || len(values) != 1 {
		t.Errorf("volumes are %v, %v", values, err)
	}
	data := Threshold{MediumAt: 96, HighAt: 99, MediumBelow: 97, NormalBelow: 94, FloorAt: 99.9, ReserveBytes: 500e6}
	if got := data.OnVolume(10e9); got.HighAt != 95 || got.MediumAt != 92 || got.MediumBelow != 93 || got.NormalBelow != 90 || got.FloorAt != 99 {
		t.Errorf("10 GB gives %+v", got)
	}
	if got := data.OnVolume(1e12); got != data {
		t.Errorf("1 TB gives %+v", got)
	}
	if size, err := VolumeBytes(t.TempDir()); err != nil || size <= 0 {
		t.Errorf("the size of a volume is %d, %v", size, err)
	}
	var l Latency
	if values, _ := l.Source()(t.Context()); len(values) != 0 {
		t.Errorf("no commits give %v", values)
	}
	for i := 1; i <= 100; i++ {
		l.Observe(time.Duration(i) * time.Millisecond)
	}
	if values, _ := l.Source()(t.Context()); values[CommitLatency] != 95 {
		t.Errorf("1 to 100 ms give %v", values)
	}
}

// The log says of a resource that is short what relieves it, and every resource that is watched may be.
func TestEveryWatchedResourceHasARemedy(t *testing.T) {
	t.Parallel()
	thresholds, _, err := own{database(t)}.Policy(t.Context())
	if err != nil || len(thresholds) < 10 {
		t.Fatalf("%d thresholds, %v", len(thresholds), err)
	}
	for _, threshold := range thresholds {
		if remedies[threshold.Resource] == "" {
			t.Errorf("%s has no remedy", threshold.Resource)
		}
	}
}
