package pages

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw docs/pictures/latency.svg")

// A system's latencies, in milliseconds, as a row of the table of performance has them.
type latency struct {
	system string
	ms     []float64
}

var latencyRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([0-9.]+) ms \| ([0-9.]+) ms \| ([0-9.]+) ms \| [0-9.]+ ms \|$`)

// latencies reads the table of latencies of the page on performance.
func latencies(t *testing.T) []latency {
	t.Helper()
	var rows []latency
	for _, found := range latencyRow.FindAllStringSubmatch(page(t, "reference/performance"), -1) {
		row := latency{system: found[1]}
		for _, text := range found[2:] {
			ms, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			row.ms = append(row.ms, ms)
		}
		rows = append(rows, row)
	}
	if len(rows) < 3 {
		t.Fatalf("the page on performance has %d rows of latencies", len(rows))
	}
	return rows
}

const chartHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 %d" width="760" height="%d" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif">
  <title>From a commit to the work on the message, 1,000 messages a second: %s</title>
  <style>
    .page { fill: #ffffff; }
    .title { fill: #1f2328; font-size: 16px; font-weight: 600; }
    .text { fill: #1f2328; font-size: 14px; }
    .small { fill: #57606a; font-size: 13px; }
    .p50 { fill: #0969da; }
    .p90 { fill: #54aeff; }
    .p99 { fill: #8250df; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; }
      .title, .text { fill: #e6edf3; }
      .small { fill: #9da7b3; }
      .p50 { fill: #58a6ff; }
      .p90 { fill: #1f6feb; }
      .p99 { fill: #a371f7; }
    }
  </style>
  <rect class="page" width="760" height="%d"/>
  <text class="title" x="20" y="30">From a commit to the work on the message</text>
  <text class="small" x="20" y="52">1,000 messages a second for 30 s, PostgreSQL 15 on two shared cores; shorter is better</text>
`

// drawChart draws a bar for each figure, and beside it the figure itself.
func drawChart(rows []latency) string {
	const left, width, bar, gap = 200, 440, 18, 22
	longest := 0.0
	var said []string
	for _, row := range rows {
		longest = max(longest, row.ms[2])
		said = append(said, fmt.Sprintf("%s p50 %v ms, p99 %v ms", row.system, row.ms[0], row.ms[2]))
	}
	height := 74 + len(rows)*(3*bar+gap)
	var chart strings.Builder
	fmt.Fprintf(&chart, chartHead, height, height, strings.Join(said, "; "), height)
	y := 74
	for _, row := range rows {
		name, kind, _ := strings.Cut(row.system, ", ")
		name, rest, isLong := strings.Cut(strings.ReplaceAll(name, "`", ""), " of ")
		if isLong {
			kind = "of " + rest
		}
		fmt.Fprintf(&chart, "  <text class=\"text\" x=\"20\" y=\"%d\">%s</text>\n", y+bar, name)
		if kind != "" {
			fmt.Fprintf(&chart, "  <text class=\"small\" x=\"20\" y=\"%d\">%s</text>\n", y+2*bar, kind)
		}
		for i, label := range []string{"p50", "p90", "p99"} {
			length := max(2, row.ms[i]/longest*width)
			fmt.Fprintf(&chart, "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>\n", label, left, y, length, bar-4)
			fmt.Fprintf(&chart, "  <text class=\"small\" x=\"%.1f\" y=\"%d\">%v ms %s</text>\n", left+length+8, y+bar-6, row.ms[i], label)
			y += bar
		}
		y += gap
	}
	chart.WriteString("</svg>\n")
	return chart.String()
}

// The chart of the README shows the figures of the page on performance. After a change of the page,
// go test ./internal/pages -run TestChart -update draws it anew.
func TestChartShowsTheFiguresOfThePage(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "docs", "pictures", "latency.svg")
	chart := drawChart(latencies(t))
	if *update {
		if err := os.WriteFile(file, []byte(chart), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	drawn, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(drawn) != chart {
		t.Error("docs/pictures/latency.svg is out of date: go test ./internal/pages -run TestChart -update draws it anew")
	}
}
