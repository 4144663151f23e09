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
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/parley-broker/parley/internal/backoff"
)

// postmaster is the content of postmaster.pid about a server that runs or ran.
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

// leftover is a process of a server that works in the cluster.
type leftover struct {
	*os.Process
	// isPostmaster is true of one that began with the arguments of a server; the others have a title in their place.
	isPostmaster bool
}

// leftovers are the server processes that work in the cluster, where the system lists them. The caller releases them.
func (f *folder) leftovers() (found []leftover) {
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range cwds {
		if cwd, err := os.Readlink(link); err != nil || cwd != f.cluster {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			continue
		}
		// It is held before it is examined, so that its number cannot become that of another one.
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		cwd, _ := os.Readlink(link)
		program, _ := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		if cwd != f.cluster || strings.TrimSuffix(filepath.Base(program), " (deleted)") != "postgres" {
			_ = process.Release()
			continue
		}
		arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
		found = append(found, leftover{process, bytes.Contains(arguments, []byte("\x00-D\x00"))})
	}
	return found
}

// clearDead makes way for a new server after a crash. The caller has found no postmaster that serves the cluster, and holds the start lock.
// One may be there even so, which has not written its number yet, because who started it is gone, or which has removed it and ends:
// isThere says that it serves after all.
func (f *folder) clearDead(ctx context.Context) (isThere bool, err error) {
	// Backends that outlived their postmaster would be refused the shared memory of a new one. They get the signal that the postmaster
	// itself would have sent them. Those of a postmaster that lives are its own.
	for procfs {
		left := f.leftovers()
		if len(left) == 0 {
			break
		}
		hasPostmaster := slices.ContainsFunc(left, func(l leftover) bool { return l.isPostmaster })
		for _, l := range left {
			if !hasPostmaster {
				_ = l.Signal(syscall.SIGQUIT)
			}
			_ = l.Release()
		}
		if hasPostmaster {
			if p, ok, err := f.readPostmaster(); err != nil || ok && f.serves(p.pid) {
				return err == nil, err
			}
		}
		if err := backoff.Wait(ctx, lockPoll); err != nil {
			return false, fmt.Errorf("wait for the processes of a crashed server: %w", err)
		}
	}
	// PostgreSQL itself sees through a stale postmaster.pid unless its number lives again. Only where we know
	// that nothing works in the cluster may we remove it.
	if p, ok, err := f.readPostmaster(); err != nil {
		return false, err
	} else if ok && procfs && syscall.Kill(p.pid, 0) == nil {
		if err := os.Remove(filepath.Join(f.cluster, "postmaster.pid")); err != nil {
			return false, fmt.Errorf("remove a stale postmaster.pid: %w", err)
		}
	}
	return false, f.clearSockets()
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
