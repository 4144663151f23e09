package verbs

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

// display shows a measurement while it runs: on a terminal one line that changes, elsewhere a line for each run.
type display struct {
	out        io.Writer
	isTerminal bool
	line       *verb.ProgressLine
	watch      *observe.Watch
	begun      time.Time
}

// redrawEvery is how often the line changes.
const redrawEvery = 250 * time.Millisecond

func newDisplay(out io.Writer, watch *observe.Watch) *display {
	return &display{out: out, isTerminal: verb.IsTerminal(out), line: verb.NewProgressLine(out), watch: watch, begun: time.Now()}
}

// Line shows what is done now, where the line does not change by itself.
func (d *display) Line(text string) {
	if !d.isTerminal {
		d.line.Show(text)
	}
}

// start begins to draw. The function that comes back ends it, and leaves nothing of the line.
func (d *display) start() (stop func()) {
	if !d.isTerminal {
		return func() {}
	}
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		for {
			d.line.Show(stateLine(d.watch.State(), time.Since(d.begun), widthOf(d.out)))
			select {
			case <-done:
				d.line.Clear()
				return
			case <-time.After(redrawEvery):
			}
		}
	})
	return func() {
		close(done)
		drawing.Wait()
	}
}

// The widths of a terminal in columns: the usual one where it does not say, and the one below which the line leaves out what is normal.
const (
	usualWidth  = 80
	narrowWidth = 100
)

// widthOf is how many columns a terminal has.
func widthOf(out io.Writer) int {
	if file, is := out.(*os.File); is {
		if width, _, err := term.GetSize(file.Fd()); err == nil && width > 0 {
			return width
		}
	}
	return usualWidth
}

// fitted cuts a line that is as wide as the terminal: one that the terminal breaks could not be redrawn.
func fitted(line string, width int) string {
	if characters := []rune(line); len(characters) >= width {
		return string(characters[:max(0, width-2)]) + "…"
	}
	return line
}

// stateLine is the line of a live display on a terminal of so many columns.
func stateLine(s observe.State, elapsed time.Duration, width int) string {
	gaugeLength := 16
	if width < narrowWidth {
		gaugeLength = 8
	}
	part := 0.0
	if s.Total > 0 {
		part = float64(s.Done) / float64(s.Total)
	}
	full := int(part * float64(gaugeLength))
	line := fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", full), strings.Repeat("░", gaugeLength-full), 100*part)
	if s.In > 0 {
		line += "  in " + record.Number(s.In) + "/s"
	}
	if s.Out > 0 {
		line += "  out " + record.Number(s.Out) + "/s"
	}
	if s.P99MS > 0 {
		line += fmt.Sprintf("  p50 %s ms  p99 %s ms", record.Number(s.P50MS), record.Number(s.P99MS))
	}
	switch {
	case s.Throttling != "":
		line += "  throttling " + s.Throttling
	case width >= narrowWidth:
		line += "  throttling none"
	}
	if s.Done > 0 && s.Done < s.Total {
		left := time.Duration(float64(elapsed) / float64(s.Done) * float64(s.Total-s.Done))
		line += "  " + left.Round(time.Second).String() + " left"
	}
	return fitted(line+"  "+s.Stage, width)
}
