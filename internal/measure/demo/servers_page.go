package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/measure/report"
)

// WritePage writes the result page of a run on several servers: one HTML file that needs nothing else.
func (r ServersResult) WritePage(out io.Writer) error {
	return writePage(out, r, report.Page{
		Title: "Parley demo, several servers",
		Lead: fmt.Sprintf("The workload of %s, played on %d servers of PostgreSQL %s: %s and one target, "+
			"each with a daemon of its own, joined by mutual TLS.",
			paperName, r.Settings.Servers, r.Machine.PostgresVersion, counted(int64(r.Settings.Servers-1), "initiator", "initiators")),
		Tiles: tiles(r.Findings, r.MessagesPerSecond, report.Tile{
			Value: thousands(int64(r.Cut.ConnectionsBroken)),
			Label: noun(int64(r.Cut.ConnectionsBroken), "connection", "connections") + " broken",
			Bad:   r.Cut.ConnectionsBroken == 0,
		}),
		Sections: []report.Section{
			r.flowSection(), r.waitingSection(), r.initiatorsSection(), r.sizesSection(), r.spreadSection(), r.phasesSection(),
			r.linksSection(), r.checkSection(),
		},
	})
}

// Command is the command line that plays the same run.
func (r ServersResult) Command() string {
	return fmt.Sprintf("go run ./cmd/parley demo --servers %d --senders %d --readers %d --conversations %d --duration %gs",
		r.Settings.Servers, r.Settings.Senders, r.Settings.Readers, r.Settings.Conversations, r.Settings.DurationSeconds)
}

// Verdict states in a sentence how the demo ended.
func (r ServersResult) Verdict() string {
	wrong := wrongs(r.Findings, r.LeftBehind)
	if r.Cut.ConnectionsBroken == 0 {
		wrong = append(wrong, "no link was cut while it was in use")
	}
	if len(wrong) > 0 {
		return "Failed: " + strings.Join(wrong, ", ") + "."
	}
	return fmt.Sprintf("%s arrived at the other server exactly once, in order and unchanged, though a link was cut for %.1f s. "+
		"Nothing was left behind.", allOf(r.MessagesSent), r.Cut.Seconds)
}

func (r ServersResult) flowSection() report.Section {
	var samples []Sample
	for _, s := range r.samples {
		samples = append(samples, Sample{Seconds: s.Seconds, Sent: s.sent(), Received: s.Received})
	}
	sent, received := rates(samples, r.Seconds)
	chart := &report.LineChart{
		ID: "throughput", Title: "Messages sent by all initiators and received by the target per second, over time",
		Description: fmt.Sprintf("Two lines over %.0f seconds, through %d phases.", r.Seconds, len(r.Phases)),
		Unit:        "messages/s",
		Series:      []report.Series{{Name: "sent", Points: sent}, {Name: "received", Points: received}},
		Bands:       r.bands(),
		Marks:       r.cutMarks(),
	}
	return report.Section{
		Title: "Throughput over time", Lines: chart,
		Text: []string{fmt.Sprintf("%s in %s send on %s, one message a transaction. Each database's "+
			"daemon carries what was sent to the target's, over a connection in which both prove who they are. There messages start their own "+
			"readers, at most %d at once. A phase says how many initiators send, and how large the bodies are; between two phases the senders "+
			"pause until everything is received.",
			counted(int64(r.Settings.Senders), "sender", "senders"), counted(int64(r.Settings.Servers-1), "database", "databases"),
			counted(int64(r.Settings.Conversations), "conversation", "conversations"), r.Settings.Readers)},
	}
}

func (r ServersResult) bands() []report.Band {
	var bands []report.Band
	for i, p := range r.Phases {
		end := r.Seconds
		if i+1 < len(r.Phases) {
			end = r.Phases[i+1].begun
		}
		bands = append(bands, report.Band{From: p.begun, To: end, Label: p.shortLabel()})
	}
	return bands
}

func (p Phase) shortLabel() string {
	if p.IsSpread {
		return "spread"
	}
	return p.label
}

func (r ServersResult) cutMarks() []report.Mark {
	return []report.Mark{
		{X: r.Cut.AtSeconds, Label: "link cut"},
		{X: r.Cut.AtSeconds + r.Cut.Seconds, Label: "whole again"},
	}
}

func (r ServersResult) waitingSection() report.Section {
	var behind, others []report.Point
	for _, s := range r.samples {
		if len(s.Waiting) > 0 {
			behind = append(behind, report.Point{X: s.Seconds, Y: float64(s.Waiting[0])})
			others = append(others, report.Point{X: s.Seconds, Y: float64(s.waiting() - s.Waiting[0])})
		}
	}
	return report.Section{
		Title: "The transmission queues, and the cut link",
		Lines: &report.LineChart{
			ID: "waiting", Title: "Messages that wait in the transmission queues, over time",
			Description: "Two lines, one for the initiator whose link was cut and one for the others together.",
			Unit:        "messages",
			Series:      []report.Series{{Name: "the others", Points: others}, {Name: r.Cut.Initiator, Points: behind}},
			Bands:       r.bands(), Marks: r.cutMarks(),
		},
		After: []string{fmt.Sprintf("At %.1f s the link of %s was cut for %.1f s, with %s in use. What its senders sent waited "+
			"in its database, %s at most; the other initiators went on. %.1f s after the link was whole again nothing waited any "+
			"more: the daemon tries a link that is down again after 4 seconds, and then ever more rarely.",
			r.Cut.AtSeconds, r.Cut.Initiator, r.Cut.Seconds, counted(int64(r.Cut.ConnectionsBroken), "connection", "connections"),
			counted(r.Cut.WaitingMax, "message", "messages"), r.Cut.CaughtUpSeconds)},
	}
}

// initiatorsSection stands beside the paper's figures 2, 3 and 4.
func (r ServersResult) initiatorsSection() report.Section {
	bars := &report.BarChart{
		ID: "initiators", Title: "Messages per second by the number of initiators, beside the paper's figures 2 to 4",
		Description: "Bars for one initiator and more in this run, and grey ones for what the paper reports.",
		Unit:        "messages/s, from the first send to the last receive, 100 B",
	}
	for _, p := range r.Phases {
		if p.PayloadBytes != PayloadBytes[0] || p.IsSpread {
			continue
		}
		setup := "this run, 1 initiator"
		if p.Initiators > 1 {
			setup = fmt.Sprintf("this run, %d initiators", p.Initiators)
		}
		bars.Bars = append(bars.Bars, report.Bar{Label: setup, Value: p.MessagesPerSecond, Text: rate(p.MessagesPerSecond)})
	}
	bars.Bars = append(bars.Bars, paperBars()...)
	return report.Section{
		Title: "By number of initiators, beside the paper's figures 2, 3 and 4", Bars: bars,
		After: []string{"The paper's set-up: " + paperMachine + ". " + differentServers},
	}
}

// sizesSection stands beside the paper's figure 4.
func (r ServersResult) sizesSection() report.Section {
	bars := &report.BarChart{
		ID: "payloads", Title: "Messages per second by payload size, all initiators",
		Description: "A bar for each payload size of this run, and a grey one for the paper's small bodies.",
		Unit:        "messages/s, from the first send to the last receive",
	}
	for _, p := range r.Phases {
		if p.Initiators == r.Settings.Servers-1 && !p.IsSpread {
			label := "this run, " + bytesText(p.PayloadBytes)
			if p.HasCut {
				label += ", link cut"
			}
			bars.Bars = append(bars.Bars, report.Bar{Label: label, Value: p.MessagesPerSecond, Text: rate(p.MessagesPerSecond)})
		}
	}
	paper := paperFigures[r.Settings.Servers-2]
	bars.Bars = append(bars.Bars, report.Bar{Label: "paper, small bodies", Value: paper.messagesPerSecond, Text: paper.text, Other: true})
	return report.Section{
		Title: "By payload size, beside the paper's figure 4", Bars: bars,
		After: []string{
			paperSizes + " Here the phase in which the link was cut lasts until the messages behind it have arrived too, so its rate is of " +
				"the cut more than of the size.",
			"Each send here also writes a row to a ledger in the same transaction, and each receive computes an MD5 of every body, " +
				"for the check below.",
		},
	}
}

// spreadSection stands beside the paper's figure 5.
func (r ServersResult) spreadSection() report.Section {
	bars := &report.BarChart{
		ID: "spread", Title: "Messages per second on neighbouring conversations and on one in 150",
		Description: "Two bars, for conversations begun side by side and for every 150th of many.",
		Unit:        "messages/s, from the first send to the last receive, 100 B",
	}
	var near, far float64
	for _, p := range r.Phases {
		if p.Initiators != r.Settings.Servers-1 || p.PayloadBytes != PayloadBytes[0] {
			continue
		}
		label := "this run, neighbours"
		if p.IsSpread {
			label, far = "this run, one in 150", p.MessagesPerSecond
		} else {
			near = p.MessagesPerSecond
		}
		bars.Bars = append(bars.Bars, report.Bar{Label: label, Value: p.MessagesPerSecond, Text: rate(p.MessagesPerSecond)})
	}
	gain := "was not measured here"
	if near > 0 {
		gain = fmt.Sprintf("was %+.0f percent here, with %s", 100*(far/near-1), counted(int64(r.Settings.Senders), "sender", "senders"))
	}
	return report.Section{
		Title: "Neighbouring conversations or one in 150, beside the paper's figure 5", Bars: bars,
		After: []string{paperSpread + " The difference " + gain + ": a send in Parley updates nothing, so there is no page to keep off."},
	}
}

func (r ServersResult) phasesSection() report.Section {
	table := &report.Table{Head: []string{
		"Phase", "Messages", "Messages/s", "Receive calls", "Median batch", "Largest batch", "Send p50", "Send p99", "Waited at most",
	}}
	for _, p := range r.Phases {
		table.Rows = append(table.Rows, []string{
			p.label, thousands(p.MessagesReceived), rate(p.MessagesPerSecond), thousands(p.ReceiveCalls), thousands(p.MessagesPerCallMedian),
			thousands(p.MessagesPerCallMax), fmt.Sprintf("%.1f ms", p.SendP50MS), fmt.Sprintf("%.1f ms", p.SendP99MS), thousands(p.WaitingMax),
		})
	}
	return report.Section{Title: "All phases", Table: table}
}

func (r ServersResult) linksSection() report.Section {
	table := &report.Table{Head: []string{"Link", "Messages", "Bytes on the wire", "Bytes a message"}}
	for _, l := range r.Links {
		table.Rows = append(table.Rows, []string{
			l.Initiator + " – target", thousands(l.MessagesSent), thousands(l.CarriedBytes), thousands(l.CarriedBytes / max(1, l.MessagesSent)),
		})
	}
	return report.Section{Title: "The links", Table: table}
}

func (r ServersResult) checkSection() report.Section {
	return report.Section{
		Title: "What was checked",
		Text: []string{
			"Every send wrote its conversation, sender, number and size to a ledger in its own database, in its own transaction. " +
				"Afterwards the ledgers of all initiators were brought to the target and held against the table that the readers filled " +
				"there: each message must be there once, after all that its sender sent before it on that conversation, with the MD5 its " +
				"body was given; and nothing may be there that was not sent.",
		},
		Table: findingsTable(r.Findings, r.LeftBehind),
	}
}
