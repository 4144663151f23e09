package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/site"
)

// systemRequest is a request by HTTP that a function of PostgreSQL answers through the message box.
const systemRequest = "request"

// FlowRequests is how long a client waits for the answer to a request, at a quarter of the rate at which requests are answered at most.
type FlowRequests struct {
	Latency
	PeakPerSecond float64 `json:"peak_per_second"`
	Rate          int     `json:"rate"`
	Size          int     `json:"size"`
	InsertP50MS   float64 `json:"insert_p50_ms"` // of a bare INSERT with its commit, in the same run
	ToInsert      float64 `json:"to_insert"`     // the median in medians of an INSERT
}

// requests measures requests: as many as there can be first, and then at a quarter of that rate, whatever the answers take.
func (f *flow) requests(ctx context.Context, size int) (result *FlowRequests, err error) {
	insert, err := f.insertTime(ctx)
	if err != nil {
		return nil, err
	}
	result = &FlowRequests{Size: size, InsertP50MS: insert}
	err = f.onDesk(ctx, func(address string) error {
		c := &clients{
			address: address, body: bodiesOf(size), http: &http.Client{Transport: &http.Transport{
				MaxIdleConnsPerHost: f.Connections, MaxConnsPerHost: f.Connections, DisableCompression: true,
			}},
		}
		defer c.http.CloseIdleConnections()
		if _, err := c.asFastAsTheyCan(ctx, f.Connections, f.WarmUp); err != nil {
			return err
		}
		answered, err := c.asFastAsTheyCan(ctx, f.Connections, f.Duration)
		if err != nil {
			return err
		}
		result.PeakPerSecond = float64(answered) / f.Duration.Seconds()
		result.Rate = max(1, int(result.PeakPerSecond/4))
		warm := int64(f.WarmUp.Seconds() * float64(result.Rate))
		count := warm + max(1, int64(f.Duration.Seconds()*float64(result.Rate)))
		sent, got, err := c.atRate(ctx, count, result.Rate)
		if err != nil {
			return err
		}
		round, err := takeTimes(sent, got, min(warm, count-1))
		result.Latency = round.Latency
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measure requests: %w", err)
	}
	result.ToInsert = result.P50MS / insert
	return result, nil
}

// onDesk runs work on a node that takes requests in and has a function answer them.
func (f *flow) onDesk(ctx context.Context, work func(address string) error) (err error) {
	d, err := f.broker(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.cluster.drop(context.WithoutCancel(ctx), d)) }()
	folder, err := os.MkdirTemp("", "parley-bench-request-")
	if err != nil {
		return fmt.Errorf("make a folder for the node: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	listen, err := site.FreeAddress(ctx)
	if err != nil {
		return err
	}
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		const answers = `create function public.answer(document text) returns text language sql as $$ select document $$`
		if _, err := conn.Exec(ctx, answers); err != nil {
			return fmt.Errorf("make the function that answers: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	stop, err := f.startFlow(ctx, d, folder, listen, []string{"--allow-listen", listen}, func(role string) map[string]any {
		return deskDefinitions(listen, f.Connections, role)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	return work("http://" + listen + "/desk")
}

// deskDefinitions are a location that responds, and a port by which a function answers.
func deskDefinitions(listen string, connections int, role string) map[string]any {
	return map[string]any{
		"application":  map[string]any{"Bench": map[string]any{"tracking": true}},
		"host":         map[string]any{"Desk": map[string]any{"role": role}},
		"receive port": map[string]any{"Desk": map[string]any{"application": "Bench", "responds": true}},
		"receive location": map[string]any{"Desk": map[string]any{
			"receive_port": "Desk", "host": "Desk", "adapter": "HTTP", "address": "http://" + listen + "/desk",
			"settings": map[string]any{"authentication": "none", "max_requests": 2 * connections},
		}},
		"send port": map[string]any{"Function": map[string]any{
			"application": "Bench", "host": "Desk", "adapter": "PostgreSQL", "address": "local", "responds": true,
			"filter": [][]map[string]any{{{"property": "ReceivePortName", "operator": "=", "value": "Desk"}}},
			"settings": map[string]any{
				"function": "public.answer", "arguments": map[string]any{"document": map[string]any{"body": "text"}},
			},
		}},
	}
}

// clients send requests, each with a number of its own.
type clients struct {
	address string
	body    func(number int64) []byte
	http    *http.Client
	next    atomic.Int64
}

// ask sends one request, and compares the answer with what it sent.
func (c *clients) ask(ctx context.Context, number int64) error {
	body := c.body(number)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("read an answer: %w", err)
	case answer.StatusCode != http.StatusOK || !bytes.Equal(got, body):
		return fmt.Errorf("the answer to request %d is %d %q", number, answer.StatusCode, got)
	}
	return nil
}

// asFastAsTheyCan has so many clients ask one request after the other, and gives how many were answered.
func (c *clients) asFastAsTheyCan(ctx context.Context, count int, duration time.Duration) (answered int64, err error) {
	var asking sync.WaitGroup
	var done atomic.Int64
	var failed atomic.Pointer[error]
	until := time.Now().Add(duration)
	for range count {
		asking.Go(func() {
			for time.Now().Before(until) && failed.Load() == nil {
				if err := c.ask(ctx, c.next.Add(1)); err != nil {
					failed.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	asking.Wait()
	if cause := failed.Load(); cause != nil {
		return 0, *cause
	}
	return done.Load(), nil
}

// atRate asks at a rate, whatever the answers take: each request has its moment, and its time begins then.
func (c *clients) atRate(ctx context.Context, count int64, rate int) (sent, got []time.Time, err error) {
	sent, got = make([]time.Time, count), make([]time.Time, count)
	var asking sync.WaitGroup
	var failed atomic.Pointer[error]
	begun := time.Now()
	for i := range count {
		sent[i] = begun.Add(time.Duration(float64(i) / float64(rate) * float64(time.Second)))
		timer := time.NewTimer(time.Until(sent[i]))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil || failed.Load() != nil {
			break
		}
		asking.Go(func() {
			if err := c.ask(ctx, c.next.Add(1)); err != nil {
				failed.Store(&err)
			}
			got[i] = time.Now()
		})
	}
	asking.Wait()
	if cause := failed.Load(); cause != nil {
		return nil, nil, *cause
	}
	return sent, got, ctx.Err()
}

// startFlow makes an empty database that of an engine with definitions, and starts a node that serves it.
func (f *flow) startFlow(
	ctx context.Context, d database, folder, readyAt string, flags []string, definitions func(role string) map[string]any,
) (func(ctx context.Context) error, error) {
	err := d.withConnection(ctx, func(conn *pgx.Conn) error {
		return defineFlow(ctx, conn, definitions)
	})
	if err != nil {
		return nil, err
	}
	f.daemons++
	daemon, err := site.StartDaemon(ctx, site.DaemonConfig{
		Program: f.Program, Name: fmt.Sprintf("flow%d", f.daemons), Folder: folder, DSNs: []string{d.dsn()}, System: "flow",
		ReadyAt: readyAt, Args: append(flags, "--log-level", "warn"),
	})
	if err != nil {
		return nil, err
	}
	return daemon.Stop, nil
}

// writeDefinitions gives definitions as the engine takes them.
func writeDefinitions(definitions map[string]any) (string, error) {
	written, err := json.Marshal(definitions)
	if err != nil {
		return "", fmt.Errorf("write the definitions: %w", err)
	}
	return string(written), nil
}
