//go:build unix

package mailcrash_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/logtest"
)

// daemon is a process `parley mail serve` with an address of its own, which it keeps when it is started again.
type daemon struct {
	name    string
	address string
	args    []string

	log     logtest.Log // over all its lives
	process *exec.Cmd
	ended   chan struct{}
}

// newDaemon prepares a daemon that listens on a binding of the receive connector, and may use the folder of the mailboxes.
func newDaemon(t testing.TB, name, address, dsn, mailboxes string, lease time.Duration) *daemon {
	t.Helper()
	d := &daemon{name: name, address: address, args: []string{
		"mail", "serve", "--dsn", dsn, "--binding", address, "--lease", lease.String(), "--name-server", "127.0.0.1:1",
		"--folders", mailboxes,
	}}
	t.Cleanup(func() {
		d.end(syscall.SIGKILL)
		text := d.log.String()
		if t.Failed() {
			keep(t, d.name+".log", []byte(text))
		}
		if strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
			t.Errorf("daemon %s broke down; its log has %d bytes", d.name, len(text))
			keep(t, d.name+".log", []byte(text))
		}
	})
	return d
}

// start starts the process, again if it has ended by itself.
func (d *daemon) start(t testing.TB) {
	t.Helper()
	if d.lives() {
		return
	}
	d.process = exec.Command(program(t), d.args...)
	d.process.Env = append(os.Environ(), "GOTRACEBACK=all")
	d.process.Stdout, d.process.Stderr = &d.log, &d.log
	d.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.process.Start(); err != nil {
		t.Fatalf("start daemon %s: %v", d.name, err)
	}
	d.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		err := process.Wait()
		fmt.Fprintf(&d.log, "== the process has ended: %v\n", err)
		close(ended)
	}(d.process, d.ended)
}

// lives is whether the process runs.
func (d *daemon) lives() bool {
	if d.process == nil {
		return false
	}
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// end sends a signal that ends the process, and waits for that.
func (d *daemon) end(signal syscall.Signal) {
	if d.process == nil {
		return
	}
	_ = d.process.Process.Signal(signal)
	select {
	case <-d.ended:
	case <-time.After(patience):
		_ = d.process.Process.Kill()
		<-d.ended
	}
	d.process = nil
}

// freeAddress is one on loopback that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
