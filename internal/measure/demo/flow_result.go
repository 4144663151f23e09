package demo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/machine"
)

// FlowResult is the result of a run of the demo of integration. As JSON it is a stable format; docs/reference/json.md describes it.
type FlowResult struct {
	// Passed reports whether nothing was found wrong, a record was mended, a node was killed, and nothing was left behind.
	Passed bool `json:"passed"`
	FlowFindings
	OrdersSample
	NodesKilled int               `json:"nodes_killed"`
	LeftBehind  FlowLeftovers     `json:"left_behind"`
	Settings    FlowSettings      `json:"settings"`
	Machine     machine.Machine   `json:"machine"`
	Server      map[string]string `json:"server_settings"`
	StartedAt   time.Time         `json:"started_at"`
	// HTML is the path of the result page, or empty.
	HTML string `json:"html"`

	// Fields that only the page shows.
	samples []OrdersSample
	marks   []mailMark
}

// FlowSettings are the settings of the run.
type FlowSettings struct {
	Sessions        int     `json:"sessions"`
	DurationSeconds float64 `json:"duration_seconds"`
}

// FlowLeftovers counts inputs that no node has taken, and messages that are still in the engine.
type FlowLeftovers struct {
	Files     int64 `json:"files"`
	Rows      int64 `json:"rows"`
	Messages  int64 `json:"messages"`
	Suspended int64 `json:"suspended"`
	Work      int64 `json:"work"`
	Received  int64 `json:"queue"`
	Instances int64 `json:"instances"`
}

func (l FlowLeftovers) total() int64 {
	return l.Files + l.Rows + l.Messages + l.Suspended + l.Work + l.Received + l.Instances
}

// left counts what is under way. A message that was mended stays for a while as it came, and is not counted.
func (r *flowRun) left(ctx context.Context) (l FlowLeftovers, err error) {
	files, err := os.ReadDir(r.path("in"))
	if err != nil {
		return l, fmt.Errorf("count the files: %w", err)
	}
	l.Files = int64(len(files))
	err = r.control.QueryRow(ctx, `
		select
			(select count(*) from shop.orders_out) + (select count(*) from shop.answers_out)
				+ (select count(*) from shop.questions where not is_done),
			(
				select count(*)
				from parley_flow.messages as m
				where not exists (
					select from parley_flow.audit as a where a.operation = 'resubmit' and a.object = format('message %s', m.message_id)
				)
			),
			(select count(*) from parley_flow.suspended),
			(select count(*) from parley_store.work_items as w where w.system not in ('mail', 'mail_service')),
			(select count(*) from parley_queue.billing),
			(select count(*) from parley_flow.instances)`,
	).Scan(&l.Rows, &l.Messages, &l.Suspended, &l.Work, &l.Received, &l.Instances)
	if err != nil {
		return l, fmt.Errorf("count what is under way: %w", err)
	}
	return l, nil
}

// arrivals reads what arrived at each port, in the order of arrival.
func (r *flowRun) arrivals(ctx context.Context) (map[string][]flowArrival, error) {
	arrived := map[string][]flowArrival{portWarehouse: r.warehouse.arrivals}
	for port, query := range map[string]string{
		portApprovals: "select message_id::text, document from shop.approvals order by arrival",
		portBilling:   "select '', document from shop.billed order by arrival",
	} {
		rows, err := r.control.Query(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("read what arrived at %s: %w", port, err)
		}
		documents, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Key, Document string }])
		if err != nil {
			return nil, fmt.Errorf("read what arrived at %s: %w", port, err)
		}
		for _, d := range documents {
			text, err := readOrder([]byte(d.Document))
			if err != nil {
				return nil, err
			}
			arrived[port] = append(arrived[port], flowArrival{text, d.Key})
		}
	}
	files, err := archived(r.path("archive"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		document, err := os.ReadFile(r.path("archive", file))
		if err != nil {
			return nil, fmt.Errorf("read the archive: %w", err)
		}
		text, err := readOrder(document)
		if err != nil {
			return nil, err
		}
		arrived[portArchive] = append(arrived[portArchive], flowArrival{text, file})
	}
	return arrived, nil
}

// conclude judges, and puts the result together.
func (r *flowRun) conclude(ctx context.Context) (result FlowResult, err error) {
	r.notice("Checking every order.")
	result = FlowResult{
		NodesKilled: r.killed, StartedAt: r.began, samples: r.samples, marks: r.marks,
		Settings: FlowSettings{Sessions: r.config.Sessions, DurationSeconds: r.config.Duration.Seconds()},
	}
	if result.OrdersSample, err = r.sample(ctx); err != nil {
		return result, err
	}
	if result.LeftBehind, err = r.left(ctx); err != nil {
		return result, err
	}
	r.warehouse.leave()
	if r.warehouse.err != nil {
		return result, r.warehouse.err
	}
	arrivals, err := r.arrivals(ctx)
	if err != nil {
		return result, err
	}
	outcomes, err := r.partners(ctx)
	if err != nil {
		return result, err
	}
	result.FlowFindings = judgeFlow(r.orders, arrivals)
	result.judgePartners(r.orders, outcomes)
	if result.Machine, err = machine.Read(ctx, r.control); err != nil {
		return result, err
	}
	if result.Server, err = machine.Settings(ctx, r.control, serverSettings...); err != nil {
		return result, err
	}
	result.Passed = len(result.wrongs()) == 0
	return result, nil
}

// wrongs lists what must not be.
func (r *FlowResult) wrongs() (wrong []string) {
	for _, w := range []struct {
		count int64
		text  string
	}{
		{r.Lost, "lost"},
		{r.Duplicated, "doubled"},
		{r.Misrouted, "arrived where they had not to"},
		{r.OutOfOrder, "out of order"},
		{r.Changed, "changed"},
		{r.NeverSent, "arrived though never sent"},
		{r.Unfinished, "of partners without an end"},
		{r.EndedTwice, "of partners ended twice"},
		{r.Contradicted, "of partners ended otherwise than files, mails or back ends say"},
		{r.LeftBehind.total(), "left behind"},
	} {
		if w.count > 0 {
			wrong = append(wrong, thousands(w.count)+" "+w.text)
		}
	}
	if r.NodesKilled != 1 {
		wrong = append(wrong, "no node was killed")
	}
	if r.Mended == 0 {
		wrong = append(wrong, "no bad record was suspended and mended")
	}
	if r.Confirmed == 0 || r.TakenBack == 0 {
		wrong = append(wrong, "no order of a partner was confirmed, or none was taken back")
	}
	for _, way := range flowWays {
		if r.Taken[way] == 0 {
			wrong = append(wrong, "nothing came by "+way)
		}
	}
	if slices.ContainsFunc(flowPorts, func(port string) bool { return r.Arrived[port] == 0 }) {
		wrong = append(wrong, "a port got nothing")
	}
	return wrong
}

// archived gives the files of a folder that are complete, by name. One with a dot in front is being written, or a node was killed when it
// wrote it.
func archived(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// repeats is how many messages came again with their key where at least once is promised.
func (r *FlowResult) repeats() int64 { return total(r.Repeated) }

// Verdict states in a sentence how the demo ended.
func (r *FlowResult) Verdict() string {
	if wrong := r.wrongs(); len(wrong) > 0 {
		return "Failed: " + strings.Join(wrong, ", ") + "."
	}
	text := fmt.Sprintf("All %s orders arrived unchanged at every place where they had to, %s messages in all, in tables and services "+
		"exactly once, each customer's in order, though the warehouse was away for a while and a node was killed. %s mended and resubmitted. "+
		"%s of partners ended once: %s by both back ends, and %s back, as not both answered in time; each has its row, "+
		"its file and its mail.",
		thousands(r.Orders), thousands(total(r.Arrived)), counted(r.Mended, "bad record was", "bad records were"),
		counted(r.Confirmed+r.TakenBack, "order", "orders"), counted(r.Confirmed, "was confirmed", "were confirmed"),
		counted(r.TakenBack, "was taken", "were taken"))
	if repeats := r.repeats(); repeats > 0 {
		text += fmt.Sprintf(" %s again at the warehouse, with the same key.", counted(repeats, "message came", "messages came"))
	}
	return text
}

// Command is the command line that plays the same run.
func (r *FlowResult) Command() string {
	return fmt.Sprintf("go run ./cmd/parley demo flow --sessions %d --duration %gs", r.Settings.Sessions, r.Settings.DurationSeconds)
}
