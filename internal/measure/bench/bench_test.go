package bench_test

import (
	"context"
	"crypto/rand"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/parleytest"
)

// ordinaryRole gives the DSN of a role that may create databases and nothing else, and fails the test if one is left behind.
func ordinaryRole(t *testing.T) (dsn string) {
	t.Helper()
	admin := parleytest.EmptyDatabase(t)
	role := "bench_" + strings.ToLower(rand.Text())
	if _, err := admin.Exec(t.Context(), "create role "+role+" login createdb"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		var left []string
		err := admin.QueryRow(ctx, "select coalesce(array_agg(datname::text), '{}') from pg_database where datdba = to_regrole($1)",
			role).Scan(&left)
		if err != nil {
			t.Error(err)
		}
		if len(left) > 0 {
			t.Errorf("databases are left behind: %v", left)
			return
		}
		if _, err := admin.Exec(ctx, "drop role "+role); err != nil {
			t.Error(err)
		}
	})
	address, err := url.Parse(parleytest.DSN(t, admin))
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(role)
	return address.String()
}

// small is a configuration that only shows that everything runs.
func small(t *testing.T) bench.Config {
	t.Helper()
	return bench.Config{
		Frame:         bench.Frame{DSN: ordinaryRole(t)},
		Sessions:      3,
		Conversations: 5,
		Size:          10,
		Batch:         20,
		Messages:      200,
		Duration:      time.Millisecond,
		Repeat:        2,
	}
}

func scenario(t *testing.T, name string) bench.Scenario {
	t.Helper()
	scenarios := bench.Scenarios()
	i := slices.IndexFunc(scenarios, func(s bench.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return scenarios[i]
}

func TestEachVariantIsMeasuredAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, ratios := range map[string][]string{
		"send": {
			"batch_1000:parley/insert", "batch_1000_in_server:parley/insert", "batch_1000_two_sessions:parley/insert",
			"many_conversations:parley/insert", "many_conversations_autocommit:parley/insert",
			"one_conversation:parley/insert", "one_conversation_autocommit:parley/insert",
		},
		"receive": {"top_1:parley/insert", "top_1_autocommit:parley/insert"},
		"queues":  {"rate:copy/insert", "rate:parley/insert", "rate:parley_simple/insert", "rate:table/insert"},
		"simple": {
			"databases:2_databases/one_database", "databases:4_databases/one_database",
			"put:parley/insert", "put:parley_send/insert", "put_autocommit:parley/insert", "put_autocommit:parley_send/insert",
			"put_batch:parley/insert", "put_batch:parley_send/insert", "take_1:parley/insert", "take_1_autocommit:parley/insert",
		},
		"life": {
			"begin_and_send:parley/insert", "begin_and_send_one_session:parley/insert",
			"begin_then_send:parley/insert", "begin_then_send_one_session:parley/insert",
			"fire_and_forget:parley/insert", "fire_and_forget:table/insert",
			"fire_and_forget_one_session:parley/insert", "fire_and_forget_one_session:table/insert",
			"life:parley/insert", "life:table/insert", "life_one_session:parley/insert", "life_one_session:table/insert",
			"request_reply:parley/insert", "request_reply:table/insert",
			"request_reply_one_session:parley/insert", "request_reply_one_session:table/insert",
		},
		"decay": {
			"idle_conversations:receive_top_1/fresh", "idle_conversations:receive_top_100/fresh", "idle_conversations:send/fresh",
			"locked_neighbour:receive_top_1/fresh", "locked_neighbour:receive_top_100/fresh", "locked_neighbour:send/fresh",
			"old_snapshot:receive_top_1/fresh", "old_snapshot:receive_top_100/fresh", "old_snapshot:send/fresh",
			"pg_dump:receive_top_1/fresh", "pg_dump:receive_top_100/fresh", "pg_dump:send/fresh",
			"short_conversations:life/fresh", "short_conversations:receive_top_1/fresh", "short_conversations:receive_top_100/fresh", "short_conversations:send/fresh",
			"short_conversations_old_snapshot:life/fresh",
			"short_conversations_old_snapshot:receive_top_1/fresh", "short_conversations_old_snapshot:receive_top_100/fresh",
			"short_conversations_old_snapshot:send/fresh",
			"simple_delayed:put/fresh", "simple_delayed:take_1/fresh", "simple_delayed:take_100/fresh",
			"simple_old_snapshot:put/fresh", "simple_old_snapshot:take_1/fresh", "simple_old_snapshot:take_100/fresh",
			"simple_pg_dump:put/fresh", "simple_pg_dump:take_1/fresh", "simple_pg_dump:take_100/fresh",
			"simple_taken_neighbour:put/fresh", "simple_taken_neighbour:take_1/fresh", "simple_taken_neighbour:take_100/fresh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "decay" && os.Getenv("PARLEY_TEST_LONG") == "" {
				t.Skip("it ages a database in ten ways: PARLEY_TEST_LONG=1 has it measured")
			}
			s, config := scenario(t, name), small(t)
			config.Peers = peers()
			report, err := s.Run(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			requireResults(t, s, config, report.Results)
			if keys := slices.Sorted(maps.Keys(report.Ratios)); !slices.Equal(keys, ratios) {
				t.Errorf("the ratios are of %v, want %v", keys, ratios)
			}
			requireCircumstances(t, name, report)
		})
	}
}

// requireResults fails the test unless each variant was measured as often as asked for.
func requireResults(t *testing.T, s bench.Scenario, config bench.Config, results []bench.Result) {
	t.Helper()
	measured := map[string]bool{}
	for _, r := range results {
		measured[r.Variant] = true
		if r.Size != config.Size || r.Sessions == 0 || r.Batch == 0 {
			t.Errorf("a result is %+v", r)
		}
		if len(r.Runs) != config.Repeat || slices.Min(r.Runs) <= 0 || r.MessagesPerSecond <= 0 {
			t.Errorf("%s %s %s %s: the runs are %v", r.Variant, r.System, r.Operation, r.Phase, r.Runs)
		}
	}
	for _, variant := range s.Variants {
		if !measured[variant.Name] {
			t.Errorf("variant %s was not measured", variant.Name)
		}
	}
}

// requireCircumstances fails the test unless the report has what a figure cannot be judged without.
func requireCircumstances(t *testing.T, scenario string, report bench.Report) {
	t.Helper()
	if report.Scenario != scenario || report.Machine.CPU == "" || report.Machine.Cores == 0 || report.Machine.PostgresVersion == "" {
		t.Errorf("the report is of %s on %+v", report.Scenario, report.Machine)
	}
	for _, name := range []string{
		"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "wal_compression",
		"repeat", "duration_seconds", "warm_up_seconds", "messages",
	} {
		if report.Settings[name] == nil || report.Settings[name] == "" {
			t.Errorf("setting %s is missing", name)
		}
	}
}

func TestOnlyTheVariantsAskedForAreMeasured(t *testing.T) {
	t.Parallel()
	config := small(t)
	config.Variants = []string{"one_conversation"}
	report, err := scenario(t, "send").Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Variant != "one_conversation" {
			t.Errorf("variant %s was measured too", r.Variant)
		}
	}
}

func TestInterruptedBenchmarkLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]string{
		"while it prepares": "preparing",
		"while it ages":     "ageing: 0",
		"while it measures": "run 1 of 2: old_snapshot, receive_top_1, aged",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			config := small(t)
			config.Variants = []string{"old_snapshot"}
			config.Progress = func(text string) {
				if strings.HasPrefix(text, moment) {
					interrupt()
				}
			}
			if _, err := scenario(t, "decay").Run(ctx, config); err == nil || ctx.Err() == nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestConfigurationThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	good := bench.Config{Messages: 1, Duration: 1, Repeat: 1}
	for name, change := range map[string]func(c *bench.Config){
		"unknown variant":   func(c *bench.Config) { c.Variants = []string{"top_100"} },
		"no runs":           func(c *bench.Config) { c.Repeat = 0 },
		"no time":           func(c *bench.Config) { c.Duration = 0 },
		"no messages":       func(c *bench.Config) { c.Messages = 0 },
		"negative sessions": func(c *bench.Config) { c.Sessions = -1 },
		"peer of our name":  func(c *bench.Config) { c.Peers = peers(); c.Peers[0].Name = "parley" },
	} {
		config := good
		change(&config)
		if err := config.Check(scenario(t, "send")); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
	if err := good.Check(scenario(t, "send")); err != nil {
		t.Error(err)
	}
}
