package demo

import "fmt"

// flowArrival is a message that arrived at a port.
type flowArrival struct {
	orderText

	// key is that of the message, which is the same when it is sent again; empty where the place has none.
	key string
}

// FlowFindings are the results of the final check: every order that was placed held against everything that arrived.
type FlowFindings struct {
	Orders int64 `json:"orders"`
	// Arrived are the orders that arrived at each port, each counted once.
	Arrived map[string]int64 `json:"arrived"`
	// Repeated arrived again with the same key where at least once is promised.
	Repeated map[string]int64 `json:"repeated"`
	// Lost did not arrive at a port where they had to; Duplicated arrived again otherwise.
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	// Misrouted arrived where they had not to.
	Misrouted int64 `json:"misrouted"`
	// OutOfOrder arrived at an ordered port after an order that the same customer placed later.
	OutOfOrder int64 `json:"out_of_order"`
	// Changed arrived with another content than was sent.
	Changed int64 `json:"changed"`
	// NeverSent arrived though nobody placed them, or their transaction rolled back.
	NeverSent int64 `json:"never_sent"`
	PartnerFindings
	Examples []string `json:"examples"`
}

const flowExamplesMax = 10

// judgeFlow holds what arrived at each port, in the order of arrival, against what was placed.
func judgeFlow(placed []order, arrivals map[string][]flowArrival) FlowFindings {
	f := FlowFindings{Arrived: map[string]int64{}, Repeated: map[string]int64{}, Examples: []string{}}
	orders := map[string]order{}
	for _, o := range placed {
		orders[o.Number] = o
		if !o.isRolledBack {
			f.Orders++
		}
	}
	for _, port := range flowPorts {
		f.judgePort(port, orders, arrivals[port])
	}
	return f
}

func (f *FlowFindings) judgePort(port string, orders map[string]order, arrivals []flowArrival) {
	seen := map[string]map[string]bool{} // the keys with which each order came
	last := map[string]int{}             // the sequence of the latest order of each customer
	for _, a := range arrivals {
		o, isPlaced := orders[a.Number]
		keys := seen[a.Number]
		switch {
		case !isPlaced || o.isRolledBack:
			f.found(&f.NeverSent, "order %s arrived at %s, and was never sent", a.Number, port)
			continue
		case !o.goesTo(port):
			f.found(&f.Misrouted, "order %s of %s over %s arrived at %s", o.Number, o.Region, o.Amount, port)
		case a.orderText != o.orderText:
			f.found(&f.Changed, "order %s arrived at %s as %+v, and was %+v", o.Number, port, a.orderText, o.orderText)
		}
		switch {
		case keys == nil:
			seen[a.Number] = map[string]bool{a.key: true}
			f.Arrived[port]++
			if isOrdered(port) && o.sequence > 0 {
				if o.sequence < last[o.Customer] {
					f.found(&f.OutOfOrder, "order %s, number %d of customer %s, arrived at %s behind number %d",
						o.Number, o.sequence, o.Customer, port, last[o.Customer])
				}
				last[o.Customer] = max(last[o.Customer], o.sequence)
			}
		case port == portWarehouse && keys[a.key]:
			f.Repeated[port]++
		default:
			keys[a.key] = true
			f.found(&f.Duplicated, "order %s arrived at %s again, with the key %q", o.Number, port, a.key)
		}
	}
	for number, o := range orders {
		if !o.isRolledBack && o.goesTo(port) && seen[number] == nil {
			f.found(&f.Lost, "order %s, which came by %s, did not arrive at %s", number, o.way, port)
		}
	}
}

// isOrdered reports whether the definitions promise the order of each customer at a port.
func isOrdered(port string) bool { return port != portArchive }

// found counts something that is wrong, and keeps the first few as examples.
func (f *FlowFindings) found(count *int64, format string, values ...any) {
	*count++
	if len(f.Examples) < flowExamplesMax {
		f.Examples = append(f.Examples, fmt.Sprintf(format, values...))
	}
}
