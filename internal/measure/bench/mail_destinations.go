package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/postfix"
	"github.com/parley-broker/parley/internal/measure/site"
)

const (
	mailDestinations = 1000
	// destinationBody is the text of a message that waits, in bytes.
	destinationBody = 200
	// categorizedOnce is how many items of the submission queue are categorized by one call while the database is prepared.
	categorizedOnce = 200
	// othersOperation is the rate that is compared: that of all destinations but the slow and the dead one.
	othersOperation = "others"
)

// The addresses of the hosts: those that are well, the one that is slow, and the one that takes connections and says nothing.
const (
	wellHost = "127.0.0.1"
	slowHost = "127.0.0.3"
	deadHost = "127.0.0.4"
)

// destinationTrials measure how fast messages go out that wait for many destinations, while one of these is slow and one dead, and while
// all are well.
func destinationTrials(b *bench, variant string) []trial {
	var trials []trial
	for _, phase := range []string{phaseAged, phaseFresh} {
		var runs []map[string]float64
		trials = append(trials, trial{
			result: Result{
				System: systemParley, Variant: variant, Operation: othersOperation, Phase: phase, Sessions: 1, Size: destinationBody,
				Conversations: or(b.Mail.Destinations, mailDestinations), Batch: 1,
			},
			run: func(ctx context.Context) (float64, error) {
				rate, figures, err := b.deliverWaiting(ctx, phase == phaseAged)
				runs = append(runs, figures)
				return rate, err
			},
			conclude: func(r *Result) { r.Figures = medians(runs) },
		})
	}
	return trials
}

// destination is the domain of a number; 0 is the one that may be slow, 1 the one that may be dead.
func destination(number int) string { return fmt.Sprintf("d%d.bench.example", number) }

// waitingStage is a database in which messages wait in the queues of their next hops.
func (b *bench) waitingStage(ctx context.Context, destinations int) (stage, error) {
	name := fmt.Sprintf("%d messages for %d destinations", b.Messages, destinations)
	return b.stage(ctx, name, func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
		if err := configureMail(ctx, conn, "127.0.0.1:25", byNameServer(25)); err != nil {
			return err
		}
		for sent := 0; sent < b.Messages; sent += mailBatch {
			recipients := make([]string, min(mailBatch, b.Messages-sent))
			for i := range recipients {
				recipients[i] = fmt.Sprintf("someone%d@%s", sent+i, destination((sent+i)%destinations))
			}
			_, err := conn.Exec(ctx, "select count(*) from parley_mail.send_batch($1, $2, subject => 'Order', text => repeat('X', $3::integer))",
				mailSender, recipients, destinationBody)
			if err != nil {
				return fmt.Errorf("submit messages: %w", err)
			}
			b.progress("%d of %d messages submitted", sent+len(recipients), b.Messages)
		}
		for done := 0; done < b.Messages; {
			var categorized, failed int
			err := conn.QueryRow(ctx, "select categorized, failed from parley_mail._p_categorize($1)",
				categorizedOnce).Scan(&categorized, &failed)
			if err != nil {
				return fmt.Errorf("categorize messages: %w", err)
			}
			if categorized == 0 {
				return fmt.Errorf("%d of %d messages were categorized, %d failed, and then nothing", done, b.Messages, failed)
			}
			done += categorized
			b.progress("%d of %d messages categorized", done, b.Messages)
		}
		return nil
	})
}

// byNameServer is a send connector that finds hosts by name, at a port.
func byNameServer(port int) map[string]any {
	return map[string]any{"everywhere": map[string]any{
		"address_spaces": []any{map[string]any{"pattern": "*"}}, "routing": "DNS", "tls": "OFF", "port": port,
	}}
}

// deliverWaiting lets a daemon deliver what waits for a while, and gives the rate at the hosts that are well.
func (b *bench) deliverWaiting(ctx context.Context, isImpaired bool) (rate float64, figures map[string]float64, err error) {
	s, err := b.waitingStage(ctx, or(b.Mail.Destinations, mailDestinations))
	if err != nil {
		return 0, nil, err
	}
	d, err := b.cluster.create(ctx, s.database)
	if err != nil {
		return 0, nil, err
	}
	hosts, err := b.openHosts(ctx, isImpaired)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, hosts.close()) }()
	listen, err := site.FreeAddress(ctx)
	if err != nil {
		return 0, nil, err
	}
	relay, err := b.serveMail(ctx, d, listen, byNameServer(hosts.port), mailLargeCache, "--name-server", hosts.names.address)
	if err != nil {
		return 0, nil, err
	}
	figures = map[string]float64{}
	relayed, lasted := 0, time.Duration(0)
	defer func() { err = errors.Join(err, relay.stop(ctx, figures, relayed, lasted)) }()
	if !waitUntil(ctx, time.Now().Add(b.WarmUp)) {
		return 0, nil, context.Cause(ctx)
	}
	before, _ := hosts.well.Messages()
	begun, processors := time.Now(), readProcessorTimes()
	var memory []float64
	end := begun.Add(b.Duration)
	for time.Now().Before(end) {
		if !waitUntil(ctx, time.Now().Add(min(mailSample, time.Until(end)))) {
			return 0, nil, context.Cause(ctx)
		}
		memory = append(memory, float64(relay.memory())/1e6)
	}
	after, last := hosts.well.Messages()
	if after == before {
		return 0, nil, errors.New("nothing was delivered in that time")
	}
	if now := readProcessorTimes(); now.total > processors.total {
		figures["cpu_percent"] = 100 * (now.busy - processors.busy) / (now.total - processors.total)
	}
	addMemory(figures, memory)
	lasted, relayed = last.Sub(begun), after
	return float64(after-before) / lasted.Seconds(), figures, nil
}

// mailHosts are where messages go.
type mailHosts struct {
	port       int
	well, slow *postfix.Sink
	dead       *silentHost
	names      *nameServer
}

func (b *bench) openHosts(ctx context.Context, isImpaired bool) (h *mailHosts, err error) {
	h = &mailHosts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	address, err := site.FreeAddress(ctx)
	if err != nil {
		return h, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return h, fmt.Errorf("read an address: %w", err)
	}
	if h.port, err = strconv.Atoi(port); err != nil {
		return h, fmt.Errorf("read an address: %w", err)
	}
	if h.well, err = postfix.StartSink(ctx, net.JoinHostPort(wellHost, port), 0); err != nil {
		return h, err
	}
	special := map[string]string{}
	if isImpaired {
		if h.slow, err = postfix.StartSink(ctx, net.JoinHostPort(slowHost, port), time.Second); err != nil {
			return h, err
		}
		if h.dead, err = listenSilently(ctx, net.JoinHostPort(deadHost, port)); err != nil {
			return h, err
		}
		special = map[string]string{destination(0): slowHost, destination(1): deadHost}
	}
	h.names, err = serveNames(ctx, wellHost, special)
	return h, err
}

func (h *mailHosts) close() error {
	var failures []error
	for _, sink := range []*postfix.Sink{h.well, h.slow} {
		if sink != nil {
			failures = append(failures, sink.Stop())
		}
	}
	if h.dead != nil {
		h.dead.close()
	}
	if h.names != nil {
		failures = append(failures, h.names.close())
	}
	return errors.Join(failures...)
}
