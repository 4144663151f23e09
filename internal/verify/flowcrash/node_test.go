//go:build unix

package flowcrash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/logtest"
)

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
		if build.folder, build.err = os.MkdirTemp("", "parley-flowcrash-build-"); build.err != nil {
			return
		}
		build.out, build.err = exec.Command("go", "build", "-o", build.folder, "github.com/parley-broker/parley/cmd/parley").CombinedOutput()
	})
	if build.err != nil {
		t.Fatalf("build parley: %v\n%s", build.err, build.out)
	}
	return filepath.Join(build.folder, "parley")
}

// node is a process `parley flow serve`, which has another name each time it is started: that of one that was killed is taken for a while.
type node struct {
	name    string
	args    []string
	lives   int
	log     logtest.Log // over all its lives
	process *exec.Cmd
}

func newNode(t testing.TB, name string, args ...string) *node {
	t.Helper()
	n := &node{name: name, args: args}
	t.Cleanup(func() {
		n.kill()
		text := n.log.String()
		if t.Failed() || strings.Contains(text, "panic:") {
			t.Logf("log of node %s:\n%s", name, text[max(0, len(text)-4000):])
		}
		if strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
			t.Errorf("node %s broke down", name)
		}
	})
	return n
}

func (n *node) start(t testing.TB) {
	t.Helper()
	n.lives++
	n.process = exec.Command(program(t), append([]string{
		"flow", "serve", "--node", fmt.Sprintf("%s-%d", n.name, n.lives), "--lease", "2s",
	}, n.args...)...)
	n.process.Stdout, n.process.Stderr = &n.log, &n.log
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process on the spot.
func (n *node) kill() {
	if n.process != nil {
		_ = n.process.Process.Kill()
		_ = n.process.Wait() // it was killed
		n.process = nil
	}
}
