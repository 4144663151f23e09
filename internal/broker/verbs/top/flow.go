package top

import (
	"fmt"
	"strings"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// hostTable has the hosts of integration, a line for each node.
func hostTable(hosts []Host) table {
	t := table{columns: []column{
		{title: "HOST", most: 30},
		{title: "NODE", rank: 3, most: 30},
		{title: "STATE"},
		{title: "IN/S", isNumber: true, rank: 1},
		{title: "OUT/S", isNumber: true, rank: 1},
		{title: "IN PROCESS", isNumber: true, rank: 4},
		{title: "THROTTLED", rank: 2, most: 40},
		{title: "PROBLEM", rank: 5, most: 80},
	}}
	for _, h := range hosts {
		node := ""
		if h.Node != nil {
			node = *h.Node
		}
		t.lines = append(t.lines, line{
			key:   h.Host + "\x00" + node,
			alarm: h.Status != "Serving" || h.Problem != "" || throttled(h) != "-",
			cells: []cell{
				{text: h.Host},
				{text: orNone(node)},
				{text: h.Status},
				{text: rate(h.ReceivedPerSecond), number: orZero(h.ReceivedPerSecond)},
				{text: rate(h.SentPerSecond), number: orZero(h.SentPerSecond)},
				{text: count(int64(h.InProcess), false), number: float64(h.InProcess)},
				{text: throttled(h)},
				{text: orNone(strings.Join(strings.Fields(h.Problem), " "))},
			},
		})
	}
	return t
}

// throttled names the directions in which a host is throttled, with their states and delays.
func throttled(h Host) string {
	var directions []string
	for _, of := range []struct {
		name string
		flowstore.Throttling
	}{{"intake", h.Publishing}, {"correlation", h.Correlation}, {"delivery", h.Delivery}} {
		if of.State != 0 {
			directions = append(directions, of.name+" "+of.String())
		}
	}
	return orNone(strings.Join(directions, ", "))
}

// portTable has the send ports of integration.
func portTable(ports []flowstore.PortActivity) table {
	t := table{columns: []column{
		{title: "PORT", most: 40},
		{title: "HOST", rank: 4, most: 24},
		{title: "STATE", rank: 2},
		{title: "WAITING", isNumber: true},
		{title: "OLDEST", isNumber: true, rank: 1},
		{title: "OUT/S", isNumber: true, rank: 1},
		{title: "SUSPENDED", isNumber: true, rank: 2},
		{title: "LAST ERROR", rank: 5, most: 80},
	}}
	for _, p := range ports {
		isFailing := p.Text != nil && p.RecoveredAt == nil
		t.lines = append(t.lines, line{
			key:   p.Name,
			alarm: p.State != "Started" && p.Waiting > 0 || isFailing || p.HeldKeys > 0,
			cells: []cell{
				{text: p.Name},
				{text: p.Host},
				{text: portState(p)},
				{text: waitingAtPort(p), number: float64(p.Waiting)},
				{text: oldest(p.OldestSeconds), number: orZero(p.OldestSeconds)},
				{text: rate(&p.SentPerSecond), number: p.SentPerSecond},
				{text: counted(p.Suspended), number: float64(p.Suspended)},
				{text: lastError(p.LastError)},
			},
		})
	}
	return t
}

// orchestrationTable has the orchestrations of integration, and how many instances each has.
func orchestrationTable(orchestrations []flowstore.Orchestration) table {
	t := table{columns: []column{
		{title: "ORCHESTRATION", most: 40},
		{title: "HOST", rank: 3, most: 24},
		{title: "STATE", rank: 2},
		{title: "INSTANCES", isNumber: true},
		{title: "NEW", isNumber: true, rank: 4},
		{title: "RETRYING", isNumber: true, rank: 1},
		{title: "SUSPENDED", isNumber: true},
		{title: "MESSAGES", isNumber: true, rank: 2},
		{title: "VERSION", isNumber: true, rank: 4},
	}}
	for n := range orchestrations {
		o := &orchestrations[n]
		number := func(n int64) cell { return cell{text: count(n, false), number: float64(n)} }
		t.lines = append(t.lines, line{
			key:   o.Name,
			alarm: o.Suspended > 0 || o.Retrying > 0 || o.State != "Started" && o.Waiting > 0,
			cells: []cell{
				{text: o.Name},
				{text: o.Host},
				{text: o.State},
				number(o.Instances), number(o.New), number(o.Retrying), number(o.Suspended),
				number(o.Waiting), number(int64(o.Version)),
			},
		})
	}
	return t
}

func portState(p flowstore.PortActivity) string {
	if p.IsClosed {
		return p.State + ", closed"
	}
	return p.State
}

func waitingAtPort(p flowstore.PortActivity) string {
	text := count(p.Waiting, false)
	if p.Failing > 0 {
		text += " (" + count(p.Failing, false) + " failing)"
	}
	if p.HeldKeys > 0 {
		text += " + " + counted(p.HeldKeys) + " held keys"
	}
	return text
}

// counted writes a number that is counted up to a bound.
func counted(n int64) string {
	if n >= flowstore.CountedMost {
		return count(n, false) + "+"
	}
	return count(n, false)
}

// lastError has an error that is not over.
func lastError(e flowstore.LastError) string {
	if e.Text == nil || e.RecoveredAt != nil {
		return "-"
	}
	text := strings.Join(strings.Fields(*e.Text), " ")
	if e.At != nil {
		text = fmt.Sprintf("%s %s", e.At.Local().Format("15:04:05"), text)
	}
	return text
}
