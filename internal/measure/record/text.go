package record

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Number writes a number with as many digits as it is worth, and groups of three.
func Number(value float64) string {
	digits := 0
	switch size := math.Abs(value); {
	case size == 0, size >= 100:
	case size >= 10:
		digits = 1
	default:
		digits = 2
	}
	text := strconv.FormatFloat(value, 'f', digits, 64)
	whole, fraction, hasFraction := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasFraction {
		whole += "." + fraction
	}
	return sign + whole
}

// Text writes a number with its unit.
func Text(value float64, unit string) string {
	switch unit {
	case "":
		return Number(value)
	case Count:
		return strconv.FormatFloat(value, 'f', -1, 64) + " " + unit
	case "%":
		return Number(value) + "%"
	case "messages/s", "transactions/s":
		return Number(value) + "/s"
	}
	return Number(value) + " " + unit
}

// WriteCSV writes the figures, a line each.
func (h *Head) WriteCSV(out io.Writer) error {
	table := csv.NewWriter(out)
	rows := [][]string{{
		"scenario", "started_at", "parley", "postgres", "figure", "unit", "value", "spread", "published", "at_least",
		"at_most", "runs",
	}}
	exact := func(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
	for _, f := range h.Figures {
		var runs []string
		for _, run := range f.Runs {
			runs = append(runs, exact(run))
		}
		rows = append(rows, []string{
			h.Scenario, h.StartedAt.UTC().Format("2006-01-02T15:04:05Z"), h.Parley, h.Machine.PostgresVersion, f.Name, f.Unit, exact(f.Value),
			exact(f.Spread), exact(f.Published), exact(f.AtLeast), exact(f.AtMost), strings.Join(runs, " "),
		})
	}
	if err := table.WriteAll(rows); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
