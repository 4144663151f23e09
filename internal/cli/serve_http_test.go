package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/parleytest"
)

var servedAt = regexp.MustCompile(`metrics are served".*address=(\S+)`)

// The daemon serves its metrics, and says that it is ready, for as long as it runs.
func TestServeReportsItsHealth(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	a := &verb.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: write}
	ctx, stop := context.WithCancel(t.Context())
	code := make(chan int, 1)
	pool := parleytest.Database(t)
	dsn := parleytest.DSN(t, pool)
	for _, statement := range []string{
		"create procedure public.work() language sql as $$ select parley.receive('work', 1) $$",
		`select parley.create_queue('work', activation_procedure => 'public.work', max_queue_readers => 1, execute_as => 'SELF'),
			parley.create_service('work', 'work', array['DEFAULT'])`,
		"select parley.send(parley.begin_dialog('work', 'work')::uuid, 'DEFAULT', 'x'::bytea)",
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		code <- execute(ctx, a, []string{"serve", "--dsn", dsn, "--http", "127.0.0.1:0"})
		_ = write.Close()
	}()
	address := logged(t, read, servedAt)
	body := await(t, "http://"+address+"/readyz", http.StatusOK)
	if !strings.Contains(body, `"ready":true`) {
		t.Errorf("/readyz says %s", body)
	}
	// The engine's work shows: it leads, and its reader takes the message.
	for _, want := range []string{"parley_leader{", "parley_readers_started_total{", "parley_readers_ended_total{", "parley_queue_dequeued_rows_total{"} {
		shown := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(want) + `[^}]*\} [1-9]`)
		awaitText(t, "http://"+address+"/metrics", shown)
	}
	for _, want := range []string{"parley_up{", "parley_leader{", "parley_daemon_statements_total{", "go_goroutines"} {
		if body := await(t, "http://"+address+"/metrics", http.StatusOK); !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	stop()
	if got := parleytest.Receive(t, code, "the end of the daemon"); got != 0 {
		t.Errorf("the daemon ended with %d", got)
	}
}

// logged reads a log until a line matches, and discards the rest.
func logged(t *testing.T, log io.Reader, what *regexp.Regexp) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		seen := ""
		buffer := make([]byte, 4096)
		for {
			n, err := log.Read(buffer)
			seen += string(buffer[:n])
			if match := what.FindStringSubmatch(seen); match != nil {
				select {
				case found <- match[1]:
				default:
				}
			}
			if err != nil {
				close(found)
				return
			}
		}
	}()
	text := parleytest.Receive(t, found, "a line of the log like "+what.String())
	if text == "" {
		t.Fatalf("the log never said %s", what)
	}
	return text
}

// awaitText asks until the answer says something.
func awaitText(t *testing.T, url string, what *regexp.Regexp) {
	t.Helper()
	deadline := time.After(parleytest.Patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		body := await(t, url, http.StatusOK)
		if what.MatchString(body) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s never said %s but\n%s", url, what, body)
		case <-tick.C:
		}
	}
}

// await asks until the answer has a status.
func await(t *testing.T, url string, status int) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	deadline := time.After(parleytest.Patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode == status {
			return string(body)
		}
		select {
		case <-deadline:
			t.Fatalf("%s says %d: %s", url, response.StatusCode, body)
		case <-tick.C:
		}
	}
}
