package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the result of a run on several servers for a person at a terminal.
func (r ServersResult) WriteTable(out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "initiators × payload\tmessages\tmessages/s\tmedian batch\tsend p50\tsend p99\twaited at most\t\n")
	for _, p := range r.Phases {
		label := p.label
		if p.HasCut {
			label += ", link cut"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f ms\t%.1f ms\t%s\t\n", label, thousands(p.MessagesReceived), rate(p.MessagesPerSecond),
			thousands(p.MessagesPerCallMedian), p.SendP50MS, p.SendP99MS, thousands(p.WaitingMax))
	}
	_ = table.Flush()

	fmt.Fprintf(&text, "\nBeside it, messages/s in %s:\n", paperName)
	table = tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for number, f := range paperFigures {
		fmt.Fprintf(table, "  figure %d\t%s\t%s\n", number+2, f.setup, f.text)
	}
	_ = table.Flush()
	fmt.Fprintf(&text, "%s\n%s\n", wrap(paperSpread), wrap("There: "+paperMachine+". "+differentServers))

	fmt.Fprintf(&text, "\n%s\n\n", wrap(fmt.Sprintf("The link of %s was cut for %.1f s. At most %s messages waited behind it; "+
		"%.1f s after it was whole again they had gone.", r.Cut.Initiator, r.Cut.Seconds, thousands(r.Cut.WaitingMax), r.Cut.CaughtUpSeconds)))
	writeFindings(&text, r.Findings, []count{
		{"connections broken by the cut", int64(r.Cut.ConnectionsBroken)},
		{"conversations, groups and messages left behind", r.LeftBehind.total()},
	})
	fmt.Fprintf(&text, "\n%s\n", wrap(r.Verdict()))
	_, err := io.WriteString(out, text.String())
	return err
}
