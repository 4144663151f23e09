package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/measure/report"
)

// WritePage writes the result page: one HTML file that needs nothing else.
func (r Result) WritePage(out io.Writer) error {
	return writePage(out, r, report.Page{
		Title: "Parley demo",
		Lead:  "The workload of " + paperName + ", played on PostgreSQL " + r.Machine.PostgresVersion + ".",
		Tiles: tiles(r.Findings, r.MessagesPerSecond, report.Tile{
			Value: thousands(r.ReadersKilled), Label: noun(r.ReadersKilled, "reader", "readers") + " killed at work", Bad: r.ReadersKilled != 1,
		}),
		Sections: []report.Section{timeSection(r), payloadSection(r), batchSection(r), checkSection(r)},
	})
}

// tiles show what the check found, what was broken on purpose, and how fast it was.
func tiles(f Findings, perSecond float64, broken report.Tile) []report.Tile {
	return []report.Tile{
		{Value: thousands(f.MessagesSent), Label: "messages sent"},
		{Value: thousands(f.MessagesReceived), Label: "messages received"},
		{Value: thousands(f.Lost), Label: "lost", Bad: f.Lost > 0},
		{Value: thousands(f.Duplicated), Label: "duplicated", Bad: f.Duplicated > 0},
		{Value: thousands(f.OutOfOrder), Label: "out of order", Bad: f.OutOfOrder > 0},
		{Value: thousands(f.Corrupted), Label: "corrupted", Bad: f.Corrupted > 0},
		broken,
		{Value: rate(perSecond), Unit: "/s", Label: "messages, all phases"},
	}
}

func timeSection(r Result) report.Section {
	sent, received := rates(r.samples, r.Seconds)
	chart := &report.LineChart{
		ID: "throughput", Title: "Messages sent and received per second, over time",
		Description: fmt.Sprintf("Two lines over %.0f seconds, one for messages sent and one for messages received, "+
			"through four phases by payload size.", r.Seconds),
		Unit:   "messages/s",
		Series: []report.Series{{Name: "sent", Points: sent}, {Name: "received", Points: received}},
	}
	for i, p := range r.Payloads {
		end := r.Seconds
		if i+1 < len(r.Payloads) {
			end = r.Payloads[i+1].begun
		}
		chart.Bands = append(chart.Bands, report.Band{From: p.begun, To: end, Label: bytesText(p.PayloadBytes)})
	}
	text := fmt.Sprintf("%s on %s, one message a transaction. Messages start their own readers, "+
		"at most %d at once, which receive up to 10,000 at a time. Between two payload sizes the senders pause until everything is received.",
		counted(int64(r.Settings.Senders), "sender sends", "senders send"),
		counted(int64(r.Settings.Conversations), "conversation", "conversations"), r.Settings.Readers)
	section := report.Section{Title: "Throughput over time", Lines: chart, Text: []string{text}}
	if r.kill.process != 0 {
		chart.Marks = []report.Mark{{X: r.kill.seconds, Label: "reader killed"}}
		section.After = []string{fmt.Sprintf("At %.1f s a reader (server process %d) was killed after it had received a batch "+
			"and inserted it, and before it committed. PostgreSQL undid its work, the messages were in the queue again, "+
			"and the queue monitor saw to it that other readers took them.", r.kill.seconds, r.kill.process)}
	}
	return section
}

// rateSeconds is the time over which a point of the chart averages.
const rateSeconds = 0.5

// rates turns counts into messages per second, up to the end of the run.
func rates(samples []Sample, end float64) (sent, received []report.Point) {
	last := Sample{}
	for _, s := range samples {
		seconds := s.Seconds - last.Seconds
		if seconds < rateSeconds {
			continue
		}
		if last.Seconds >= end {
			break
		}
		middle := (s.Seconds + last.Seconds) / 2
		sent = append(sent, report.Point{X: middle, Y: float64(s.Sent-last.Sent) / seconds})
		received = append(received, report.Point{X: middle, Y: float64(s.Received-last.Received) / seconds})
		last = s
	}
	return sent, received
}

// paperBars are the paper's figures, beside the bars of a run.
func paperBars() (bars []report.Bar) {
	for _, f := range paperFigures {
		bars = append(bars, report.Bar{Label: f.setup, Value: f.messagesPerSecond, Text: f.text, Other: true})
	}
	return bars
}

func payloadSection(r Result) report.Section {
	bars := &report.BarChart{
		ID: "payloads", Title: "Messages per second by payload size, beside the paper's figures",
		Description: "Bars for each payload size of this run, and grey ones for what the paper reports with one, two and three " +
			"initiator servers. The table below has the numbers of this run.",
		Unit: "messages/s, from the first send to the last receive",
	}
	table := &report.Table{Head: []string{
		"Payload", "Messages", "Messages/s", "Receive calls", "Median batch", "Largest batch", "Send p50", "Send p99",
	}}
	for _, p := range r.Payloads {
		bars.Bars = append(bars.Bars, report.Bar{
			Label: "this run, " + bytesText(p.PayloadBytes), Value: p.MessagesPerSecond, Text: rate(p.MessagesPerSecond),
		})
		table.Rows = append(table.Rows, []string{
			bytesText(p.PayloadBytes), thousands(p.MessagesReceived), rate(p.MessagesPerSecond), thousands(p.ReceiveCalls),
			thousands(p.MessagesPerCallMedian), thousands(p.MessagesPerCallMax),
			fmt.Sprintf("%.1f ms", p.SendP50MS), fmt.Sprintf("%.1f ms", p.SendP99MS),
		})
	}
	bars.Bars = append(bars.Bars, paperBars()...)
	return report.Section{
		Title: "By payload size, beside the paper",
		Bars:  bars, Table: table,
		After: []string{
			"The paper's set-up, with small bodies in its best case: " + paperMachine + ". " + differentMachines,
			"Each send here also writes a row to a ledger in the same transaction, and each receive computes an MD5 of every body, " +
				"for the check below.",
		},
	}
}

func batchSection(r Result) report.Section {
	columns := &report.ColumnChart{
		ID: "batches", Title: "Receive calls by the number of messages they brought",
		Description: "One column for each class of batch size, as high as the number of receive calls in it.",
		Unit:        "receive calls", ClassUnit: "messages in one call",
	}
	for _, b := range r.batches {
		label := thousands(b.atLeast)
		if b.atLeast > 1 {
			label += "–" + thousands(min(b.atLeast*2-1, 10000))
		}
		columns.Columns = append(columns.Columns, report.Column{Label: label, Value: float64(b.calls), Text: thousands(b.calls)})
	}
	return report.Section{
		Title:   "Batches",
		Columns: columns,
		Text: []string{
			"A receive takes what waits in one conversation group, up to 10,000 messages. Small batches mean that the readers keep up; " +
				"when they fall behind, batches grow and each message costs less.",
		},
	}
}

func checkSection(r Result) report.Section {
	return report.Section{
		Title: "What was checked",
		Text: []string{
			"Every send wrote its conversation, sender, number and size to a ledger, in its own transaction. Afterwards the ledger " +
				"was held against the table that the readers filled: each message must be there once, after all that its sender sent " +
				"before it on that conversation, with the MD5 its body was given; and nothing may be there that was not sent.",
		},
		Table: findingsTable(r.Findings, r.LeftBehind),
		After: []string{
			fmt.Sprintf("Both sides ended all their conversations. The broker remembers %s for half an hour, "+
				"to recognise a first message that comes twice; then they go too.",
				counted(r.LeftBehind.ClosedTargets, "closed target", "closed targets")),
		},
	}
}

func findingsTable(f Findings, l Leftovers) *report.Table {
	return &report.Table{
		Head: []string{"Finding", "Count"},
		Rows: [][]string{
			{"sent, in the ledger", thousands(f.MessagesSent)},
			{"received, in message_drop", thousands(f.MessagesReceived)},
			{"lost", thousands(f.Lost)},
			{"duplicated", thousands(f.Duplicated)},
			{"out of order", thousands(f.OutOfOrder)},
			{"corrupted", thousands(f.Corrupted)},
			{"received, never sent", thousands(f.NeverSent)},
			{"conversations still open", thousands(l.Conversations)},
			{"conversation groups left", thousands(l.ConversationGroups)},
			{"messages left in queues", thousands(l.Messages)},
			{"messages not delivered", thousands(l.Undelivered)},
		},
	}
}

// Command is the command line that plays the same run.
func (r Result) Command() string {
	return fmt.Sprintf("go run ./cmd/parley demo --senders %d --readers %d --conversations %d --duration %gs",
		r.Settings.Senders, r.Settings.Readers, r.Settings.Conversations, r.Settings.DurationSeconds)
}

// Verdict states in a sentence how the demo ended.
func (r Result) Verdict() string {
	wrong := wrongs(r.Findings, r.LeftBehind)
	if r.ReadersKilled != 1 {
		wrong = append(wrong, counted(r.ReadersKilled, "reader", "readers")+" killed instead of one")
	}
	if len(wrong) > 0 {
		return "Failed: " + strings.Join(wrong, ", ") + "."
	}
	return fmt.Sprintf("%s arrived exactly once, in order and unchanged, "+
		"though a reader was killed in mid-transaction. Nothing was left behind.", allOf(r.MessagesSent))
}

// wrongs lists what must not be.
func wrongs(f Findings, l Leftovers) []string {
	var wrong []string
	for _, w := range []struct {
		count     int64
		one, many string
	}{
		{f.Lost, "lost", "lost"},
		{f.Duplicated, "duplicated", "duplicated"},
		{f.OutOfOrder, "out of order", "out of order"},
		{f.Corrupted, "corrupted", "corrupted"},
		{f.NeverSent, "received though never sent", "received though never sent"},
		{l.Conversations, "conversation still open", "conversations still open"},
		{l.ConversationGroups, "conversation group left", "conversation groups left"},
		{l.Messages, "message left in queues", "messages left in queues"},
		{l.Undelivered, "not delivered", "not delivered"},
	} {
		if w.count > 0 {
			wrong = append(wrong, counted(w.count, w.one, w.many))
		}
	}
	return wrong
}
