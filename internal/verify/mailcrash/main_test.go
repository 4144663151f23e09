//go:build unix

package mailcrash_test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var (
	durationFlag = flag.Duration("mailcrash.duration", 0, "how long processes are killed (default some seconds, with a fixed seed)")
	seedFlag     = flag.Uint64("mailcrash.seed", 0, "seed of what is killed; 0 draws one when -mailcrash.duration is given")
	keepFlag     = flag.String("mailcrash.keep", "", "folder for the logs of a run that fails (default a new one below that for temporary files)")
)

// patience bounds what should happen soon. It is no measure of speed: a test that gets there has failed.
const patience = 120 * time.Second

// build is the program parley, built once.
var build struct {
	once   sync.Once
	folder string
	err    error
	out    []byte
}

func TestMain(m *testing.M) {
	code := m.Run()
	if build.folder != "" {
		_ = os.RemoveAll(build.folder)
	}
	os.Exit(code)
}

// program gives the path of the program parley as this source has it.
func program(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		if build.folder, build.err = os.MkdirTemp("", "parley-mailcrash-build-"); build.err != nil {
			return
		}
		build.out, build.err = exec.Command("go", "build", "-o", build.folder, "github.com/parley-broker/parley/cmd/parley").CombinedOutput()
	})
	if build.err != nil {
		t.Fatalf("build parley: %v\n%s", build.err, build.out)
	}
	return filepath.Join(build.folder, "parley")
}

// pause lets time pass between two polls, or as the length of a fault.
func pause(d time.Duration) { <-time.After(d) }

// await waits for a state.
func await(t testing.TB, what string, reached func() bool) {
	t.Helper()
	if !awaitFor(patience, reached) {
		t.Fatalf("waited in vain: %s", what)
	}
}

// awaitFor reports whether a state is reached in time. It asks less often the longer it waits, as what it waits for needs the processor.
func awaitFor(limit time.Duration, reached func() bool) bool {
	for began := time.Now(); !reached(); {
		waited := time.Since(began)
		if waited > limit {
			return false
		}
		pause(min(max(50*time.Millisecond, waited/10), 200*time.Millisecond))
	}
	return true
}

// keep writes what helps to understand a failure into the folder for that.
func keep(t testing.TB, name string, text []byte) {
	t.Helper()
	folder := *keepFlag
	if folder == "" {
		folder = filepath.Join(os.TempDir(), "parley-mailcrash-failed")
	}
	path := filepath.Join(folder, name)
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(path, text, 0o600)); err != nil {
		t.Logf("%s cannot be kept: %v", name, err)
		return
	}
	t.Logf("%s is kept in %s", name, path)
}
