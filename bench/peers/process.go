package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
)

// An engine writes readyLine when it listens.
const readyLine = "ready"

// engine is an engine of integration as a process of its own, which ends when its standard input does.
type engine struct {
	process  *exec.Cmd
	lifeline io.WriteCloser
	log      bytes.Buffer
	ended    chan struct{} // closed when it writes no more
}

// startEngine starts a process and waits until it is ready.
func startEngine(ctx context.Context, cmd *exec.Cmd, environment ...string) (*engine, error) {
	return startReporting(ctx, cmd, nil, environment...)
}

// startReporting starts a process, waits until it is ready, and gives each later line that it writes to each.
func startReporting(ctx context.Context, cmd *exec.Cmd, each func(line string), environment ...string) (*engine, error) {
	e := &engine{process: cmd, ended: make(chan struct{})}
	cmd.Env = append(cmd.Environ(), environment...)
	cmd.Stderr = &e.log
	var err error
	if e.lifeline, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("prepare the engine: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare the engine: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	ready := make(chan bool, 1)
	go func() {
		defer close(e.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			switch {
			case lines.Text() == readyLine:
				ready <- true
			case each != nil:
				each(lines.Text())
			}
		}
		close(ready)
	}()
	select {
	case isReady := <-ready:
		if isReady {
			return e, nil
		}
		err = errors.New("the engine ended before it was ready")
	case <-time.After(readyTimeout):
		err = fmt.Errorf("the engine is not ready after %s", readyTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	err = errors.Join(err, e.stop(ctx))
	return nil, fmt.Errorf("%w: %s", err, e.log.String())
}

// stop ends the input of the process, and the process where it does not end by itself.
func (e *engine) stop(context.Context) error {
	_ = e.lifeline.Close()
	kill := time.AfterFunc(stopTimeout, func() { _ = e.process.Process.Kill() })
	defer kill.Stop()
	if err := e.process.Wait(); err != nil {
		return fmt.Errorf("end the engine: %w", err)
	}
	return nil
}

const (
	readyTimeout = time.Minute
	stopTimeout  = 20 * time.Second
)

// awaitListening writes the line of readiness when somebody listens at an address.
func awaitListening(ctx context.Context, address string) {
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			fmt.Fprintln(os.Stdout, readyLine)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}
