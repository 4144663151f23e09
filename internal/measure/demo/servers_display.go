package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// NewFlowLines returns a FlowObserver for logs and pipes: a line a second.
func NewFlowLines(out io.Writer) FlowObserver { return &flowLines{out: out} }

type flowLines struct {
	out  io.Writer
	last time.Time
}

func (l *flowLines) Notice(text string) { fmt.Fprintln(l.out, text) }

func (l *flowLines) Flow(f Flow) {
	now := time.Now()
	if now.Sub(l.last) < time.Second {
		return
	}
	l.last = now
	var text strings.Builder
	fmt.Fprintf(&text, "%5.1f s  %-9s ", f.Elapsed.Seconds(), f.Phase)
	for _, i := range f.Initiators {
		fmt.Fprintf(&text, " %s %s/s, %s waiting, link %s;", i.Name, rate(i.SentPerSecond), thousands(i.Waiting), i.Link)
	}
	fmt.Fprintf(&text, " target %s/s\n", rate(f.ReceivedPerSecond))
	_, _ = io.WriteString(l.out, text.String())
}

// NewFlowTerminal returns a FlowObserver for a terminal: a few lines that are drawn over, below the notices.
func NewFlowTerminal(out io.Writer) FlowObserver {
	return &flowTerminal{terminal: terminal{out: out}}
}

type flowTerminal struct {
	terminal
	// most is the largest rate seen, which the bars are drawn to.
	most float64
}

func (t *flowTerminal) Flow(f Flow) {
	t.most = max(t.most, f.ReceivedPerSecond, 1)
	for _, i := range f.Initiators {
		t.most = max(t.most, i.SentPerSecond)
	}
	var text strings.Builder
	text.WriteString(t.erase())
	for _, i := range f.Initiators {
		fmt.Fprintf(&text, "  %-11s  %s %9s/s sent      %10s waiting  %s\n", i.Name, bar(i.SentPerSecond, t.most), rate(i.SentPerSecond),
			thousands(i.Waiting), cable(i.Link))
	}
	fmt.Fprintf(&text, "  %-11s  %s %9s/s received  %10s under way\n", targetName, bar(f.ReceivedPerSecond, t.most),
		rate(f.ReceivedPerSecond), thousands(max(0, f.Sent-f.Received)))
	fmt.Fprintf(&text, "  %s; %s sent, %s received; %.0f of about %.0f s\n",
		f.Phase, thousands(f.Sent), thousands(f.Received), f.Elapsed.Seconds(), f.Duration.Seconds())
	t.drawn = len(f.Initiators) + 2
	_, _ = io.WriteString(t.out, text.String())
}

// cable draws a link.
func cable(state LinkState) string {
	switch state {
	case LinkUp:
		return "━━━━ link up"
	case LinkCut:
		return "━╳ ━ link CUT"
	case LinkIdle:
		return "╌╌╌╌ link idle"
	}
	return string(state)
}
