package verb

import (
	"fmt"
	"io"
	"os"
)

// ProgressLine shows a person what is done now: on a terminal in one line that changes, elsewhere a line each.
type ProgressLine struct {
	out        io.Writer
	isTerminal bool
}

// NewProgressLine makes a line on out, which changes if that is a terminal.
func NewProgressLine(out io.Writer) *ProgressLine {
	p := &ProgressLine{out: out}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.isTerminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// clearLine goes to the start of the line and empties it.
const clearLine = "\r\x1b[K"

// Show shows a text in the place of the last one.
func (p *ProgressLine) Show(text string) {
	if p.isTerminal {
		fmt.Fprint(p.out, clearLine+text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// Clear leaves nothing of the line that changes.
func (p *ProgressLine) Clear() {
	if p.isTerminal {
		fmt.Fprint(p.out, clearLine)
	}
}
