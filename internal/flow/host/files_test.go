package host_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapters"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// freeAddress gives an address at which nobody listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// filesIn gives the names of the files of a folder that are not of the adapter, with what they have.
func filesIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".parley-") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		files[entry.Name()] = string(text)
	}
	return files
}

// withFiles lets a node have its adapters, and reach a folder and the machine.
func withFiles(folder string) func(*host.Config) {
	return func(c *host.Config) {
		c.Adapters = adapters.All()
		c.Permission = adapter.Permission{
			Folders: []string{folder}, Listen: []string{"127.0.0.1:*"}, Connect: []string{"127.0.0.1:*"},
		}
	}
}

// route defines the way from folder in over TCP to folder out.
func (e *engine) route(folder, address string) {
	e.Helper()
	e.apply(strings.NewReplacer("$1", folder, "$2", address, "$3", e.receive, "$4", e.send).Replace(`{
		"application": {"Files": {}},
		"host": {"Receive": {"role": "$3"}, "Send": {"role": "$4"}},
		"retry policy": {"at once": {"count": 100, "interval": "1 second", "jitter": 0}},
		"receive port": {"Files in": {"application": "Files"}, "Frames in": {"application": "Files"}},
		"receive location": {
			"Source": {"receive_port": "Files in", "host": "Receive", "adapter": "FILE", "address": "$1/in/*.xml", "enabled": false,
				"settings": {"ready": "renamed", "poll_interval": "50 milliseconds"}},
			"Frames": {"receive_port": "Frames in", "host": "Receive", "adapter": "TCP", "address": "$2", "settings": {"max_size": 10000000}}
		},
		"send port": {
			"Out": {"application": "Files", "host": "Send", "adapter": "TCP", "address": "$2", "retry_policy": "at once",
				"settings": {"max_size": 10000000},
				"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "Files in"}]]},
			"Folder": {"application": "Files", "host": "Send", "adapter": "FILE", "address": "$1/out/%MessageID%.xml", "retry_policy": "at once",
				"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "Frames in"}]]},
			"Log": {"application": "Files", "host": "Send", "adapter": "FILE", "address": "$1/log", "retry_policy": "at once",
				"settings": {"mode": "append"},
				"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "Frames in"}]]}
		}
	}`))
}

// Files go from a folder over TCP into another folder, while nodes come and go: each once.
func TestFilesGoOverTCPIntoAnotherFolder(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	folder := t.TempDir()
	for _, name := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e.route(folder, freeAddress(t))
	want := []string{}
	put := func(name, text string) {
		temporary := filepath.Join(folder, "in", "."+name)
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(folder, "in", name+".xml")); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			want = append(want, text)
		}
	}
	for n := range 200 {
		put(fmt.Sprint(n), fmt.Sprintf("<Order>%03d</Order>\n", n))
	}
	put("large", strings.Repeat("0123456789", 300_000))
	put("empty", "")
	e.Exec("select parley_flow.enable('Source')")
	first := e.serve(withFiles(folder))
	parleytest.Until(t, "the first node has taken some", func() bool { return len(filesIn(t, filepath.Join(folder, "in"))) < 200 })
	first.stop()
	e.serve(withFiles(folder))
	parleytest.Until(t, "all files are taken", func() bool { return len(filesIn(t, filepath.Join(folder, "in"))) == 0 })
	for n := range 50 {
		put(fmt.Sprint(n), fmt.Sprintf("<Order>%03d</Order>\n", n)) // the same once more
	}
	parleytest.Until(t, "all files are in the other folder", func() bool {
		return len(filesIn(t, filepath.Join(folder, "in"))) == 0 && len(filesIn(t, filepath.Join(folder, "out"))) == len(want)
	})
	parleytest.Until(t, "the box has the empty one alone", func() bool { messages, suspended := e.inBox(); return messages == 1 && suspended == 1 })
	got := []string{}
	for _, text := range filesIn(t, filepath.Join(folder, "out")) {
		got = append(got, text)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d files came, of which some are not those that were put there", len(got))
	}
	written, err := os.ReadFile(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	log := string(written)
	if total := len(strings.Join(want, "")); len(log) != total || strings.Count(log, "<Order>003</Order>\n") != 2 {
		t.Errorf("%d bytes are appended, and %d have come", len(log), total)
	}
	sqltest.Equal(e.Session, "receive.empty Source", "select code || ' ' || location from parley_flow.suspended")
	sqltest.Equal(e.Session, 0, `select count(*)::integer from parley_flow._p_ledger where removed_at is null`)
	sqltest.Equal(e.Session, 252, `select count(*)::integer from parley_flow._p_ledger as g
		join parley_flow._p_receive_location as l using (location_id) where l.name = 'Source'`)
}

// Sessions of the node are killed again and again while files come in and go out: each is taken once, and written once.
func TestFilesAreTakenAndWrittenOnceWhileSessionsAreKilled(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	folder := t.TempDir()
	for _, name := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	e.route(folder, freeAddress(t))
	e.port("Out", fmt.Sprintf(`{"adapter": "FILE", "address": "%s/out/%%MessageID%%.xml", "retry_policy": "at once", "settings": {"fsync": false},
		"filter": [[{"property": "ReceivePortName", "operator": "=", "value": "Files in"}]], "application": "Files"}`, folder))
	const count = 400
	want := []string{}
	for n := range count {
		text := fmt.Sprintf("%03d", n)
		if err := os.WriteFile(filepath.Join(folder, "in", text+".xml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, text)
	}
	e.Exec("select parley_flow.enable('Source')")
	n := e.serve(withFiles(folder), func(c *host.Config) {
		config := c.Pool.Config()
		config.ConnConfig.RuntimeParams["application_name"] = "killed"
		pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		c.Pool = pool
	})
	for left := count; left > 0; {
		e.Exec(`select pg_terminate_backend(pid) from pg_stat_activity
			where application_name = 'killed' and datname = current_database() and state <> 'idle'`)
		now := len(filesIn(t, filepath.Join(folder, "in")))
		parleytest.Until(t, "more files are taken", func() bool {
			left = len(filesIn(t, filepath.Join(folder, "in")))
			return left == 0 || left <= now-20
		})
	}
	parleytest.Until(t, "all are in the other folder", func() bool { return len(filesIn(t, filepath.Join(folder, "out"))) >= count })
	e.untilEmpty()
	n.stop()
	got := []string{}
	for _, text := range filesIn(t, filepath.Join(folder, "out")) {
		got = append(got, text)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d files came, of which some are not those that were put there", len(got))
	}
	sqltest.Equal(e.Session, count, `select count(*)::integer from parley_flow._p_ledger`)
}
