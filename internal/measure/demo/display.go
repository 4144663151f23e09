package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// display returns an Observer for people: for a terminal a few lines that are drawn over, below the notices, for logs and pipes a
// line a second.
func display[P any](out io.Writer, isTerminal bool, line, picture func(P) string) Observer[P] {
	if isTerminal {
		return &terminal[P]{out: out, picture: picture}
	}
	return &log[P]{out: out, line: line}
}

type log[P any] struct {
	out  io.Writer
	line func(P) string
	last time.Time
}

func (l *log[P]) Notice(text string) { fmt.Fprintln(l.out, text) }

func (l *log[P]) Progress(p P) {
	if now := time.Now(); now.Sub(l.last) >= time.Second {
		l.last = now
		fmt.Fprintln(l.out, l.line(p))
	}
}

type terminal[P any] struct {
	out     io.Writer
	picture func(P) string // of whole lines
	drawn   int            // lines stand below the notices
}

const (
	clearBelow = "\x1b[J"
	barLength  = 30
)

// erase goes back to where the drawing began.
func (t *terminal[P]) erase() string {
	if t.drawn == 0 {
		return ""
	}
	up := fmt.Sprintf("\x1b[%dA\r", t.drawn) + clearBelow
	t.drawn = 0
	return up
}

func (t *terminal[P]) Notice(text string) {
	fmt.Fprintln(t.out, t.erase()+text)
}

func (t *terminal[P]) Progress(p P) {
	erase, picture := t.erase(), t.picture(p)
	t.drawn = strings.Count(picture, "\n")
	_, _ = io.WriteString(t.out, erase+picture)
}

// bar draws a number beside the largest one.
func bar(number, most float64) string {
	full := min(barLength, int(number/most*barLength+0.5))
	return strings.Repeat("█", full) + strings.Repeat("·", barLength-full)
}

// Show returns an Observer for people.
func Show(out io.Writer, isTerminal bool) Observer[Progress] {
	best := make([]float64, len(PayloadBytes)) // the largest rate seen in each phase
	line := func(p Progress) string {
		return fmt.Sprintf("%5.1f s  %5s  %s sent, %s received  (%s/s, %s/s)", p.Elapsed.Seconds(), bytesText(p.PayloadBytes),
			thousands(p.Sent), thousands(p.Received), rate(p.SentPerSecond), rate(p.ReceivedPerSecond))
	}
	picture := func(p Progress) string {
		best[p.Phase] = max(best[p.Phase], p.ReceivedPerSecond)
		most := 1.0
		for _, rate := range best {
			most = max(most, rate)
		}
		var text strings.Builder
		for phase, size := range PayloadBytes {
			shown := best[phase]
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
		return text.String()
	}
	return display(out, isTerminal, line, picture)
}

func rateOf(perSecond float64, label string) string {
	if label == "" {
		return ""
	}
	return rate(perSecond) + "/s received " + label
}
