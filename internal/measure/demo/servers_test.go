package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// failedServersResult is a result of four servers with something of everything in it.
func failedServersResult() ServersResult {
	config := ServersConfig{Servers: 4}
	r := ServersResult{
		Findings: Findings{MessagesSent: 70001, MessagesReceived: 70000, Lost: 1, Examples: []string{"Message 7 did not arrive. " + hostile}},
		Seconds:  28, MessagesPerSecond: 2500,
		Cut: Cut{Initiator: "initiator 1", AtSeconds: 13.5, Seconds: 1.4, ConnectionsBroken: 2, WaitingMax: 4321, CaughtUpSeconds: 3.2},
		Links: []Link{
			{Initiator: "initiator 1", MessagesSent: 30000, CarriedBytes: 40_000_000},
			{Initiator: "initiator 2", MessagesSent: 20001, CarriedBytes: 30_000_000},
			{Initiator: "initiator 3", MessagesSent: 20000, CarriedBytes: 20_000_000},
		},
		Settings:  ServersSettings{Servers: 4, Settings: Settings{Senders: 15, Readers: 4, Conversations: 60, DurationSeconds: 28}},
		Machine:   machine.Machine{CPU: "A CPU " + hostile, Cores: 8, OS: "An OS", PostgresVersion: "18.1"},
		Server:    map[string]string{"fsync": "on"},
		StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	for i, p := range config.plan() {
		r.Phases = append(r.Phases, Phase{
			Payload: Payload{
				PayloadBytes: p.bytes, MessagesReceived: 10000, MessagesPerSecond: 2500 - 100*float64(i), SendP50MS: 3.2, SendP99MS: 20.1,
				begun: 4 * float64(i),
			},
			Initiators: p.initiators, IsSpread: p.spread, HasCut: p.cut, WaitingMax: 100, label: p.label(),
		})
	}
	for i := range 113 {
		sent := int64(200 * i)
		r.samples = append(r.samples, FlowSample{
			Seconds: float64(i) / 4, Sent: []int64{sent, sent, sent}, Waiting: []int64{10, 5, 0}, Received: max(0, 600*int64(i)-15),
		})
	}
	return r
}

func TestPlanOfFourServersHasAllOfThePapersFigures(t *testing.T) {
	t.Parallel()
	var labels []string
	for _, p := range (ServersConfig{Servers: 4}).plan() {
		label := p.label()
		if p.cut {
			label += ", cut"
		}
		labels = append(labels, label)
	}
	want := "1 × 100 B; 2 × 100 B; 3 × 100 B; 3 × 1 KB, cut; 3 × 4 KB; 3 × 8 KB; 3 × 100 B, 1 in 150"
	if got := strings.Join(labels, "; "); got != want {
		t.Errorf("the phases are %s, want %s", got, want)
	}
}

func TestServersConfigurationThatCannotBePlayedIsRefused(t *testing.T) {
	t.Parallel()
	good := func() ServersConfig {
		return ServersConfig{Servers: 4, Config: Config{Senders: 15, Readers: 4, Conversations: 60, Duration: time.Second}}
	}
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*ServersConfig){
		"no target":                  func(c *ServersConfig) { c.Servers = 0 },
		"more than the paper has":    func(c *ServersConfig) { c.Servers = 5 },
		"an initiator that is idle":  func(c *ServersConfig) { c.Senders = 2 },
		"no conversation for one":    func(c *ServersConfig) { c.Conversations = 2 },
		"too many to leave 149 idle": func(c *ServersConfig) { c.Conversations = 1000 },
		"no reader":                  func(c *ServersConfig) { c.Readers = 0 },
		"more sessions than allowed": func(c *ServersConfig) { c.Senders = 200 },
		"no time":                    func(c *ServersConfig) { c.Duration = time.Microsecond },
	} {
		config := good()
		change(&config)
		if err := config.Validate(); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	for number := range 20 {
		sum := 0
		for i := range 3 {
			part := share(number, i, 3)
			if part < number/3 || part > number/3+1 {
				t.Errorf("of %d, initiator %d has %d", number, i, part)
			}
			sum += part
		}
		if sum != number {
			t.Errorf("the shares of %d add up to %d", number, sum)
		}
	}
}

func TestServersPageStatesWhatHappenedBesideThePaper(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := failedServersResult().WritePage(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Failed: 1 lost.", "70,001", "Message 7 did not arrive.", "PostgreSQL 18.1", "3 initiators and one target",
		"almost 5,000", "almost 12,000", "over 18,000", "figures 2, 3 and 4", "figure 5", "up to 315 percent", "45 threads (3 × 15)",
		"this run, 1 initiator", "this run, 3 initiators", "this run, 1 KB, link cut", "this run, one in 150", "was -17 percent here, with 15 senders",
		"4,321 messages at most", "cut for 1.4 s, with 2 connections", "initiator 3 – target", "1,333", "differ by more than fifteen years",
		"--servers 4 --senders 15 --readers 4 --conversations 60 --duration 28s",
	} {
		if !strings.Contains(strings.ReplaceAll(page.String(), "\u00a0", " "), strings.ReplaceAll(want, "+", "&#43;")) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page.String(), hostile) {
		t.Error("text from outside became HTML")
	}
}

func TestServersTableStandsBesideThePaper(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	if err := failedServersResult().WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 × 1 KB, link cut", "figure 4  paper, 3 initiator servers  over 18,000", "lost                                            1\n",
		"connections broken by the cut                   2\n", "The link of initiator 1 was cut for 1.4 s.", "Failed: 1 lost.",
	} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &table)
		}
	}
}

func TestServersRunWithoutARealCutHasFailed(t *testing.T) {
	t.Parallel()
	r := failedServersResult()
	r.Findings = Findings{MessagesSent: 5, MessagesReceived: 5}
	if want := "All 5 messages arrived at the other server exactly once, in order and unchanged, though a link was cut for 1.4 s. " +
		"Nothing was left behind."; r.Verdict() != want {
		t.Errorf("%q, want %q", r.Verdict(), want)
	}
	r.Cut.ConnectionsBroken = 0
	if want := "Failed: no link was cut while it was in use."; r.Verdict() != want {
		t.Errorf("%q, want %q", r.Verdict(), want)
	}
}

func TestServersResultAsJSONHasTheStableFields(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(failedServersResult())
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"passed", "messages_sent", "messages_received", "lost", "duplicated", "out_of_order", "corrupted", "never_sent", "examples",
		"seconds", "messages_per_second", "phases", "cut", "links", "left_behind", "settings", "machine", "server_settings", "started_at", "html",
	} {
		if _, ok := object[name]; !ok {
			t.Errorf("field %s is missing", name)
		}
	}
	phase := object["phases"].([]any)[0].(map[string]any)
	for _, name := range []string{"payload_bytes", "messages_per_second", "initiators", "is_spread", "has_cut", "waiting_max"} {
		if _, ok := phase[name]; !ok {
			t.Errorf("field %s of a phase is missing", name)
		}
	}
}

func TestFlowTerminalShowsEachInitiatorAndItsLink(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := ShowServers(&out, true)
	o.Notice("ready")
	o.Progress(Flow{Phase: "2 × 100 B", Initiators: []InitiatorFlow{{}, {}}, ReceivedPerSecond: 3000})
	o.Notice("cut")
	o.Progress(Flow{
		Phase: "2 × 1 KB", Elapsed: 4 * time.Second, Duration: 28 * time.Second, Sent: 23456, Received: 13400, ReceivedPerSecond: 1500,
		Initiators: []InitiatorFlow{
			{Name: "initiator 1", SentPerSecond: 1000, Waiting: 12345, Link: LinkCut}, {Name: "initiator 2", SentPerSecond: 500, Link: LinkUp},
		},
	})
	want := []string{
		"ready",
		"cut",
		"  initiator 1  ██████████····················     1,000/s sent          12,345 waiting  ━╳ ━ link CUT",
		"  initiator 2  █████·························       500/s sent               0 waiting  ━━━━ link up",
		"  target       ███████████████···············     1,500/s received      10,056 under way",
		"  2 × 1 KB; 23,456 sent, 13,400 received; 4 of about 28 s",
		"",
	}
	if got := screen(t, out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the terminal shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFlowLinesHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := ShowServers(&out, false)
	o.Notice("ready")
	o.Progress(Flow{
		Phase: "1 × 4 KB", Elapsed: time.Second, ReceivedPerSecond: 1900,
		Initiators: []InitiatorFlow{{Name: "initiator 1", SentPerSecond: 2000, Waiting: 7, Link: LinkIdle}},
	})
	want := "ready\n  1.0 s  1 × 4 KB   initiator 1 2,000/s, 7 waiting, link idle; target 1,900/s\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
