package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/present"
)

// messagesThatWait is how many wait where mail for many destinations is measured.
const messagesThatWait = 50_000

// addMailBenchFlags makes the flags what the benchmark of mail takes.
func addMailBenchFlags(cmd *cobra.Command, config *bench.Config) {
	cmd.Long += `

Mail comes in from smtp-source and goes out to smtp-sink, both of Postfix, through a private PostgreSQL with fsync on and a daemon that is
a process of its own; all of it is removed at the end. Where Postfix is installed and this is root, a Postfix with a configuration and a
queue in the same folder relays the same messages in turns; the one that the machine may have is not touched.`
	cmd.Example += "\n  parley bench mail --variant destinations --messages 1000000 --destinations 10000 --duration 1m" +
		"\n  parley bench mail --variant rate --duration 30s --steady 20m --repeat 1"
	flags := cmd.Flags()
	config.Size, config.Messages = 0, messagesThatWait
	for name, usage := range map[string]string{
		"size":     "bytes of a message body (default the variant's own)",
		"messages": "messages that wait for many destinations",
	} {
		flag := flags.Lookup(name)
		flag.Usage, flag.DefValue = usage, flag.Value.String()
	}
	flags.IntVar(&config.Mail.Messages, "run-messages", 0, "messages of a run by SMTP (default by size: 5,000 of 25 KB, 50 of 10 MB)")
	flags.IntVar(&config.Mail.ServerCache, "server-cache", 0, "shared_buffers of the private server in MB (default 1,024)")
	flags.DurationVar(&config.Mail.Steady, "steady", 0, "how long Parley holds the rate that the variant rate has found (default not at all)")
	flags.IntVar(&config.Mail.Destinations, "destinations", 0, "domains for which messages wait (default 1,000)")
}

// writeMailFigures shows the figures of mail, a column for each result, and then those of the seed.
func writeMailFigures(out io.Writer, report bench.Report) error {
	var shown []bench.Result
	for _, r := range report.Results {
		if r.Figures != nil {
			shown = append(shown, r)
		}
	}
	if postfix, is := report.Settings["postfix"]; is {
		fmt.Fprintf(out, "Postfix: %v\n", postfix)
	}
	if len(shown) == 0 {
		return nil
	}
	heads := []string{""}
	for _, r := range shown {
		heads = append(heads, strings.Join(append([]string{r.Variant, r.System}, nonEmpty(r.Operation, r.Phase)...), " "))
	}
	fmt.Fprintln(out)
	table := present.Numbers(heads...)
	for _, figure := range bench.MailFigures() {
		cells, isThere := []any{figure[1]}, false
		for _, r := range shown {
			value, is := r.Figures[figure[0]]
			cell := ""
			if is {
				cell, isThere = fmt.Sprintf("%.2f", value), true
			}
			cells = append(cells, cell)
		}
		if isThere {
			table.Row(cells...)
		}
	}
	table.Write(out)
	writeSeed(out, report.Seed)
	return nil
}

// writeSeed shows the table of the seed.
func writeSeed(out io.Writer, columns []bench.SeedColumn) {
	fmt.Fprintln(out, "\nThe seed: 2 x 2 cores of 2.2 GHz, 4 GB, three disks")
	table := present.Numbers("test", "cache MB", "limit", "size", "messages/s", "queue max", "queue MB", "CPU %", "Mcycles/message",
		"cycles/byte", "log KB/message", "log writes/message", "reads/s", "pressure %")
	for _, c := range columns {
		row := []any{c.Test, c.CacheMB, c.Limit, c.Size, fmt.Sprintf("%.2f", c.MessagesPerSecond), fmt.Sprintf("%.0f", c.QueueMax)}
		for _, value := range []float64{
			c.QueueMBMax, c.CPUPercent, c.MegacyclesPerMessage, c.CyclesPerByte, c.LogKBPerMessage, c.LogWritesPerMessage,
		} {
			row = append(row, fmt.Sprintf("%.2f", value))
		}
		table.Row(append(row, fmt.Sprintf("%.0f", c.QueueFileReadsPerSecond), fmt.Sprintf("%.0f", c.PressurePercent))...)
	}
	table.Write(out)
}
