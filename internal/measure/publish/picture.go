package publish

import (
	"fmt"
	"html"
	"strings"
)

// The sizes of the picture, in its own units.
const (
	pictureWidth = 760
	nameLeft     = 20
	rateLeft     = 230
	rateWidth    = 190
	timeLeft     = 510
	timeWidth    = 150
	rowTop       = 84
	rowHeight    = 26
)

const pictureHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" ` +
	`font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
  <title>%[3]s</title>
  <style>
    .page { fill: #ffffff; }
    .title { fill: #1f2328; font-size: 16px; font-weight: 600; }
    .text { fill: #1f2328; font-size: 13px; }
    .small { fill: #57606a; font-size: 12px; }
    .ours { fill: #0969da; }
    .other { fill: #8c959f; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; }
      .title, .text { fill: #e6edf3; }
      .small { fill: #9da7b3; }
      .ours { fill: #58a6ff; }
      .other { fill: #6e7681; }
    }
  </style>
  <rect class="page" width="%[1]d" height="%[2]d"/>
  <text class="title" x="%[4]d" y="30">The same work through Parley and other queues, in one run</text>
  <text class="small" x="%[5]d" y="62">messages a second</text>
  <text class="small" x="%[6]d" y="62">from commit to work, p50 (shorter is better)</text>
`

// picture draws a row for each system that passes messages: its rate, and its latency where that was measured. It has the colours of light
// and of dark pages.
func picture(rows []row) string {
	var drawn []row
	mostRate, mostTime := 0.0, 0.0
	var said []string
	for _, r := range rows {
		if r.isFloor || !isShort(r.name) {
			continue
		}
		drawn = append(drawn, r)
		mostRate = max(mostRate, r.rate)
		text := r.name + " " + r.rateText()
		if r.latency != nil {
			mostTime = max(mostTime, r.latency.P50MS)
			text += ", p50 " + ms(r.latency.P50MS)
		}
		said = append(said, text)
	}
	var out strings.Builder
	height := rowTop + len(drawn)*rowHeight + 10
	fmt.Fprintf(&out, pictureHead, pictureWidth, height, html.EscapeString(strings.Join(said, "; ")), nameLeft, rateLeft, timeLeft-60)
	for i, r := range drawn {
		class, y := "other", rowTop+i*rowHeight
		if r.isOurs {
			class = "ours"
		}
		fmt.Fprintf(&out, "  <text class=\"text\" x=\"%d\" y=\"%d\">%s</text>\n", nameLeft, y+12, html.EscapeString(r.name))
		bar := func(left, width int, part float64, text string) {
			length := max(2, part*float64(width))
			fmt.Fprintf(&out, "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\" rx=\"2\"/>\n", class, left, y, length)
			fmt.Fprintf(&out, "  <text class=\"small\" x=\"%.1f\" y=\"%d\">%s</text>\n", float64(left)+length+6, y+12, text)
		}
		bar(rateLeft, rateWidth-50, r.rate/max(mostRate, 1), r.rateText())
		if r.latency != nil {
			bar(timeLeft-60, timeWidth+40, r.latency.P50MS/max(mostTime, 1e-9), ms(r.latency.P50MS))
		}
	}
	return out.String() + "</svg>\n"
}
