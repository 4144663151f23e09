package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/console"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

const (
	// consoleQueue is the queue whose page is open.
	consoleQueue = "jobs"
	// pageInterval is how often a page of the console asks for itself, and pageShare how many times as long as it took to be made it waits
	// at least, as its script does.
	pageInterval = 2 * time.Second
	pageShare    = 50
	// sampleInterval is how often the time of backends is read: what one uses after the last time before it ends is not known.
	sampleInterval = 100 * time.Millisecond
)

// openPages are pages that somebody has open, each in a window that refreshes itself.
type openPages struct {
	Variant
	windows [][]string // the paths that each asks for
}

func consolePages() []openPages {
	overview, diagnosis := [][]string{{"/"}}, [][]string{{"/diagnosis"}}
	queue := [][]string{{"/queues/" + consoleQueue, "/queues/" + consoleQueue + "/figures"}}
	var lists [][]string
	for _, path := range []string{
		"/queues", "/conversations", "/failed", "/failed/messages", "/schedules", "/delayed", "/servers", "/mail", "/flow", "/daemon",
		"/actions",
	} {
		lists = append(lists, []string{path})
	}
	return []openPages{
		{Variant{"overview", "the overview, whose findings are made anew every 30 seconds"}, overview},
		{Variant{"queue", "the page of a queue of --messages, with its chart"}, queue},
		{Variant{"lists", "one list of each kind, each in a window of its own"}, lists},
		{Variant{"diagnosis", "the findings, made anew each time"}, diagnosis},
		{Variant{"every", "a page of each kind, each in a window of its own"}, slices.Concat(overview, queue, lists, diagnosis)},
	}
}

// consoleScenario measures what the server spends on pages of the console that are open.
func consoleScenario() Scenario {
	s := Scenario{
		Name: "console", Messages: 100_000,
		Short: "what pages of the console that are open cost the server: processor of its backends, at a refresh every two seconds",
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, pages := range consolePages() {
				if b.wants(pages.Name) {
					trials = append(trials, consoleTrial(b, pages))
				}
			}
			return b.measure(ctx, trials)
		},
	}
	for _, pages := range consolePages() {
		s.Variants = append(s.Variants, pages.Variant)
	}
	return s
}

// consoleTrial measures pages for one user, whose connections are those of one session.
func consoleTrial(b *bench, pages openPages) trial {
	var costs []float64
	return trial{
		result: Result{System: systemParley, Variant: pages.Name, Sessions: 1},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "database with a queue to look at", func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				return b.fillForConsole(ctx, conn)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				cost, err := b.costOfPages(ctx, d, pages.windows)
				costs = append(costs, cost)
				return 0, err
			})
		},
		conclude: func(r *Result) { r.ProcessorMSPerMinute = new(statistics.Median(costs)) },
	}
}

// fillForConsole lets --messages wait, and as many hundredths of them as are shown in lists: delayed, set aside, in conversations.
func (b *bench) fillForConsole(ctx context.Context, conn *pgx.Conn) error {
	for _, statement := range []string{
		"select parley.create_queue('" + consoleQueue + "', kind => 'SIMPLE')",
		"select parley.create_queue('calls'), parley.create_service('caller', 'calls', contracts => array['DEFAULT']), " +
			"parley.create_service('called', 'calls', contracts => array['DEFAULT'])",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("prepare what a console shows: %w", err)
		}
	}
	for _, statement := range []string{
		"select parley.put_batch('" + consoleQueue + "', array(select 'x' from generate_series(1, $1::integer)))",
		"select parley.put('" + consoleQueue + "', 'x'::text, deliver_at => '2100-01-01') from generate_series(1, $1::integer / 100)",
		"select parley.fail('" + consoleQueue + "', p.message_id, error => 'broken') " +
			"from parley.peek_messages('" + consoleQueue + "', $1::integer / 100) as p",
		"select parley.send(parley.begin_dialog('caller', 'called', encryption => false), body => 'x'::text) " +
			"from generate_series(1, $1::integer / 100)",
	} {
		if _, err := conn.Exec(ctx, statement, b.Messages); err != nil {
			return fmt.Errorf("prepare what a console shows: %w", err)
		}
	}
	_, err := conn.Exec(ctx, "analyze")
	return err
}

// costOfPages has pages open and gives what the backends of the console use of a processor, in milliseconds for a minute.
func (b *bench) costOfPages(ctx context.Context, d database, windows [][]string) (cost float64, err error) {
	stop, err := watch(ctx, d.config, windows)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	used, begun := map[uint32]time.Duration{}, time.Now()
	for end := begun.Add(b.Duration); time.Now().Before(end); {
		if err := b.sampleConsole(ctx, d, used); err != nil {
			return 0, err
		}
		if !waitUntil(ctx, time.Now().Add(sampleInterval)) {
			return 0, context.Cause(ctx)
		}
	}
	if err := b.sampleConsole(ctx, d, used); err != nil {
		return 0, err
	}
	sum := time.Duration(0)
	for _, one := range used {
		sum += one
	}
	return float64(sum) / float64(time.Millisecond) / time.Since(begun).Minutes(), nil
}

// sampleConsole notes what each backend of the console has used so far. One whose session has ended keeps what was noted last.
func (b *bench) sampleConsole(ctx context.Context, d database, used map[uint32]time.Duration) error {
	rows, err := b.cluster.admin.Query(ctx, `
		select a.pid from pg_stat_activity as a where a.datname = $1 and a.application_name = 'parley console'`, d.config.Database)
	if err != nil {
		return fmt.Errorf("find the sessions of the console: %w", err)
	}
	backends, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
	if err != nil {
		return fmt.Errorf("find the sessions of the console: %w", err)
	}
	for _, pid := range backends {
		one, err := processorTime(pid)
		if err == nil {
			used[pid] = one
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// watch serves a console and reads the pages of windows again and again, until the function that comes back stops it. That function
// gives the error of a page that was not shown.
func watch(ctx context.Context, config *pgx.ConnConfig, windows [][]string) (stop func() error, err error) {
	key := rand.Text()
	served, err := console.New(console.Config{Targets: []console.Target{{Name: config.Database, Config: config}}, Key: key})
	if err != nil {
		return nil, err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the console: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1+len(windows))
	go func() { ended <- served.Serve(ctx, listener, nil) }()
	browser, base := &http.Client{Jar: jar}, "http://"+listener.Addr().String()
	if err := readPage(ctx, browser, base+"/login?key="+key); err != nil {
		cancel()
		return nil, errors.Join(err, <-ended)
	}
	for _, paths := range windows {
		go func() { ended <- readPages(ctx, browser, base, paths) }()
	}
	return func() error {
		cancel()
		for range 1 + len(windows) {
			err = errors.Join(err, <-ended)
		}
		return err
	}, nil
}

// readPages reads the pages of a window until ctx ends, which is no error.
func readPages(ctx context.Context, browser *http.Client, base string, pages []string) error {
	for {
		begun := time.Now()
		for _, page := range pages {
			if err := readPage(ctx, browser, base+page); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if !waitUntil(ctx, time.Now().Add(max(pageInterval, pageShare*time.Since(begun)))) {
			return nil
		}
	}
}

func readPage(ctx context.Context, browser *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", address, err)
	}
	answer, err := browser.Do(request)
	if err != nil {
		return fmt.Errorf("read a page of the console: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("read a page of the console: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of the console was answered with %s", request.URL.Path, answer.Status)
	}
	return nil
}
