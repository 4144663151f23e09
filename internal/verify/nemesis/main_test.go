//go:build unix

package nemesis_test

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	durationFlag = flag.Duration("nemesis.duration", 0, "how long the nemesis lets faults loose (default a few seconds, with fixed seeds)")
	seedFlag     = flag.Uint64("nemesis.seed", 0, "seed of the nemesis; 0 draws one when -nemesis.duration is given")
	keepFlag     = flag.String("nemesis.keep", "", "folder for the history and the logs of a run that fails (default a new one below that for temporary files)")
)

func TestMain(m *testing.M) {
	// Each check is a dialog between two databases. -rapid.checks asks for more.
	_ = flag.Set("rapid.checks", "30")
	flag.Parse()
	code := m.Run()
	if build.folder != "" {
		_ = os.RemoveAll(build.folder)
	}
	if code == 0 {
		// A server that had to be fetched came over a connection that is kept for a while.
		http.DefaultClient.CloseIdleConnections()
		// The server of parleytest lives as long as the process, and so does its connection.
		// A proxy that is stopped in the middle of a write leaves that behind.
		if err := goleak.Find(
			goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
			// The test server is shared by packages and outlives this one.
			goleak.IgnoreAnyFunction("github.com/parley-broker/parley/internal/postgres.(*Server).launch.func1"),
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/stream.(*ChanWriter).Write"),
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).Start.func1"),
			goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		); err != nil {
			_, _ = os.Stderr.WriteString("goroutines are left: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// patience bounds what should happen soon. It is no measure of speed: a test that gets there has failed.
const patience = 120 * time.Second

// build is the daemon's program, built once.
var build struct {
	once   sync.Once
	folder string
	err    error
	out    []byte
}

// program gives the path of the program parley as this source has it.
func program(t testing.TB) string {
	t.Helper()
	build.once.Do(func() {
		if build.folder, build.err = os.MkdirTemp("", "parley-nemesis-build-"); build.err != nil {
			return
		}
		build.out, build.err = exec.Command("go", "build", "-o", build.folder, "github.com/parley-broker/parley/cmd/parley").CombinedOutput()
	})
	if build.err != nil {
		t.Fatalf("build parley: %v\n%s", build.err, build.out)
	}
	return filepath.Join(build.folder, "parley")
}

// draw gives a seed for a test that was not given one.
func draw(t testing.TB) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64N(1 << 32)
	}
	return seed
}
