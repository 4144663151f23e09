package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-broker/parley/internal/measure/postfix"
	"github.com/parley-broker/parley/internal/measure/site"
)

// mailLoad is the load that is relayed in a run.
type mailLoad struct {
	size, messages, sessions int
	cache                    int64          // of the daemon, for bodies
	delay                    time.Duration  // of the sink, before it takes a message
	isSearch                 bool           // for the highest rate that is sustained
	mix                      []mailPart     // of several sizes; size is their mean then
	steady                   func() float64 // the rate that is held for MailOptions.Steady
}

// The domains of recipients: what goes to the sink, and what goes to the host of the probe.
const (
	mailDomain  = "sink.example"
	probeDomain = "probe.example"
	mailSender  = "bench@source.example"
)

// mailRelay is a server that takes mail and gives it to the sink.
type mailRelay interface {
	address() string
	// waiting is how many messages it has.
	waiting(ctx context.Context) int
	// memory is the memory of its process in bytes, 0 where that is not one.
	memory() int64
	// stop stops it, also when ctx has ended, and adds what it knows of the run; messages is how many it has relayed.
	stop(ctx context.Context, figures map[string]float64, messages int, lasted time.Duration) error
}

// relayMail relays the messages of a load and gives their rate, from the first that goes in to the last that comes out.
func (b *bench) relayMail(ctx context.Context, system string, load mailLoad) (rate float64, figures map[string]float64, err error) {
	if load.messages >= mailMessagesLeast {
		if err := b.warmServer(ctx); err != nil {
			return 0, nil, err
		}
	}
	sinkAddress, err := site.FreeAddress(ctx)
	if err != nil {
		return 0, nil, err
	}
	sink, err := postfix.StartSink(ctx, sinkAddress, load.delay)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, sink.Stop()) }()
	probing, err := listenForProbes(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer probing.close()
	var relay mailRelay
	if system == systemPostfix {
		relay, err = b.startPostfix(ctx, sinkAddress, probing.address())
	} else {
		relay, err = b.startMailDaemon(ctx, load, sinkAddress, probing.address())
	}
	if err != nil {
		return 0, nil, err
	}
	figures = map[string]float64{}
	relayed, lasted := 0, time.Duration(0)
	defer func() { err = errors.Join(err, relay.stop(ctx, figures, relayed, lasted)) }()

	// Work that it does for the first time, such as connecting, is not measured.
	warm := min(load.messages, load.sessions)
	if _, err := b.pass(ctx, relay, sink, load, warm); err != nil {
		return 0, nil, err
	}
	if load.isSearch {
		begun := time.Now()
		rate, relayed, err = b.searchMail(ctx, relay, sink, load)
		relayed, lasted = relayed+warm, time.Since(begun)
		return rate, figures, err
	}
	watch := watchMail(ctx, relay)
	probes := probing.begin(ctx, relay.address(), load.size)
	messages := load.messages
	if load.steady != nil {
		messages, lasted, err = b.hold(ctx, relay, sink, load, figures)
	} else {
		lasted, err = b.pass(ctx, relay, sink, load, messages)
	}
	watch.end(figures, load)
	if err != nil {
		return 0, nil, errors.Join(err, probes.end(nil))
	}
	if err := probes.end(figures); err != nil {
		return 0, nil, err
	}
	relayed = warm + messages + int(figures["probes"])
	rate = float64(messages) / lasted.Seconds()
	addCycles(figures, rate, load.size)
	return rate, figures, nil
}

const (
	// mailStalled is how long nothing may come out before a run is given up, and mailPoll how often the sink is asked.
	mailStalled = time.Minute
	mailPoll    = 5 * time.Millisecond
)

// pass sends so many messages through and gives how long that took, to the last that came out.
func (b *bench) pass(ctx context.Context, relay mailRelay, sink *postfix.Sink, load mailLoad, messages int) (time.Duration, error) {
	before, _ := sink.Messages()
	begun := time.Now()
	injected := make(chan error, 1)
	go func() { injected <- injectAll(ctx, load.injections(relay.address(), messages)) }()
	most, since := before, time.Now()
	for {
		n, last := sink.Messages()
		switch {
		case n-before > messages:
			return 0, fmt.Errorf("%d messages came out, %d went in", n-before, messages)
		case n-before == messages:
			return last.Sub(begun), <-injected
		case n > most:
			most, since = n, time.Now()
		case time.Since(since) > mailStalled:
			return 0, fmt.Errorf("%d of %d messages came out, and then none for %v", n-before, messages, mailStalled)
		}
		select {
		case err := <-injected:
			if err != nil {
				return 0, err
			}
			injected <- nil
		default:
		}
		if !waitUntil(ctx, time.Now().Add(mailPoll)) {
			return 0, context.Cause(ctx)
		}
	}
}

// postfixMail is Postfix as a relay.
type postfixMail struct {
	relay  *postfix.Relay
	listen string
	folder string
}

// startPostfix starts a Postfix with its queue in the folder of the run, on the disk of the private servers.
func (b *bench) startPostfix(ctx context.Context, sink, probe string) (mailRelay, error) {
	b.daemons++
	p := &postfixMail{folder: filepath.Join(b.folder.Path, fmt.Sprintf("postfix%d", b.daemons))}
	if err := os.Mkdir(p.folder, 0o755); err != nil { //nolint:gosec // Postfix's account passes through it.
		return nil, fmt.Errorf("make a folder for Postfix: %w", err)
	}
	var err error
	if p.listen, err = site.FreeAddress(ctx); err != nil {
		return nil, err
	}
	p.relay, err = postfix.StartRelay(ctx, postfix.RelayConfig{
		Folder: p.folder, Listen: p.listen, Next: sink, Routes: map[string]string{probeDomain: probe},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *postfixMail) address() string             { return p.listen }
func (p *postfixMail) waiting(context.Context) int { return p.relay.Waiting() }
func (p *postfixMail) memory() int64               { return 0 }

func (p *postfixMail) stop(ctx context.Context, _ map[string]float64, _ int, _ time.Duration) error {
	return errors.Join(p.relay.Stop(ctx), os.RemoveAll(p.folder))
}
