//go:build unix

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// postmaster is what postmaster.pid has about a server that runs or ran.
type postmaster struct {
	pid     int
	port    int
	sockets string
	tcp     bool
}

// readPostmaster reads postmaster.pid; ok is false if there is none or it is not yet complete.
func (f *folder) readPostmaster() (p postmaster, ok bool, err error) {
	text, err := readWithin(filepath.Join(f.cluster, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return postmaster{}, false, nil
	}
	if err != nil {
		return postmaster{}, false, fmt.Errorf("read the process number of the server: %w", err)
	}
	// Process number, cluster, start time, port, socket folder, address, shared memory key, state.
	lines := strings.Split(string(text), "\n")
	p.pid, _ = strconv.Atoi(lines[0])
	if len(lines) > 5 {
		p.port, _ = strconv.Atoi(lines[3])
		p.sockets = lines[4]
		p.tcp = lines[5] != ""
	}
	return p, p.pid > 0, nil
}

// procfs reports whether the system shows the folders that processes work in.
var procfs = func() bool {
	_, err := os.Readlink("/proc/self/cwd")
	return err == nil
}()

// serves reports whether a process is alive and works in the cluster. A process number alone is not enough: a
// restarted container gives the same numbers to other processes, and a dead child nobody waits for keeps its own.
func (f *folder) serves(pid int) bool {
	if procfs {
		cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		return err == nil && cwd == f.cluster
	}
	return syscall.Kill(pid, 0) == nil
}

// leftovers are the server processes that still work in the cluster, where the system lists them.
func (f *folder) leftovers() []int {
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var pids []int
	for _, link := range cwds {
		if cwd, err := os.Readlink(link); err != nil || cwd != f.cluster {
			continue
		}
		process := filepath.Dir(link)
		program, err := os.Readlink(filepath.Join(process, "exe"))
		if err != nil || strings.TrimSuffix(filepath.Base(program), " (deleted)") != "postgres" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// clearDead makes way for a new server after a crash. The caller knows that no postmaster serves the cluster.
func (f *folder) clearDead(ctx context.Context) error {
	// Backends that outlived their postmaster would be refused the shared memory of a new one. They get
	// the signal that the postmaster itself would have sent them.
	for procfs {
		pids := f.leftovers()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
		}
		if err := pause(ctx, lockPoll); err != nil {
			return fmt.Errorf("wait for the processes of a crashed server: %w", err)
		}
	}
	// PostgreSQL itself sees through a stale postmaster.pid unless its number lives again. Only where we know
	// that nothing works in the cluster may we remove it.
	if p, ok, err := f.readPostmaster(); err != nil {
		return err
	} else if ok && procfs && syscall.Kill(p.pid, 0) == nil {
		if err := os.Remove(filepath.Join(f.cluster, "postmaster.pid")); err != nil {
			return fmt.Errorf("remove a stale postmaster.pid: %w", err)
		}
	}
	return f.clearSockets()
}

// runUntil runs a short program to its end, or the context's, and returns all it printed.
func runUntil(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	err := cmd.Wait()
	return out.Bytes(), err
}
