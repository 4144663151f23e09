package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/measure/report"
)

// WritePage writes the result page: one HTML file that needs nothing else.
func (r *FlowResult) WritePage(out io.Writer) error {
	return writePage(out, r, report.Page{
		Title: "Parley demo of integration",
		Lead: "Orders come as files, by HTTP and from a table, and are routed by content, played on PostgreSQL " +
			r.Machine.PostgresVersion + ".",
		Tiles: []report.Tile{
			{Value: thousands(r.Orders), Label: "orders"},
			{Value: thousands(total(r.Arrived)), Label: "messages delivered"},
			{Value: thousands(r.Mended), Label: "bad records mended", Bad: r.Mended == 0},
			{Value: thousands(int64(r.NodesKilled)), Label: noun(int64(r.NodesKilled), "node", "nodes") + " killed", Bad: r.NodesKilled != 1},
			{Value: thousands(r.Lost), Label: "lost", Bad: r.Lost > 0},
			{Value: thousands(r.Duplicated), Label: "doubled", Bad: r.Duplicated > 0},
			{Value: thousands(r.OutOfOrder), Label: "out of order", Bad: r.OutOfOrder > 0},
			{Value: thousands(r.Changed), Label: "changed", Bad: r.Changed > 0},
			{Value: thousands(r.repeats()), Label: "came again over TCP, same key"},
			{Value: thousands(r.Misrouted), Label: "at the wrong place", Bad: r.Misrouted > 0},
			{Value: thousands(r.NeverSent), Label: "arrived, never sent", Bad: r.NeverSent > 0},
			{Value: thousands(r.Confirmed), Label: "confirmed by two back ends", Bad: r.Confirmed == 0},
			{Value: thousands(r.TakenBack), Label: "taken back after a time-out", Bad: r.TakenBack == 0},
			{Value: thousands(r.Mailed), Label: "told their partner by mail", Bad: r.Mailed == 0},
			{Value: thousands(r.Unfinished), Label: "without an end", Bad: r.Unfinished > 0},
			{Value: thousands(r.EndedTwice + r.Contradicted), Label: "ended twice or otherwise", Bad: r.EndedTwice+r.Contradicted > 0},
			{Value: thousands(r.LeftBehind.total()), Label: "left behind", Bad: r.LeftBehind.total() > 0},
		},
		Sections: []report.Section{flowPictureSection(r), flowPartnerSection(r), flowTimeSection(r), flowCheckSection(r)},
	})
}

func flowPictureSection(r *FlowResult) report.Section {
	picture := &report.FlowPicture{
		ID: "flow", Title: "The way of the orders", Middle: report.Station{Name: "Message box", Value: thousands(r.Orders)},
	}
	var in, out []string
	for _, way := range flowWays {
		picture.Left = append(picture.Left, report.Station{Name: way, Value: thousands(r.Taken[way])})
		in = append(in, way+" "+thousands(r.Taken[way]))
	}
	for _, port := range flowPorts {
		picture.Right = append(picture.Right, report.Station{Name: port, Value: thousands(r.Arrived[port])})
		out = append(out, port+" "+thousands(r.Arrived[port]))
	}
	picture.Description = fmt.Sprintf("Orders come in at %s; all go through the message box; they arrive at %s.",
		strings.Join(in, ", "), strings.Join(out, ", "))
	return report.Section{
		Title: "The way of the orders", Flow: picture,
		Text: []string{"Receive locations on the left, send ports on the right, each with its number of orders."},
		Table: &report.Table{Head: []string{"Port", "Gets", "Promise"}, Words: true, Rows: [][]string{
			{portArchive + ", a folder", "orders of the north", "at least once; a repeat writes the same file"},
			{portApprovals + ", a table", "orders of 1,000 and more", "exactly once, in the order of each customer"},
			{portBilling + ", a service", "all orders", "exactly once, in the order of each customer"},
			{portWarehouse + ", over TCP", "orders of the south and the east", "at least once with the same key, in the order of each customer"},
		}},
		After: []string{"The definitions are files of YAML in examples/flow of the repository."},
	}
}

// flowPartnerSection shows the orders of partners, which an orchestration brings to an end.
func flowPartnerSection(r *FlowResult) report.Section {
	taken := thousands(r.Taken[wayPartner])
	return report.Section{
		Title: "Orders of partners",
		Flow: &report.FlowPicture{
			ID: "partners", Title: "The way of the orders of partners",
			Description: fmt.Sprintf("%s orders of partners are mapped. An orchestration asks the stock and the credit at once; it confirms %s "+
				"and takes %s back.", taken, thousands(r.Confirmed), thousands(r.TakenBack)),
			Left:   []report.Station{{Name: "JSON, mapped", Value: taken}},
			Middle: report.Station{Name: "Two are asked", Value: thousands(r.Confirmed + r.TakenBack)},
			Right:  []report.Station{{Name: "Confirmed", Value: thousands(r.Confirmed)}, {Name: "Taken back", Value: thousands(r.TakenBack)}},
		},
		Text: []string{
			"Orders of partners come as JSON. A map makes them orders of the shop, so that they go where all others go, and an orchestration " +
				"asks two back ends about each at once. When both have answered, the order is confirmed; when not both have after 8 seconds, " +
				"what was asked for is taken back. For one order in five the credit never answers.",
		},
		After: []string{
			fmt.Sprintf("How an order ended goes to a table, to a folder and by mail to the partner: %s mails, each submitted in the "+
				"transaction that records that it was sent. In the end each order has one outcome, the same in all three; the back ends "+
				"hold what was asked for about each confirmed order, and nothing about one that was taken back. No daemon of mail runs, so "+
				"the mails wait in the mail transport of the database.", thousands(r.Mailed)),
			fmt.Sprintf("Answers that came too late and were dropped: %s.", thousands(r.Late)),
		},
	}
}

func flowTimeSection(r *FlowResult) report.Section {
	placed, stored := flowRates(r.samples)
	chart := &report.LineChart{
		ID: "orders", Title: "Orders that came in and messages that the warehouse got, per second, over time",
		Description: fmt.Sprintf("Two lines over %.0f seconds, one for orders that came in and one for messages at the warehouse, "+
			"which stops while the warehouse is away.", r.Seconds),
		Unit:   "per second",
		Series: []report.Series{{Name: "orders in", Points: placed}, {Name: "at the warehouse", Points: stored}},
	}
	for _, mark := range r.marks {
		chart.Marks = append(chart.Marks, report.Mark{X: mark.seconds, Label: mark.label})
	}
	return report.Section{
		Title: "Over time", Lines: chart,
		Text: []string{"While the warehouse is away orders go on: what is for it waits in the database, in order. Two nodes serve the host; " +
			"when one is killed, the other sends what it had in its hands as soon as its leases are over."},
	}
}

// flowRates turns counts into orders and messages per second.
func flowRates(samples []OrdersSample) (placed, stored []report.Point) {
	last := OrdersSample{}
	for _, s := range samples {
		seconds := s.Seconds - last.Seconds
		if seconds < rateSeconds {
			continue
		}
		middle := (s.Seconds + last.Seconds) / 2
		placed = append(placed, report.Point{X: middle, Y: float64(total(s.Taken)-total(last.Taken)) / seconds})
		stored = append(stored, report.Point{X: middle, Y: float64(s.Delivered[portWarehouse]-last.Delivered[portWarehouse]) / seconds})
		last = s
	}
	return placed, stored
}

func flowCheckSection(r *FlowResult) report.Section {
	table := &report.Table{Head: []string{"Finding", "Count"}}
	for _, row := range flowCounts(r) {
		table.Rows = append(table.Rows, []string{strings.TrimSpace(row.name), thousands(row.count)})
	}
	return report.Section{
		Title: "What was checked",
		Text: []string{
			"Each order has a number. What was placed is held against the files of the folder, the rows of the table, the messages that the " +
				"program behind the service received, and the requests that the warehouse took: each order is at every place where it has to " +
				"be, and at no other, with all its values.",
			"The orders of a customer who sends by HTTP, or in one flat file, arrive in their order at the ports that promise it. Two nodes " +
				"take XML files and rows at once, so that no order is promised among these.",
		},
		Table: table,
		After: []string{
			"When a connection dies between a message and its acknowledgement, or a node is killed before it has recorded that, nobody " +
				"can know whether the message was taken, and it is sent again, with the same key.",
		},
	}
}
