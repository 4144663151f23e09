package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

const completeOrchestrations verb.Completer = `select o.name || chr(9) || o.state from parley_flow.orchestrations as o order by o.name`

// instanceFilter are the flags that choose instances. The database defines the conditions.
type instanceFilter struct {
	cmd                  *cobra.Command
	texts                map[string]*string
	instances            []int64
	version              int
	olderThan, newerThan time.Duration
}

func (f *instanceFilter) add(env environment, cmd *cobra.Command) {
	f.cmd, f.texts = cmd, map[string]*string{}
	flags := cmd.Flags()
	for _, condition := range []struct{ name, usage string }{
		{"orchestration", "of this orchestration"},
		{"application", "of this application"},
		{"host", "of this host"},
		{"status", "that are NEW, WAITING, RETRYING or SUSPENDED"},
		{"code", "with a fault of this code"},
	} {
		f.texts[condition.name] = flags.String(condition.name, "", "instances "+condition.usage)
	}
	flags.Int64SliceVar(&f.instances, "instance", nil, "these instances, by their numbers")
	flags.IntVar(&f.version, "version-of", 0, "instances that began with this version")
	flags.DurationVar(&f.olderThan, "older-than", 0, "instances that began longer ago, such as 1h")
	flags.DurationVar(&f.newerThan, "newer-than", 0, "instances that began since, such as 1h")
	env.CompleteFlag(cmd, "orchestration", completeOrchestrations)
}

func (f *instanceFilter) filter() flowstore.Filter {
	filter := flowstore.Filter{}
	flags := f.cmd.Flags()
	for name, value := range f.texts {
		if flags.Changed(name) {
			filter[name] = strings.TrimSpace(*value)
		}
	}
	if flags.Changed("status") {
		filter["status"] = strings.ToUpper(*f.texts["status"])
	}
	if flags.Changed("instance") {
		filter["instances"] = f.instances
	}
	if flags.Changed("version-of") {
		filter["version"] = f.version
	}
	if flags.Changed("older-than") {
		filter["older"] = fmt.Sprintf("%f seconds", f.olderThan.Seconds())
	}
	if flags.Changed("newer-than") {
		filter["newer"] = fmt.Sprintf("%f seconds", f.newerThan.Seconds())
	}
	return filter
}

func newInstancesCommand(env environment) *cobra.Command {
	var filter instanceFilter
	var top int
	var after int64
	cmd := &cobra.Command{
		Use:   "instances",
		Short: "List instances of orchestrations and what each waits for; resume, migrate or terminate them",
		Long: `List instances of orchestrations that are not over, the oldest first, and what each waits for. You see those of applications for
which you hold the right VIEW.`,
		Example: `  parley flow instances --status suspended
  parley flow instances resume --orchestration Approve --code process.step
  parley flow instances terminate --orchestration Approve --version-of 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if top < 1 || after < 0 {
				return verb.Usagef("--limit is positive, --after is the number of an instance")
			}
			return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]flowstore.Instance, error) {
				return flowstore.Instances(ctx, db, filter.filter(), top, after)
			}, func(out io.Writer, found []flowstore.Instance) error { return writeInstances(out, found, top) })
		},
	}
	filter.add(env, cmd)
	cmd.Flags().IntVar(&top, "limit", 100, "list at most so many")
	cmd.Flags().Int64Var(&after, "after", 0, "list those behind this instance, the last one that was listed")
	cmd.AddCommand(
		newInstanceOperation(env, "resume", "Have suspended instances go on, and those that wait for another attempt try at once",
			`Have suspended instances go on where they stand: a step that failed is tried again, and messages that came meanwhile are taken.
Those that are RETRYING do not wait for the time of their next attempt. Mend the cause first.`,
			"resumed", flowstore.ResumeInstances),
		newInstanceOperation(env, "terminate", "End instances where they stand",
			`End instances where they stand. Nothing is compensated. They wait for nothing any more, and messages that they have not read are
published again, given to a new instance or suspended, as their orchestration says.`, "terminated", flowstore.TerminateInstances),
		newMigrateCommand(env),
	)
	return cmd
}

// changedInstances reports an operation on instances to programs; a stable format.
type changedInstances struct {
	Instances int  `json:"instances"`
	DryRun    bool `json:"dry_run"`
}

// slice is how many instances one transaction changes.
const slice = 1000

// newInstanceOperation makes a verb that does something to instances, in slices that are a transaction each.
func newInstanceOperation(
	env environment, name, short, long, done string,
	do func(ctx context.Context, db parley.DB, filter flowstore.Filter, top int, dryRun bool) (int, error),
) *cobra.Command {
	var filter instanceFilter
	var isAll, dryRun bool
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long + "\n\nYou need the right OPERATE for their application.", Args: cobra.NoArgs,
		Example: fmt.Sprintf("  parley flow instances %s --instance 1704", name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen := filter.filter()
			if len(chosen) == 0 != isAll {
				return verb.Usagef("choose instances by --instance, --orchestration or another flag, or all by --all alone")
			}
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				changed := changedInstances{DryRun: dryRun}
				for {
					n, err := do(ctx, conn, chosen, slice, dryRun)
					changed.Instances += n
					if err != nil {
						return fmt.Errorf("%s instances: %w", name, err)
					}
					// One that is resumed may fail again while this goes on: it is resumed once.
					if n == 0 || dryRun || name == "resume" && n < slice {
						break
					}
				}
				if changed.Instances == 0 && chosen["instances"] != nil {
					return errors.New("of these numbers none can be " + done + " now: parley flow instances lists them")
				}
				if env.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), changed)
				}
				would := map[bool]string{true: "would be ", false: ""}[dryRun]
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s\n", verb.Counted(changed.Instances, "instance"), would, done)
				return err
			})
		},
	}
	filter.add(env, cmd)
	cmd.Flags().BoolVar(&isAll, "all", false, "all instances")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only count the instances, up to 1000")
	return cmd
}

// waitOf is something that an instance waits for.
type waitOf struct {
	Kind   string            `json:"kind"`
	Shape  string            `json:"shape"`
	At     *time.Time        `json:"at"`
	Queue  string            `json:"queue"`
	Values map[string]string `json:"values"`
	IsOpen bool              `json:"is_open"`
}

func (w waitOf) String() string {
	switch {
	case w.At != nil:
		return w.Kind + " " + verb.Moment(w.At)
	case w.Queue != "":
		return fmt.Sprintf("%s %s by queue %s", w.Kind, w.Shape, w.Queue)
	}
	values := []string{}
	for _, name := range slices.Sorted(maps.Keys(w.Values)) {
		values = append(values, name+" = "+w.Values[name])
	}
	text := fmt.Sprintf("%s with %s", w.Shape, strings.Join(values, ", "))
	if !w.IsOpen {
		text += " later"
	}
	return text
}

func waitsOf(written json.RawMessage) []waitOf {
	waits := []waitOf{}
	_ = json.Unmarshal(written, &waits) // of the database, which wrote it
	return waits
}

func writeInstances(out io.Writer, found []flowstore.Instance, top int) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "there are no such instances")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "INSTANCE\tORCHESTRATION\tVERSION\tSTATUS\tBEGAN\tSTEPS\tUNREAD\tWAITS FOR\tERROR")
	for _, i := range found {
		texts := []string{}
		for _, w := range waitsOf(i.WaitsFor) {
			texts = append(texts, w.String())
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%s\t%d\t%d\t%s\t%s\n", i.InstanceID, verb.OneLine(i.Orchestration, 0), i.Version, i.Status,
			verb.Moment(&i.BeganAt), i.Steps, i.Unread, verb.OrNone(verb.OneLine(strings.Join(texts, "; "), errorWidth)),
			verb.OrNone(verb.OneLine(placedError(i), errorWidth)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := writeRemedies(out, found); err != nil || len(found) < top {
		return err
	}
	_, err := fmt.Fprintf(out, "%d shown; for the next ones: --after %d\n", top, found[len(found)-1].InstanceID)
	return err
}

// placedError gives the error of an instance behind the place of its shape, or nothing.
func placedError(i flowstore.Instance) string {
	if i.Error == nil || verb.OrEmpty(i.Path) == "" {
		return verb.OrEmpty(i.Error)
	}
	return *i.Path + ": " + *i.Error
}

// writeRemedies writes each remedy of the instances once, in their order.
func writeRemedies(out io.Writer, found []flowstore.Instance) error {
	remedies := []string{}
	for _, i := range found {
		if remedy := verb.OneLine(verb.OrEmpty(i.Remedy), 0); remedy != "" && !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	for _, remedy := range remedies {
		if _, err := fmt.Fprintln(out, "HINT:", remedy); err != nil {
			return err
		}
	}
	return nil
}

// oneInstance is an instance with what was tracked of it, for programs; a stable format. Of one that is over there is only that.
type oneInstance struct {
	Instance *flowstore.Instance       `json:"instance"`
	Events   []flowstore.InstanceEvent `json:"events"`
}

func newInstanceCommand(env environment) *cobra.Command {
	var isHTML bool
	cmd := &cobra.Command{
		Use:   "instance NUMBER",
		Short: "Show an instance of an orchestration: where it stands, what it waits for, the path it took",
		Long: `Show an instance of an orchestration: where it stands, what it waits for, and what was tracked of it, also when it is over. With
--html write a page with a picture of its definition, in which the path that it took and the place where it stands are marked.`,
		Example: `  parley flow instance 1704
  parley flow instance 1704 --html > instance.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || number < 1 {
				return verb.Usagef("%q is no number of an instance", args[0])
			}
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				shown, err := findInstance(ctx, conn, number)
				switch {
				case err != nil:
					return err
				case isHTML:
					return writePicture(ctx, conn, out, number, shown)
				case env.JSON:
					return verb.EncodeJSON(out, shown)
				}
				return writeInstance(out, number, shown)
			})
		},
	}
	cmd.Flags().BoolVar(&isHTML, "html", false, "write a page with a picture")
	return cmd
}

func findInstance(ctx context.Context, conn *pgx.Conn, number int64) (oneInstance, error) {
	shown := oneInstance{}
	found, err := flowstore.Instances(ctx, conn, flowstore.Filter{"instances": []int64{number}}, 1, 0)
	if err != nil {
		return shown, err
	}
	if len(found) > 0 {
		shown.Instance = &found[0]
	}
	if shown.Events, err = flowstore.TrackInstance(ctx, conn, number); err != nil {
		return shown, err
	}
	if shown.Instance == nil && len(shown.Events) == 0 {
		return shown, fmt.Errorf("there is no instance %d that you may see, and none was tracked: parley flow instances lists them", number)
	}
	return shown, nil
}

func writeInstance(out io.Writer, number int64, shown oneInstance) error {
	if i := shown.Instance; i != nil {
		fmt.Fprintf(out, "instance %d of %s, version %d: %s since %s, after %s\n", number, verb.OneLine(i.Orchestration, 0), i.Version,
			i.Status, verb.Moment(&i.ChangedAt), verb.Counted(int(i.Steps), "step"))
		if i.Error != nil {
			fmt.Fprintf(out, "  %s at %s: %s\n", verb.OrEmpty(i.Code), verb.OrNone(verb.OrEmpty(i.Path)), verb.OneLine(*i.Error, 0))
			if remedy := verb.OneLine(verb.OrEmpty(i.Remedy), 0); remedy != "" {
				fmt.Fprintln(out, "  HINT:", remedy)
			}
		}
		for _, at := range i.StandsAt {
			fmt.Fprintf(out, "  stands at %s\n", verb.OneLine(at, 0))
		}
		for _, w := range waitsOf(i.WaitsFor) {
			fmt.Fprintf(out, "  waits for %s\n", verb.OneLine(w.String(), 0))
		}
		if i.Unread > 0 {
			fmt.Fprintf(out, "  has %s that it cannot take yet\n", verb.Counted(int(i.Unread), "message"))
		}
	}
	for _, e := range shown.Events {
		if _, err := fmt.Fprintf(out, "%s  %s  %s\n", verb.Moment(&e.At), e.Event, verb.OneLine(string(e.Fields), 0)); err != nil {
			return err
		}
	}
	return nil
}

func newOrchestrationsCommand(env environment) *cobra.Command {
	var scope flowstore.Scope
	cmd := &cobra.Command{
		Use:   "orchestrations",
		Short: "List orchestrations, their states, and how many instances of which version they have",
		Long: `List orchestrations, their states, how many messages wait to begin instances or for these, and how many instances there are of
each version. You see those of applications for which you hold the right VIEW.`,
		Example: `  parley flow orchestrations --application Orders`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]flowstore.Orchestration, error) {
				return flowstore.Orchestrations(ctx, db, scope)
			}, writeOrchestrations)
		},
	}
	cmd.Flags().StringVar(&scope.Application, "application", "", "those of this application")
	cmd.Flags().StringVar(&scope.Host, "host", "", "those of this host")
	cmd.Flags().StringVar(&scope.State, "state", "", "those that are Bound, Stopped or Started")
	return cmd
}

func writeOrchestrations(out io.Writer, found []flowstore.Orchestration) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "there are no such orchestrations")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "ORCHESTRATION\tAPPLICATION\tHOST\tSTATE\tVERSION\tWAITING\tINSTANCES\tRETRYING\tSUSPENDED\tOF VERSIONS\tOLDEST")
	for _, o := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", verb.OneLine(o.Name, 0), verb.OneLine(o.Application, 0),
			verb.OneLine(o.Host, 0), o.State, o.Version, o.Waiting, o.Instances, o.Retrying, o.Suspended, string(o.Versions),
			verb.Moment(o.Oldest))
	}
	return table.Flush()
}
