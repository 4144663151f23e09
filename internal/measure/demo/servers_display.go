package demo

import (
	"fmt"
	"io"
	"strings"
)

// ShowServers returns an Observer for people.
func ShowServers(out io.Writer, isTerminal bool) Observer[Flow] {
	most := 1.0 // the largest rate seen, which the bars are drawn to
	line := func(f Flow) string {
		var text strings.Builder
		fmt.Fprintf(&text, "%5.1f s  %-9s ", f.Elapsed.Seconds(), f.Phase)
		for _, i := range f.Initiators {
			fmt.Fprintf(&text, " %s %s/s, %s waiting, link %s;", i.Name, rate(i.SentPerSecond), thousands(i.Waiting), i.Link)
		}
		fmt.Fprintf(&text, " target %s/s", rate(f.ReceivedPerSecond))
		return text.String()
	}
	picture := func(f Flow) string {
		most = max(most, f.ReceivedPerSecond)
		for _, i := range f.Initiators {
			most = max(most, i.SentPerSecond)
		}
		var text strings.Builder
		for _, i := range f.Initiators {
			fmt.Fprintf(&text, "  %-11s  %s %9s/s sent      %10s waiting  %s\n", i.Name, bar(i.SentPerSecond, most), rate(i.SentPerSecond),
				thousands(i.Waiting), cable(i.Link))
		}
		fmt.Fprintf(&text, "  %-11s  %s %9s/s received  %10s under way\n", targetName, bar(f.ReceivedPerSecond, most),
			rate(f.ReceivedPerSecond), thousands(max(0, f.Sent-f.Received)))
		fmt.Fprintf(&text, "  %s; %s sent, %s received; %.0f of about %.0f s\n",
			f.Phase, thousands(f.Sent), thousands(f.Received), f.Elapsed.Seconds(), f.Duration.Seconds())
		return text.String()
	}
	return display(out, isTerminal, line, picture)
}

// cable draws a link.
func cable(state LinkState) string {
	switch state {
	case LinkUp:
		return "━━━━ link up"
	case LinkCut:
		return "━╳ ━ link CUT"
	case LinkIdle:
		return "╌╌╌╌ link idle"
	}
	return string(state)
}
