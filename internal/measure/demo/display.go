package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// NewLines returns an Observer for logs and pipes: a line a second.
func NewLines(out io.Writer) Observer { return &lines{out: out} }

type lines struct {
	out  io.Writer
	last time.Time
}

func (l *lines) Notice(text string) { fmt.Fprintln(l.out, text) }

func (l *lines) Progress(p Progress) {
	if now := time.Now(); now.Sub(l.last) >= time.Second {
		l.last = now
		fmt.Fprintf(l.out, "%5.1f s  %5s  %s sent, %s received  (%s/s, %s/s)\n", p.Elapsed.Seconds(), bytesText(p.PayloadBytes),
			thousands(p.Sent), thousands(p.Received), rate(p.SentPerSecond), rate(p.ReceivedPerSecond))
	}
}

// NewTerminal returns an Observer for a terminal: a few lines that are drawn over, below the notices.
func NewTerminal(out io.Writer) Observer {
	return &terminal{out: out, best: make([]float64, len(PayloadBytes))}
}

type terminal struct {
	out io.Writer
	// drawn is how many lines stand below the notices.
	drawn int
	// best is the largest rate seen in each phase.
	best []float64
}

const (
	clearBelow = "\x1b[J"
	barLength  = 30
)

// erase goes back to where the drawing began.
func (t *terminal) erase() string {
	if t.drawn == 0 {
		return ""
	}
	up := fmt.Sprintf("\x1b[%dA\r", t.drawn) + clearBelow
	t.drawn = 0
	return up
}

func (t *terminal) Notice(text string) {
	fmt.Fprintln(t.out, t.erase()+text)
}

func (t *terminal) Progress(p Progress) {
	t.best[p.Phase] = max(t.best[p.Phase], p.ReceivedPerSecond)
	most := 1.0
	for _, best := range t.best {
		most = max(most, best)
	}
	var text strings.Builder
	text.WriteString(t.erase())
	for phase, size := range PayloadBytes {
		shown := t.best[phase]
		label := "at best"
		if phase == p.Phase {
			shown, label = p.ReceivedPerSecond, "now"
		}
		if phase > p.Phase {
			label = ""
		}
		fmt.Fprintf(&text, "  %5s  %s  %s\n", bytesText(size), bar(shown, most), rateOf(shown, label))
	}
	fmt.Fprintf(&text, "  %s sent, %s received, %s under way; %.0f of about %.0f s\n",
		thousands(p.Sent), thousands(p.Received), thousands(p.Sent-p.Received), p.Elapsed.Seconds(), p.Duration.Seconds())
	t.drawn = len(PayloadBytes) + 1
	_, _ = io.WriteString(t.out, text.String())
}

// bar draws a rate beside the largest one.
func bar(perSecond, most float64) string {
	full := min(barLength, int(perSecond/most*barLength+0.5))
	return strings.Repeat("█", full) + strings.Repeat("·", barLength-full)
}

func rateOf(perSecond float64, label string) string {
	if label == "" {
		return ""
	}
	return rate(perSecond) + "/s received " + label
}
