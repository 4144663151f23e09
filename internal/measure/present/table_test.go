package present

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func written(t *Table) string {
	var out bytes.Buffer
	t.Write(&out)
	return out.String()
}

func TestTableThatFitsIsWrittenAsItIs(t *testing.T) {
	t.Parallel()
	table := Numbers("variant", "system", "rate", "ratio")
	table.Row("one", "parley", 7, "")
	table.Row("longer one", "parley", 1234, "")
	if got, want := written(table), "   variant  system  rate  ratio\n       one  parley     7\nlonger one  parley  1234\n"; got != want {
		t.Errorf("it is\n%s", got)
	}
}

// Columns with one value stand once above the rows, from the left on, as far as it takes; an empty column is not named.
func TestWideTableSaysOnceWhatIsTheSame(t *testing.T) {
	t.Parallel()
	table := Numbers("variant", "system", "sessions", "conversations", "size", "batch", "messages/s", "spread", "ratio")
	for i := range 3 {
		table.Row(fmt.Sprintf("%dx50, 4096 B, 1 of 150 dialogs", i), "parley", 50*i, 150*50*i, 4096, 1, 1000+i, "0%", "")
	}
	got := written(table)
	if !strings.HasPrefix(got, "In all rows: system parley, size 4096, batch 1.\n") || strings.Contains(got, "ratio") ||
		!strings.Contains(got, "1x50, 4096 B, 1 of 150 dialogs        50           7500        1001      0%\n") {
		t.Errorf("it is\n%s", got)
	}
}

// No table is wider than a terminal, and none loses a cell.
func TestNoTableIsWiderThanATerminal(t *testing.T) {
	t.Parallel()
	for columns := 1; columns <= 24; columns++ {
		for _, name := range []string{"short", strings.Repeat("a name of several words ", 4), "ä" + strings.Repeat("–", 30)} {
			for _, begin := range []func(...string) *Table{Columns, Numbers} {
				var head []string
				for c := range columns {
					head = append(head, fmt.Sprintf("column%d", c))
				}
				table := begin(head...)
				for r := range 3 {
					cells := []any{fmt.Sprintf("%s r%d", name, r)}
					for c := 1; c < columns; c++ {
						cells = append(cells, fmt.Sprintf("v%d.%d", r, c))
					}
					table.Row(cells...)
				}
				got := written(table)
				for line := range strings.Lines(got) {
					if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && columns > 1 {
						t.Fatalf("with %d columns a line has %d:\n%s", columns, n, got)
					}
				}
				for r := range 3 {
					for c := 1; c < columns; c++ {
						if !strings.Contains(got, fmt.Sprintf("v%d.%d", r, c)) {
							t.Fatalf("with %d columns cell %d of row %d is lost:\n%s", columns, c, r, got)
						}
					}
				}
			}
		}
	}
}
