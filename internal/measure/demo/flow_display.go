package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ShowFlow returns an Observer for people.
func ShowFlow(out io.Writer, isTerminal bool) Observer[OrdersProgress] {
	line := func(p OrdersProgress) string {
		return fmt.Sprintf("%5.1f s  %-21s  %s orders; archive %s, approvals %s, billing %s, warehouse %s; %s mended; %s of partners ended",
			p.Elapsed.Seconds(), p.Part, thousands(total(p.Taken)), thousands(p.Delivered[portArchive]), thousands(p.Delivered[portApprovals]),
			thousands(p.Delivered[portBilling]), thousands(p.Delivered[portWarehouse]), thousands(p.Mended), thousands(p.Ended))
	}
	picture := func(p OrdersProgress) string {
		orders := total(p.Taken)
		most := float64(max(orders, p.Delivered[portBilling], 1))
		var text strings.Builder
		write := func(name string, count int64, more string) {
			fmt.Fprintf(&text, "  %-10s  %s %9s  %s\n", name, bar(float64(count), most), thousands(count), more)
		}
		write("orders", orders, fmt.Sprintf("%s files and rows of them; %s more rolled back",
			thousands(orders-p.Taken[wayHTTP]), thousands(p.RolledBack)))
		write("archive", p.Delivered[portArchive], "files, orders of the north")
		write("approvals", p.Delivered[portApprovals], "rows, big orders")
		write("billing", p.Delivered[portBilling], "messages of a service, all orders")
		write("warehouse", p.Delivered[portWarehouse], "over TCP, orders of the south and the east")
		write("outcomes", p.Ended, fmt.Sprintf("of %s of partners", thousands(p.Taken[wayPartner])))
		fmt.Fprintf(&text, "  %s; %.0f of about %.0f s; %s mended\n", p.Part, p.Elapsed.Seconds(), p.Duration.Seconds(),
			counted(p.Mended, "bad record", "bad records"))
		return text.String()
	}
	return display(out, isTerminal, line, picture)
}

// flowCounts are the findings, for the table and the page.
func flowCounts(r *FlowResult) []count {
	counts := []count{{"orders", r.Orders}}
	for _, way := range flowWays {
		counts = append(counts, count{"  by " + way, r.Taken[way]})
	}
	counts = append(counts, count{"orders rolled back", r.RolledBack}, count{"bad records suspended, mended and resubmitted", r.Mended})
	for _, port := range flowPorts {
		counts = append(counts, count{"arrived at " + port, r.Arrived[port]})
	}
	return append(counts, []count{
		{"again at the warehouse, with the same key", r.repeats()},
		{"posted again by HTTP, and known by their key", r.RepeatedRequests},
		{"orders of partners confirmed", r.Confirmed},
		{"orders of partners taken back", r.TakenBack},
		{"orders of partners with a mail of how they ended", r.Mailed},
		{"answers of back ends that came too late", r.Late},
		{"lost", r.Lost},
		{"doubled", r.Duplicated},
		{"arrived where they had not to", r.Misrouted},
		{"out of order", r.OutOfOrder},
		{"changed", r.Changed},
		{"arrived, never sent", r.NeverSent},
		{"orders of partners without an end", r.Unfinished},
		{"orders of partners that ended twice", r.EndedTwice},
		{"orders of partners that contradict files, mails or back ends", r.Contradicted},
		{"suspended and left", r.LeftBehind.Suspended},
		{"left behind otherwise", r.LeftBehind.total() - r.LeftBehind.Suspended},
	}...)
}

// WriteTable writes the result for a person at a terminal.
func (r *FlowResult) WriteTable(out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range flowCounts(r) {
		fmt.Fprintf(table, "%s\t%s\n", row.name, thousands(row.count))
	}
	_ = table.Flush()
	for _, example := range r.Examples {
		fmt.Fprintf(&text, "  %s\n", example)
	}
	fmt.Fprintf(&text, "\n%s\n", wrap(r.Verdict()))
	_, err := io.WriteString(out, text.String())
	return err
}
