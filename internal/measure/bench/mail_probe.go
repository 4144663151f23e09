package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/measure/statistics"
)

const (
	// probeBytesPerSecond bounds what the probe adds to the load, and probePause is the shortest time between two probes.
	probeBytesPerSecond = 5_000_000
	probePause          = 50 * time.Millisecond
	// probeTimeout bounds a conversation, and the wait for the last probe.
	probeTimeout = 2 * time.Minute
	probeField   = "X-Probe: "
)

// probeHost takes the probes and keeps when each came.
type probeHost struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	arrived map[int]time.Time
}

func listenForProbes(ctx context.Context) (*probeHost, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	h := &probeHost{listener: listener, conns: map[net.Conn]bool{}, arrived: map[int]time.Time{}}
	h.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.conns[conn] = true
			h.mu.Unlock()
			h.serving.Go(func() {
				h.serve(conn)
				h.mu.Lock()
				delete(h.conns, conn)
				h.mu.Unlock()
				_ = conn.Close()
			})
		}
	})
	return h, nil
}

func (h *probeHost) address() string { return h.listener.Addr().String() }

func (h *probeHost) close() {
	_ = h.listener.Close()
	h.mu.Lock()
	for conn := range h.conns {
		_ = conn.Close()
	}
	h.mu.Unlock()
	h.serving.Wait()
}

// serve speaks as much of SMTP as a relay needs to get rid of a message.
func (h *probeHost) serve(conn net.Conn) {
	in := bufio.NewReaderSize(conn, 64<<10)
	say := func(text string) bool {
		_, err := conn.Write([]byte(text + "\r\n"))
		return err == nil
	}
	if !say("220 probe.example") {
		return
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		answer := "250 yes"
		switch verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " "); verb {
		case "DATA":
			if !say("354 go on") {
				return
			}
			number, err := readProbe(in)
			if err != nil {
				return
			}
			h.mu.Lock()
			h.arrived[number] = time.Now()
			h.mu.Unlock()
		case "QUIT":
			say("221 bye")
			return
		}
		if !say(answer) {
			return
		}
	}
}

// readProbe reads a message to its final dot, and gives its number.
func readProbe(in *bufio.Reader) (number int, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
		if text, is := bytes.CutPrefix(line, []byte(probeField)); is {
			number, _ = strconv.Atoi(string(bytes.TrimSpace(text)))
		}
		if string(line) == ".\r\n" {
			return number, nil
		}
	}
}

func (h *probeHost) of(number int) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, there := h.arrived[number]
	return at, there
}

// probe sends one message after another beside the load, and measures what each meets.
type probe struct {
	host    *probeHost
	stop    context.CancelFunc
	ended   chan struct{}
	err     error
	sent    []time.Time // when the final dot had gone
	accepts []float64   // ms from then to the 250
}

func (h *probeHost) begin(ctx context.Context, relay string, size int) *probe {
	p := &probe{host: h, ended: make(chan struct{})}
	ctx, p.stop = context.WithCancel(ctx)
	go func() {
		defer close(p.ended)
		p.err = p.run(ctx, relay, size)
	}()
	return p
}

func (p *probe) run(ctx context.Context, relay string, size int) error {
	pause := max(probePause, time.Duration(float64(size)/probeBytesPerSecond*float64(time.Second)))
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", relay)
	if err != nil {
		return fmt.Errorf("connect to probe: %w", err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func(command, want string) error {
		if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		if command != "" {
			if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
				return fmt.Errorf("probe: %w", err)
			}
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		if !strings.HasPrefix(answer, want) {
			return fmt.Errorf("probe: %q was answered by %q", command, strings.TrimSpace(answer))
		}
		return nil
	}
	if err := errors.Join(ask("", "220"), ask("HELO source.example", "250")); err != nil {
		return err
	}
	body := bytes.Repeat([]byte(strings.Repeat("X", 78)+"\r\n"), size/80+1)
	for number := 0; ; number++ {
		if !waitUntil(ctx, time.Now().Add(pause)) {
			return nil
		}
		err := errors.Join(ask("MAIL FROM:<"+mailSender+">", "250"), ask("RCPT TO:<probe@"+probeDomain+">", "250"), ask("DATA", "354"))
		if err != nil {
			return err
		}
		if _, err := conn.Write(append([]byte("From: "+mailSender+"\r\n"+probeField+strconv.Itoa(number)+"\r\n\r\n"), body...)); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		sent := time.Now()
		if err := ask(".", "250"); err != nil {
			return err
		}
		p.sent, p.accepts = append(p.sent, sent), append(p.accepts, milliseconds(time.Since(sent)))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// end stops probing, waits for the last to arrive, and adds the figures.
func (p *probe) end(figures map[string]float64) error {
	p.stop()
	<-p.ended
	if p.err != nil || figures == nil {
		return p.err
	}
	ways := make([]float64, 0, len(p.sent))
	for number, sent := range p.sent {
		until := time.Now().Add(probeTimeout)
		at, there := p.host.of(number)
		for !there {
			if time.Now().After(until) {
				return fmt.Errorf("probe %d was accepted and did not come out within %v", number, probeTimeout)
			}
			<-time.After(mailPoll)
			at, there = p.host.of(number)
		}
		ways = append(ways, milliseconds(at.Sub(sent)))
	}
	figures["probes"] = float64(len(ways))
	if len(ways) == 0 {
		return nil
	}
	slices.Sort(ways)
	slices.Sort(p.accepts)
	for name, part := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		figures["acceptance_"+name+"_ms"] = statistics.Percentile(p.accepts, part)
		figures["end_to_end_"+name+"_ms"] = statistics.Percentile(ways, part)
	}
	return nil
}
