package bench_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/postgres/postgrestest"
)

// A server that counts statements answers all: what tables changed, what the buffers hold, which statements ran.
func TestRunShowsTablesBuffersAndStatements(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t, postgres.Config{Settings: map[string]string{
		"shared_preload_libraries": "pg_stat_statements", "shared_buffers": "16MB", "fsync": "off", "max_connections": "40",
	}})
	a := limited(t, server.DSN("postgres"), func(c *bench.Config) { c.Rows = 50 })
	table := func(name string) bottleneck.Table {
		i := slices.IndexFunc(a.Tables, func(t bottleneck.Table) bool { return t.Name == name })
		if i < 0 {
			t.Fatalf("%s is not among %+v", name, a.Tables)
		}
		return a.Tables[i]
	}
	if account := table("bench.account"); account.Updated < 10 || account.HotUpdated < account.Updated/2 || account.Live != 50 ||
		account.Bytes <= 0 || account.Inserted > 50 {
		t.Errorf("balances changed so: %+v", account)
	}
	if orders := table("bench.placed_order"); orders.Inserted < 10 || orders.Updated != 0 {
		t.Errorf("orders changed so: %+v", orders)
	}
	if b := a.Buffers; b == nil || b.All != 2048 || b.Unused >= b.All || len(b.Relations) < 5 ||
		!slices.ContainsFunc(b.Relations, func(r bottleneck.BufferRelation) bool {
			return r.Name == "bench.placed_order" && r.Fork == "main" && r.Buffers > 0 && len(r.Usage) == 6
		}) {
		t.Errorf("the buffers hold %+v", b)
	}
	if !slices.ContainsFunc(a.Statements, func(s bottleneck.Statement) bool {
		return strings.HasPrefix(s.Text, "update bench.account set balance") && s.Calls > 10 && s.MS > 0 && s.WALBytes > 0 && s.Rows == s.Calls
	}) {
		t.Errorf("the statements are %+v", a.Statements)
	}
	// Where reading the buffers takes long, it is done once, and the run says so.
	unseen := slices.DeleteFunc(slices.Clone(a.Notes), func(note string) bool {
		return strings.HasPrefix(note, "The content of the buffers is that of the first run: ")
	})
	if a.Messages < 10 || len(unseen) > 0 {
		t.Errorf("it counted %.0f messages, with the notes %q", a.Messages, a.Notes)
	}
}

// A role that may create databases and nothing else sees its tables, and reads what it does not see.
func TestRunSaysWhatItCouldNotSee(t *testing.T) {
	t.Parallel()
	a := limited(t, ordinaryRole(t), func(*bench.Config) {})
	if len(a.Tables) == 0 || a.Buffers != nil || len(a.Statements) > 0 {
		t.Errorf("it saw %d tables, %d statements, and the buffers %+v", len(a.Tables), len(a.Statements), a.Buffers)
	}
	notes := strings.Join(a.Notes, "\n")
	if !strings.Contains(notes, "buffers was not seen: the extension pg_buffercache is not there") ||
		!strings.Contains(notes, "Statements were not seen: ") {
		t.Errorf("the notes are %q", notes)
	}
}
