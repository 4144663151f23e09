package postfix

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

const (
	// connectionsMax is how many connections a sink takes at a time.
	connectionsMax = 1000
	// startTimeout bounds how long a program may take until it answers, and startPoll is how often it is asked.
	startTimeout = 20 * time.Second
	startPoll    = 20 * time.Millisecond
)

// Sink is a running smtp-sink, which counts what it takes.
type Sink struct {
	address string
	process *exec.Cmd
	ended   chan struct{}

	mu       sync.Mutex
	messages int
	last     time.Time
}

// StartSink starts a sink at host:port, which answers DATA after a delay in whole seconds. The caller must Stop it.
func StartSink(ctx context.Context, address string, delay time.Duration) (*Sink, error) {
	program, err := find("smtp-sink")
	if err != nil {
		return nil, err
	}
	args := []string{"-4", "-c", "-m", strconv.Itoa(connectionsMax)}
	if delay >= time.Second {
		args = append(args, "-w", strconv.Itoa(int(delay.Seconds())))
	}
	if os.Geteuid() == 0 {
		args = append(args, "-u", "nobody")
	}
	s := &Sink{address: address, ended: make(chan struct{})}
	// Not bound to the context: Stop ends it.
	s.process = exec.Command(program, append(args, "inet:"+address, "1000")...)
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("prepare smtp-sink: %w", err)
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start smtp-sink: %w", err)
	}
	go func() {
		defer close(s.ended)
		counters := bufio.NewScanner(out)
		counters.Split(splitCounters)
		for counters.Scan() {
			s.count(counters.Bytes())
		}
		_ = s.process.Wait()
	}()
	if err := awaitGreeting(ctx, address, s.ended); err != nil {
		return nil, errors.Join(fmt.Errorf("start smtp-sink: %w", err), s.Stop())
	}
	return s, nil
}

// splitCounters cuts what smtp-sink -c writes: "sess=1 quit=1 mesg=3", each behind a carriage return.
func splitCounters(text []byte, _ bool) (advance int, token []byte, err error) {
	if at := bytes.IndexByte(text, '\r'); at >= 0 {
		return at + 1, text[:at], nil
	}
	return 0, nil, nil
}

func (s *Sink) count(counters []byte) {
	_, number, found := bytes.Cut(counters, []byte("mesg="))
	messages, err := strconv.Atoi(string(number))
	if !found || err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if messages > s.messages {
		s.messages, s.last = messages, time.Now()
	}
}

// Address is where it listens.
func (s *Sink) Address() string { return s.address }

// Messages is how many it has taken, and when it took the last.
func (s *Sink) Messages() (messages int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages, s.last
}

// Stop ends it. A second Stop does nothing.
func (s *Sink) Stop() error {
	_ = s.process.Process.Kill()
	<-s.ended
	return nil
}

// awaitGreeting waits until a host greets those that connect.
func awaitGreeting(ctx context.Context, address string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if greets(ctx, address) {
			return nil
		}
		timer := time.NewTimer(startPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s does not answer: %w", address, context.Cause(ctx))
		case <-ended:
			timer.Stop()
			return errors.New("it has ended")
		case <-timer.C:
		}
	}
}

func greets(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil {
		_, _ = conn.Write([]byte("QUIT\r\n"))
	}
	return err == nil && len(line) > 3 && line[:3] == "220"
}
