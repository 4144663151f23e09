package publish

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/record"
)

// row is one system.
type row struct {
	name, version, promise string
	isOurs, isFloor        bool
	rate, spread, toInsert float64
	latency                *bench.Latency
}

// system is how a page names a system of the report; order is its place in the table.
type system struct {
	// report is its name where rates are measured, latency where that is, empty where it is the same.
	report, latency string
	name            string
	isOurs, isFloor bool
	isShort         bool // in the README, too
}

var systems = []system{
	{report: "copy", name: "`COPY`, 100 a transaction, nothing received", isFloor: true},
	{report: "insert", name: "a bare `INSERT`, nothing received", isFloor: true, isShort: true},
	{report: "parley", latency: "parley_consumer", name: "Parley, conversations", isOurs: true, isShort: true},
	{report: "parley_simple", name: "Parley, a simple queue", isOurs: true, isShort: true},
	{latency: "parley_activation", name: "Parley, activation", isOurs: true},
	{report: "pgmq", name: "pgmq", isShort: true},
	{report: "pgq", name: "PgQ", isShort: true},
	{report: "river", name: "River", isShort: true},
	{report: "graphile-worker", name: "Graphile Worker"},
	{report: "pg-boss", name: "pg-boss"},
	{report: "procrastinate", name: "procrastinate"},
	{report: "awa", name: "awa"},
	{report: "rabbitmq", name: "RabbitMQ", isShort: true},
	{report: "outbox-rabbitmq-inbox", name: "outbox, RabbitMQ, inbox"},
	{report: "nats-sync", name: "NATS JetStream, each message synced", isShort: true},
	{report: "nats", name: "NATS JetStream, by default"},
}

// rowsOf brings the results of a run together, a row a system, in the order of the table.
func rowsOf(run Run) (rows []row) {
	find := func(variant, name string) *bench.Result {
		for i, r := range run.Results {
			if r.Variant == variant && r.System == name {
				return &run.Results[i]
			}
		}
		return nil
	}
	versions, promises := texts(run, "peer_versions"), texts(run, "promises")
	for _, s := range systems {
		r := row{name: s.name, version: versions[s.report], promise: promises[s.report], isOurs: s.isOurs, isFloor: s.isFloor}
		rate, latency := find("rate", s.report), find("latency", cmp.Or(s.latency, s.report))
		if rate == nil && latency == nil {
			continue
		}
		if rate != nil {
			r.rate, r.spread, r.toInsert = rate.MessagesPerSecond, rate.Spread, run.Ratios[rate.RatioKey()]
		}
		if latency != nil {
			r.latency = latency.Latency
		}
		rows = append(rows, r)
	}
	return rows
}

// texts reads a setting of the report that is texts by names.
func texts(run Run, setting string) map[string]string {
	found := map[string]string{}
	values, _ := run.Settings[setting].(map[string]any)
	for name, value := range values {
		found[name] = fmt.Sprint(value)
	}
	return found
}

func (r row) rateText() string {
	if r.rate == 0 {
		return ""
	}
	return record.Number(r.rate) + "/s"
}

func (r row) ratioText() string {
	if r.toInsert == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", r.toInsert)
}

func ms(value float64) string { return record.Number(value) + " ms" }

func (r row) times() (p50, p99 string) {
	if r.latency == nil {
		return "", ""
	}
	return ms(r.latency.P50MS), ms(r.latency.P99MS)
}

// short is the table of the README.
func short(run Run, rows []row) string {
	var out strings.Builder
	fmt.Fprintln(&out, "| System | Messages | To a bare `INSERT` | Commit to work, p50 | p99 |")
	fmt.Fprintln(&out, "| --- | --- | --- | --- | --- |")
	for _, r := range rows {
		if isShort(r.name) {
			p50, p99 := r.times()
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.name, r.rateText(), r.ratioText(), p50, p99)
		}
	}
	return out.String() + "\n" + wrapped(circumstances(run))
}

func isShort(name string) bool {
	return slices.ContainsFunc(systems, func(s system) bool { return s.name == name && s.isShort })
}

// full is the table of the page on performance, with what each peer promises.
func full(run Run, rows []row) string {
	var out strings.Builder
	fmt.Fprintln(&out, "| System | Messages | Spread | To a bare `INSERT` | Commit to work, p50 | p90 | p99 |")
	fmt.Fprintln(&out, "| --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		spread, p90 := "", ""
		if r.rate > 0 {
			spread = fmt.Sprintf("%.0f%%", 100*r.spread)
		}
		if r.latency != nil {
			p90 = ms(r.latency.P90MS)
		}
		p50, p99 := r.times()
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", r.named(), r.rateText(), spread, r.ratioText(), p50, p90, p99)
	}
	fmt.Fprintf(&out, "\n%s\nThe others promise less or more than Parley:\n\n", wrapped(circumstances(run)))
	for _, r := range rows {
		if r.promise != "" {
			out.WriteString(wrappedAs("- ", fmt.Sprintf("%s: %s.", r.name, r.promise)))
		}
	}
	failed := texts(run, "failed")
	missing := texts(run, "missing")
	for _, s := range systems {
		if missing[s.report] != "" {
			out.WriteString(wrappedAs("- ", fmt.Sprintf("%s was not there: %s.", s.name, missing[s.report])))
		}
		if failed[s.report] != "" {
			out.WriteString(wrappedAs("- ", s.name+" could not be measured to the end."))
		}
	}
	return out.String()
}

func (r row) named() string {
	if r.version == "" {
		return r.name
	}
	return r.name + " (" + r.version + ")"
}

// circumstances says of a run of queues what its figures cannot be judged without.
func circumstances(run Run) string {
	return circumstancesWith(run, fmt.Sprintf(" bodies of 100 bytes; 8 sessions send one message a transaction for %.0f s; latency at %.0f "+
		"messages a second", number(run, "duration_seconds"), number(run, "rate")))
}

// circumstancesOf says it of a run of any scenario.
func circumstancesOf(run Run) string {
	return circumstancesWith(run, fmt.Sprintf(" runs of %.3g s after %.3g s of warm-up, %s messages where they wait",
		number(run, "duration_seconds"), number(run, "warm_up_seconds"), record.Number(number(run, "messages"))))
}

func number(run Run, setting string) float64 {
	value, _ := run.Settings[setting].(float64)
	return value
}

// circumstancesWith gives date, machine, settings, neighbours and command, with the settings of the scenario in between.
func circumstancesWith(run Run, scenario string) string {
	text := fmt.Sprintf("One run of %s, all in turns, the median of %.0f: %s, %d cores, PostgreSQL %s, `fsync` %v, `synchronous_commit` "+
		"%v,%s.", run.StartedAt.Format("2 January 2006"), number(run, "repeat"), run.Machine.CPU, run.Machine.Cores,
		strings.Fields(run.Machine.PostgresVersion + " ")[0], run.Settings["fsync"], run.Settings["synchronous_commit"], scenario)
	isOther := func(c record.Check) bool { return c.Name == record.Neighbours }
	if i := slices.IndexFunc(run.Setup, isOther); i >= 0 {
		text += " At its beginning: " + run.Setup[i].Text + "."
	}
	return text + " Ratios count. The command: `" + run.Command + "`."
}

// lineLength is that of the pages.
const lineLength = 118

func wrapped(text string) string { return wrappedAs("", text) }

// wrappedAs breaks a text into lines, the first of which begins with a mark.
func wrappedAs(mark, text string) string {
	var out strings.Builder
	line := mark
	for word := range strings.FieldsSeq(text) {
		switch {
		case strings.TrimSpace(line) == "" || line == mark:
			line += word
		case len(line)+1+len(word) > lineLength:
			out.WriteString(line + "\n")
			line = strings.Repeat(" ", len(mark)) + word
		default:
			line += " " + word
		}
	}
	return out.String() + line + "\n"
}
