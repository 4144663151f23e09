//go:build unix

package nemesis_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/logtest"
)

// daemon is a process `parley serve` with an address of its own, which it keeps when it is started again.
type daemon struct {
	name    string
	host    host
	port    int
	args    []string
	environ []string
	log     logtest.Log
	process *exec.Cmd
	ended   chan struct{}
}

// host is where a daemon runs: the commands that lead there, and its address.
type host struct {
	way     []string
	address string
}

// loopback is this machine, for itself.
var loopback = host{address: "127.0.0.1"}

// newDaemon prepares a daemon for databases, and starts it.
func newDaemon(t testing.TB, at host, name string, dsns []string, args ...string) *daemon {
	t.Helper()
	d := &daemon{name: name, host: at, port: freePort(t)}
	d.args = append(d.args, "serve", "--listen", d.address(), "--grace-time", "1s", "--log-level", "info")
	for _, dsn := range dsns {
		d.args = append(d.args, "--dsn", dsn)
	}
	d.args = append(d.args, args...)
	d.environ = append(os.Environ(), "GOTRACEBACK=all")
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			keep(t, d.name+".daemon.log", []byte(d.log.String()))
		}
		if text := d.log.String(); strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
			t.Errorf("daemon %s broke down:\n%s", d.name, tailOf(text, 60))
		}
	})
	d.start(t)
	return d
}

func (d *daemon) address() string { return fmt.Sprint(d.host.address, ":", d.port) }

// start starts the daemon's process.
func (d *daemon) start(t testing.TB) {
	t.Helper()
	if d.process != nil {
		return
	}
	command := slices.Concat(d.host.way, []string{program(t)}, d.args)
	d.process = exec.Command(command[0], command[1:]...)
	d.process.Env = d.environ
	d.process.Stdout, d.process.Stderr = &d.log, &d.log
	// If this process is killed the daemon must not outlive it.
	d.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.process.Start(); err != nil {
		t.Fatalf("start daemon %s: %v", d.name, err)
	}
	d.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait()
		close(ended)
	}(d.process, d.ended)
}

// kill ends the process as the kernel does, without a word.
func (d *daemon) kill() { d.signalAndWait(syscall.SIGKILL) }

// stop asks the daemon to end, as systemd does.
func (d *daemon) stop() { d.signalAndWait(syscall.SIGTERM) }

func (d *daemon) signalAndWait(signal syscall.Signal) {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Signal(signal)
	// One that is suspended would not notice.
	_ = d.process.Process.Signal(syscall.SIGCONT)
	select {
	case <-d.ended:
	case <-time.After(patience):
		_ = d.process.Process.Kill()
		<-d.ended
	}
	d.process = nil
}

func (d *daemon) suspend() { _ = d.process.Process.Signal(syscall.SIGSTOP) }
func (d *daemon) resume()  { _ = d.process.Process.Signal(syscall.SIGCONT) }

// lives reports whether the process still runs.
func (d *daemon) lives() bool {
	select {
	case <-d.ended:
		return false
	default:
		return d.process != nil
	}
}

// keeping is where the traces of failed tests go.
var keeping struct {
	once   sync.Once
	folder string
	err    error
}

// keep writes what helps to understand a failure into the folder for that, and returns where it is.
func keep(t testing.TB, name string, text []byte) {
	t.Helper()
	keeping.once.Do(func() {
		if keeping.folder = *keepFlag; keeping.folder != "" {
			keeping.err = os.MkdirAll(keeping.folder, 0o755)
			return
		}
		keeping.folder, keeping.err = os.MkdirTemp("", "parley-nemesis-failed-")
	})
	path := filepath.Join(keeping.folder, strings.ReplaceAll(t.Name(), "/", "_")+"."+name)
	if err := errors.Join(keeping.err, os.WriteFile(path, text, 0o600)); err != nil {
		t.Logf("%s cannot be kept: %v", name, err)
		return
	}
	t.Logf("%s is kept in %s; its end:\n%s", name, path, tailOf(string(text), 15))
}

// keepLog keeps a file.
func keepLog(t testing.TB, name, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Logf("the log of %s cannot be read: %v", name, err)
		return
	}
	keep(t, name+".log", text)
}

func tailOf(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
