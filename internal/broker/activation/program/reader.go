//go:build unix

package program

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// pipeTimeout is how long after the end of a program its output is still read: a process that left its group may hold
// on to it for ever.
const pipeTimeout = time.Second

// reader is one instance of a program.
type reader struct {
	path        string
	arguments   []string // the first is the name it is called by
	directory   string
	environment []string
	stopTimeout time.Duration
	logger      *slog.Logger
}

// Run starts the program and waits for its end. When ctx ends it asks the program to leave, with SIGTERM to its group, and
// kills the group when the time to stop is over.
func (r *reader) Run(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	// The program gets a signal when the thread that started it ends, so this goroutine keeps the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var outputs sync.WaitGroup
	stdout, err := r.output("stdout", &outputs)
	if err != nil {
		return err
	}
	stderr, err := r.output("stderr", &outputs)
	if err != nil {
		_ = stdout.write.Close()
		outputs.Wait()
		return err
	}
	cmd := &exec.Cmd{
		Path: r.path, Args: r.arguments, Dir: r.directory, Env: r.environment,
		Stdout: stdout.write, Stderr: stderr.write, SysProcAttr: ownGroup(),
	}
	started := time.Now()
	err = cmd.Start()
	// Ours must be closed, or the output would never end.
	_ = stdout.write.Close()
	_ = stderr.write.Close()
	if err != nil {
		outputs.Wait()
		return fmt.Errorf("start the program: %w", err)
	}
	r.logger.Info("program started", "pid", cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	killed, err := r.await(ctx, cmd.Process.Pid, ended)
	// Processes that the program has started and left behind go too.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	stdout.finish()
	stderr.finish()
	outputs.Wait()
	return r.judge(ctx, err, killed, stderr.log.last(), time.Since(started))
}

// await waits for the end of the program, and brings it about when ctx ends.
func (r *reader) await(ctx context.Context, pid int, ended <-chan error) (killed bool, err error) {
	select {
	case err := <-ended:
		return false, err
	case <-ctx.Done():
	}
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	timer := time.NewTimer(r.stopTimeout)
	defer timer.Stop()
	select {
	case err := <-ended:
		return false, err
	case <-timer.C:
	}
	r.logger.Warn("program does not leave; killing it", "pid", pid, "stop_timeout", r.stopTimeout)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return true, <-ended
}

// judge reports what the end of the program means.
func (r *reader) judge(ctx context.Context, err error, killed bool, lastLine string, ran time.Duration) error {
	if killed {
		return fmt.Errorf("program did not stop within %s and was killed", r.stopTimeout)
	}
	// Asked to leave, it may well end by the signal.
	if ctx.Err() != nil {
		err = nil
	}
	switch {
	case err == nil:
		r.logger.Info("program left", "ran", ran)
	case lastLine != "":
		err = fmt.Errorf("program failed with %w: %s", err, lastLine)
	default:
		err = fmt.Errorf("program failed with %w", err)
	}
	return err
}

// stream is an output of the program on its way to the log.
type stream struct {
	read, write *os.File
	log         *lineLog
}

func (r *reader) output(name string, outputs *sync.WaitGroup) (*stream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the program: %w", err)
	}
	s := &stream{read: read, write: write, log: newLineLog(r.logger.With("stream", name))}
	outputs.Go(func() {
		defer read.Close()
		s.log.copy(read)
	})
	return s, nil
}

// finish reads what is left, for a bounded time.
func (s *stream) finish() { _ = s.read.SetReadDeadline(time.Now().Add(pipeTimeout)) }
