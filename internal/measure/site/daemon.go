package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/parley-broker/parley/internal/broker/identity"
)

// DaemonConfig reports which daemon to start.
type DaemonConfig struct {
	// Program is the path of the program parley; the default is this program itself.
	Program string
	// Name is in messages and names the log in Folder.
	Name, Folder string
	// DSNs are the databases it serves.
	DSNs []string
	// Listens opens its broker endpoint on a free port of 127.0.0.1.
	Listens bool
	// Args are further flags of parley serve.
	Args []string
	// System, mail or flow, has it run that alone, for the one database of DSNs: it is ready when ReadyAt, host:port, takes connections.
	System  string
	ReadyAt string
}

// Daemon is a running parley serve, a process of its own.
type Daemon struct {
	config  DaemonConfig
	address string
	http    string
	log     string
	// certificate is the certificate that it shows to other daemons, if it listens.
	certificate *identity.Certificate

	process  *exec.Cmd
	lifeline io.Closer
	ended    chan struct{}
	err      error // of the process, once ended is closed
}

const (
	// stopTimeout is how long a daemon may take to stop before it is killed.
	stopTimeout = 20 * time.Second
	// readyTimeout is how long a daemon may take until it is ready.
	readyTimeout = 2 * time.Minute
	// readyPoll is how often a daemon is asked whether it is ready.
	readyPoll = 20 * time.Millisecond
	// startAttempts is how often other ports are tried, as another process may take one before the daemon does.
	startAttempts = 3
	// logTail is how much of the log of a daemon that failed is shown, in bytes.
	logTail = 2000
)

// StartDaemon starts a daemon, and waits until it is ready. The caller must Stop it.
func StartDaemon(ctx context.Context, config DaemonConfig) (*Daemon, error) {
	if config.Program == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		config.Program = program
	}
	var failure error
	for range startAttempts {
		d, err := startOnce(ctx, config)
		if err == nil || ctx.Err() != nil {
			return d, err
		}
		failure = err
	}
	return nil, failure
}

// asking keeps no connection, which would outlive the question.
var asking = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func startOnce(ctx context.Context, config DaemonConfig) (*Daemon, error) {
	d := &Daemon{config: config, log: filepath.Join(config.Folder, config.Name+".log"), ended: make(chan struct{})}
	if config.System != "" {
		return d, d.startSystem(ctx)
	}
	var err error
	if d.http, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	args := []string{"serve", "--http", d.http}
	if config.Listens {
		if d.address, err = freeAddress(ctx); err != nil {
			return nil, err
		}
		keys, err := d.makeIdentity()
		if err != nil {
			return nil, err
		}
		args = append(args, "--listen", d.address, "--identity", keys)
	}
	for _, dsn := range config.DSNs {
		args = append(args, "--dsn", dsn)
	}
	if err := d.start(append(args, config.Args...)); err != nil {
		return nil, err
	}
	if err := d.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, d.Stop(ctx))
	}
	return d, nil
}

// startSystem starts it as the daemon of one system.
func (d *Daemon) startSystem(ctx context.Context) error {
	if err := d.start(append([]string{d.config.System, "serve", "--dsn", d.config.DSNs[0]}, d.config.Args...)); err != nil {
		return err
	}
	if err := d.awaitReady(ctx); err != nil {
		return errors.Join(err, d.Stop(ctx))
	}
	return nil
}

func (d *Daemon) start(args []string) error {
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of daemon %s: %w", d.config.Name, err)
	}
	defer log.Close()
	// Not bound to a context: it is asked to stop, and killed only when it does not.
	d.process = exec.Command(d.config.Program, args...)
	d.process.Env = append(os.Environ(), lifelineVariable+"=1")
	d.process.Stdout, d.process.Stderr = log, log
	apart(d.process)
	if d.lifeline, err = d.process.StdinPipe(); err != nil {
		return fmt.Errorf("prepare daemon %s: %w", d.config.Name, err)
	}
	if err := d.process.Start(); err != nil {
		return fmt.Errorf("start daemon %s: %w", d.config.Name, err)
	}
	go func() {
		defer close(d.ended)
		d.err = d.process.Wait()
	}()
	return nil
}

// awaitReady waits until the daemon reports that it is ready.
func (d *Daemon) awaitReady(ctx context.Context) error {
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	patience := time.NewTimer(readyTimeout)
	defer patience.Stop()
	for {
		if isReady, err := d.isReady(ctx); err != nil || isReady {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.ended:
			return d.Err()
		case <-patience.C:
			text, _ := os.ReadFile(d.log)
			return fmt.Errorf("daemon %s is not ready after %v; its log ends with:\n%s", d.config.Name, readyTimeout,
				text[max(0, len(text)-logTail):])
		case <-poll.C:
		}
	}
}

func (d *Daemon) isReady(ctx context.Context) (bool, error) {
	if d.config.System != "" {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.config.ReadyAt)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.http+"/readyz", http.NoBody)
	if err != nil {
		return false, fmt.Errorf("ask whether daemon %s is ready: %w", d.config.Name, err)
	}
	answer, err := asking.Do(request)
	if err != nil {
		return false, nil //nolint:nilerr // It does not answer yet.
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK, nil
}

// Name is its name in its configuration.
func (d *Daemon) Name() string { return d.config.Name }

// Address is where its broker endpoint listens, as host:port.
func (d *Daemon) Address() string { return d.address }

// Ended is closed when the process is gone.
func (d *Daemon) Ended() <-chan struct{} { return d.ended }

// Err reports how a daemon ended that nobody stopped, with the end of its log; nil as long as it runs.
func (d *Daemon) Err() error {
	select {
	case <-d.ended:
	default:
		return nil
	}
	text, _ := os.ReadFile(d.log)
	text = bytes.TrimSpace(text[max(0, len(text)-logTail):])
	return fmt.Errorf("daemon %s has ended (%w); its log ends with:\n%s", d.config.Name, errors.Join(errEnded, d.err), text)
}

var errEnded = errors.New("nobody had stopped it")

// Process is its process number.
func (d *Daemon) Process() int { return d.process.Process.Pid }

// Kill ends the process as the kernel does, without a word, and waits until it is gone.
func (d *Daemon) Kill() {
	_ = d.process.Process.Kill()
	<-d.ended
	_ = d.lifeline.Close()
}

// Stop asks the daemon to stop and waits for that, also when ctx has ended. A second Stop does nothing.
func (d *Daemon) Stop(context.Context) error {
	_ = d.lifeline.Close()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-d.ended:
		return nil
	case <-timer.C:
	}
	_ = d.process.Process.Kill()
	<-d.ended
	return fmt.Errorf("daemon %s was killed, as it did not stop within %v", d.config.Name, stopTimeout)
}

// FreeAddress finds a port of this machine that nobody listens on, as host:port.
func FreeAddress(ctx context.Context) (string, error) { return freeAddress(ctx) }

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
