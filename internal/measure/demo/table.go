package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the result for a person at a terminal.
func (r Result) WriteTable(out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "payload\tmessages\tmessages/s\treceive calls\tmedian batch\tsend p50\tsend p99\t\n")
	for _, p := range r.Payloads {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.1f ms\t%.1f ms\t\n",
			bytesText(p.PayloadBytes), thousands(p.MessagesReceived), rate(p.MessagesPerSecond), thousands(p.ReceiveCalls),
			thousands(p.MessagesPerCallMedian), p.SendP50MS, p.SendP99MS)
	}
	_ = table.Flush()

	fmt.Fprintf(&text, "\nBeside it, messages/s in %s:\n", paperName)
	table = tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, f := range paperFigures {
		fmt.Fprintf(table, "  %s\t%s\n", f.setup, f.text)
	}
	_ = table.Flush()
	fmt.Fprintf(&text, "%s\n\n", wrap("There: "+paperMachine+". "+differentMachines))

	writeFindings(&text, r.Findings, []count{
		{"readers started by the queue monitor", r.ReadersStarted},
		{"readers killed in mid-transaction", r.ReadersKilled},
		{"conversations, groups and messages left behind", r.LeftBehind.total()},
	})
	fmt.Fprintf(&text, "\n%s\n", wrap(r.Verdict()))
	_, err := io.WriteString(out, text.String())
	return err
}

// count is a line of a list.
type count struct {
	name  string
	count int64
}

// writeFindings lists what the check found, and what else is to be reported.
func writeFindings(text *strings.Builder, f Findings, more []count) {
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, row := range append([]count{
		{"sent", f.MessagesSent},
		{"received", f.MessagesReceived},
		{"lost", f.Lost},
		{"duplicated", f.Duplicated},
		{"out of order", f.OutOfOrder},
		{"corrupted", f.Corrupted},
		{"received, never sent", f.NeverSent},
	}, more...) {
		fmt.Fprintf(table, "%s\t%s\n", row.name, thousands(row.count))
	}
	_ = table.Flush()
	for _, example := range f.Examples {
		fmt.Fprintf(text, "  %s\n", example)
	}
}

// lineWidth is how wide text for a terminal may be.
const lineWidth = 100

// wrap breaks a paragraph into lines.
func wrap(text string) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > lineWidth {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
