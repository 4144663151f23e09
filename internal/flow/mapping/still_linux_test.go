package mapping_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
	"github.com/parley-broker/parley/parleytest"
)

// stoppable is a pool of one worker for stylesheets, which says its process.
func stoppable(t *testing.T) (pool *mapping.Pool, worker func() int) {
	t.Helper()
	folder := t.TempDir()
	program, said := filepath.Join(folder, "parley-xslt"), filepath.Join(folder, "process")
	script := "#!/bin/sh\necho $$ >" + said + ".new && mv " + said + ".new " + said + " && exec " + mappingtest.Worker(t) + "\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return newPool(t, mapping.PoolConfig{XSLT: program, Workers: 1}), func() (pid int) {
		parleytest.Until(t, "the worker has begun", func() bool {
			text, err := os.ReadFile(said)
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err == nil
		})
		return pid
	}
}

// result is the body that a message became, or why it became none.
type result struct {
	body string
	err  error
}

// begin begins to map a message.
func begin(t *testing.T, maps *mapping.Maps, body string) <-chan result {
	t.Helper()
	ended := make(chan result, 1)
	go func() {
		body, err := try(t, maps, body)
		ended <- result{body, err}
	}()
	return ended
}

// A worker that hardly gets a processor takes long by the clock, and its message does not fail for that: the time of a map is that of the
// processor.
func TestAMapThatWaitsForAProcessorHasItsTime(t *testing.T) {
	t.Parallel()
	pool, worker := stoppable(t)
	maps := mapsOf(t, pool, "xslt", "m.xsl", sheet(walker), settings{"timeout_s": 1})
	ended := begin(t, maps, "<a>"+strings.Repeat("<b/>", 4000)+"</a>")
	pid := worker()
	// For twice the time for which it may stand still it has a hundredth of a processor.
	for range 11 {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		_ = backoff.Wait(t.Context(), time.Second)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		_ = backoff.Wait(t.Context(), 10*time.Millisecond)
	}
	if got := parleytest.Receive(t, ended, "the end of the map"); got.err != nil || got.body != "<R>0</R>" {
		t.Errorf("it became %.100q, %v", got.body, got.err)
	}
}

// A worker that stands still is ended, its message fails, and the next one has another worker.
func TestAMapThatStandsStillCostsItsOwnMessage(t *testing.T) {
	t.Parallel()
	pool, worker := stoppable(t)
	ended := begin(t, mapsOf(t, pool, "xslt", "m.xsl", sheet(searcher), settings{"timeout_s": 1}), "<a>"+strings.Repeat("<b/>", 20_000)+"</a>")
	if err := syscall.Kill(worker(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	got := parleytest.Receive(t, ended, "the end of the map")
	if got.err == nil || !strings.Contains(got.err.Error(), "not seen to get on for 5 seconds") {
		t.Errorf("it became %.100q, %v", got.body, got.err)
	}
	copies := mapsOf(t, pool, "xslt", "m.xsl", sheet(`<xsl:template match="/"><R><xsl:copy-of select="."/></R></xsl:template>`), nil)
	if got := run(t, copies, "<a/>"); got != "<R><a/></R>" {
		t.Errorf("the next message became %s", got)
	}
}
