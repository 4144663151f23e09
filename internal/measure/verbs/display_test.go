package verbs

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/measure/observe"
)

// A line that a terminal breaks cannot be redrawn: each redrawing would leave one more. So it is narrower than the terminal.
func TestLiveLineIsNarrowerThanTheTerminal(t *testing.T) {
	t.Parallel()
	state := observe.State{
		Stage: "run 2 of 3: a variant with a name that is as long as names are, writes_and_send, parley", Done: 5, Total: 9,
		Throttling: "a level of pressure changed",
		Sample:     observe.Sample{In: 123_641, Out: 123_641, P50MS: 1024.8, P99MS: 10_028.8},
	}
	for _, width := range []int{20, 60, 80, 100, 118, 240} {
		for _, throttling := range []string{"", state.Throttling} {
			state.Throttling = throttling
			line := stateLine(state, time.Hour, width)
			if n := utf8.RuneCountInString(line); n >= width || n < width-60 {
				t.Errorf("on %d columns the line has %d: %s", width, n, line)
			}
		}
	}
	state.Throttling = ""
	line := stateLine(state, time.Hour, 80)
	for _, part := range []string{" 56%", "in 123,641/s", "out 123,641/s", "p50 1,025 ms", "p99 10,029 ms"} {
		if !strings.Contains(line, part) {
			t.Errorf("on 80 columns %q lacks %q", line, part)
		}
	}
}
