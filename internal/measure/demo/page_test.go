package demo

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// hostile is text that would do something if it were taken for HTML.
const hostile = `<img src=https://example.invalid/x onerror=alert(1)>&"'`

// failedResult is a result with something of everything in it, and with names from outside that are up to no good.
func failedResult() Result {
	r := Result{
		Findings:      Findings{MessagesSent: 48001, MessagesReceived: 48000, Lost: 1, Examples: []string{"Message 7 did not arrive. " + hostile}},
		ReadersKilled: 1,
		Seconds:       24, MessagesPerSecond: 2000,
		LeftBehind: Leftovers{ClosedTargets: 64},
		Settings:   Settings{Senders: 16, Readers: 4, Conversations: 64, DurationSeconds: 24},
		Machine:    machine.Machine{CPU: "A CPU " + hostile, Cores: 8, MemoryBytes: 16 << 30, OS: "An OS", PostgresVersion: "18.1"},
		Server:     map[string]string{"fsync": "on", "shared_buffers": hostile},
		StartedAt:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		kill:       kill{seconds: 9.5, process: 4711},
	}
	for i, size := range PayloadBytes {
		r.Payloads = append(r.Payloads, Payload{
			PayloadBytes: size, MessagesSent: 12000, MessagesReceived: 12000, SendSeconds: 6, Seconds: 6,
			MessagesPerSecond: 2500 - 300*float64(i), ReceiveCalls: 900, MessagesPerCallMedian: 9, MessagesPerCallMax: 200,
			SendP50MS: 3.2, SendP99MS: 20.1, begun: 6 * float64(i),
		})
	}
	for i := range 97 {
		r.samples = append(r.samples, Sample{Seconds: float64(i) / 4, Sent: int64(500 * i), Received: int64(max(0, 500*i-100))})
	}
	for n := range 9 {
		r.batches = append(r.batches, batch{atLeast: 1 << n, calls: int64(900 - 90*n)})
	}
	return r
}

func TestPageStatesWhatHappened(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := failedResult().WritePage(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Failed: 1 lost.", "48,001", "Message 7 did not arrive.", "reader killed", "server process 4711", "PostgreSQL 18.1",
		"almost 5,000", "almost 12,000", "over 18,000", "The machines differ", "2–3", "--senders 16 --readers 4 --conversations 64 --duration 24s",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// picturesVariable names a folder for pictures of the page, for a person to inspect.
const picturesVariable = "PARLEY_TEST_PICTURES"

// show opens a page, which asks for nothing else, and about which the browser has nothing to complain.
func show(t *testing.T, b *browser, page []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: path}).String()
	b.open(address)
	for _, requested := range b.requested {
		if requested != address && !strings.HasPrefix(requested, "data:") {
			t.Errorf("the page asked for %s", requested)
		}
	}
	if len(b.complained) > 0 {
		t.Errorf("the browser complains: %s", b.complained)
	}
}

func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	var page bytes.Buffer
	if err := failedResult().WritePage(&page); err != nil {
		t.Fatal(err)
	}
	show(t, b, page.Bytes())
	checkClaims(t, b, []claim{
		{"all charts are drawn, large enough to be seen", `[...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width > 300 && s.getBoundingClientRect().height > 60).length == 3`},
		{"both lines have all their points", `[...document.querySelectorAll("#throughput-title")].length == 1 && [...document.querySelectorAll("polyline")].every(p => p.points.numberOfItems == 48)`},
		{"bars are as long as their values", `(w => Math.abs(w[0] / w[6] - 2500 / 18000) < 0.01 && Math.abs(w[5] / w[6] - 12000 / 18000) < 0.01)([...document.querySelectorAll("svg.broad[aria-labelledby^=payloads] rect")].map(r => r.getBoundingClientRect().width))`},
		{"no text became an element", `document.querySelectorAll("img,script").length == 0`},
		{"the verdict can be read", `document.querySelector(".verdict.bad").innerText.startsWith("Failed: 1 lost.")`},
	})
	checkColours(t, b)
	checkLayout(t, b, "one-server")
}

// claim is a property of a page, as an expression that is true then.
type claim struct{ what, expression string }

func checkClaims(t *testing.T, b *browser, claims []claim) {
	t.Helper()
	for _, want := range claims {
		var holds bool
		if b.evaluate(want.expression, &holds); !holds {
			t.Errorf("not so: %s", want.what)
		}
	}
}

// checkColours checks the page in the light and in the dark.
func checkColours(t *testing.T, b *browser) {
	t.Helper()
	const paper = `getComputedStyle(document.body).backgroundColor`
	const ink = `getComputedStyle(document.body).color`
	seen := map[string]string{}
	for _, colours := range []string{"light", "dark"} {
		b.dress(900, colours)
		var background, text string
		b.evaluate(paper, &background)
		b.evaluate(ink, &text)
		if background == text || background == seen["paper"] {
			t.Errorf("%s: %s on %s", colours, text, background)
		}
		seen["paper"] = background
	}
}
