package top

import (
	"fmt"
	"io"
	"strings"
)

// Print writes a snapshot as tables, in full.
func Print(out io.Writer, snapshot Snapshot) error {
	for s := range screenCount {
		t := tableOf(s, snapshot)
		by := firstSorting[s]
		t.sort(by)
		by.column = -1 // no arrow
		title := strings.ToUpper(screenNames[s][:1]) + screenNames[s][1:]
		if len(t.lines) == 0 {
			if _, err := fmt.Fprintf(out, "%s: none\n", title); err != nil {
				return err
			}
			continue
		}
		const width = 10_000
		widths := t.layout(width, by)
		fmt.Fprintf(out, "%s\n", title)
		fmt.Fprintln(out, t.format(widths, func(i int) string { return t.heading(i, by) }, width))
		for _, l := range t.lines {
			fmt.Fprintln(out, t.format(widths, func(i int) string { return l.cells[i].text }, width))
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
	}
	return nil
}
