package verbs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// operation does something to suspended messages that flags choose, in slices that are a transaction each.
type operation struct {
	env         environment
	name, done  string // the verb, and as in "3 messages resumed"
	filter      suspendedFilter
	all, dryRun bool
	step, limit int
	// run does it to messages, and gives how many it was done to.
	run func(ctx context.Context, conn *pgx.Conn, messages []flowstore.Suspended) (int, error)
	// stays says why it was not done to the others.
	stays string
}

// changedMessages reports an operation on suspended messages to programs; a stable format.
type changedMessages struct {
	Messages int  `json:"messages"`
	Left     int  `json:"left"`
	DryRun   bool `json:"dry_run"`
}

func (o *operation) add(cmd *cobra.Command) {
	o.filter.add(o.env, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "all suspended messages")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count the messages")
	flags.IntVar(&o.step, "step", 1000, "so many messages in one transaction")
	flags.IntVar(&o.limit, "limit", 0, "at most so many messages; 0 for all")
}

func (o *operation) operate(cmd *cobra.Command) error {
	filter, err := o.filter.filter()
	if err != nil {
		return err
	}
	switch {
	case o.step < 1 || o.limit < 0:
		return verb.Usagef("--step is positive, --limit is not negative")
	case len(filter) == 0 && !o.all:
		return verb.Usagef("choose messages by --send-port, --message or another flag, or all by --all")
	case len(filter) > 0 && o.all:
		return verb.Usagef("--all goes with no other choice")
	}
	ctx := cmd.Context()
	return o.env.WithConnection(ctx, func(conn *pgx.Conn) error {
		changed, err := o.repeat(ctx, conn, filter)
		if err == nil && changed.Messages+changed.Left == 0 && (filter["suspensions"] != nil || filter["messages"] != nil) {
			err = errors.New("of these numbers none is suspended: parley flow suspended lists them")
		}
		if err != nil {
			if changed.Messages > 0 {
				fmt.Fprintf(o.env.Stderr, "%s before it failed; do it again for the rest\n", o.report(changed))
			}
			return fmt.Errorf("%s suspended messages: %w", o.name, err)
		}
		if o.env.JSON {
			return verb.EncodeJSON(cmd.OutOrStdout(), changed)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), o.report(changed))
		return err
	})
}

// repeat does it slice by slice, once to each message that was suspended when it began, and gives what is done also where it fails. One
// that is resumed and fails again has a new number, and waits for the next command.
func (o *operation) repeat(ctx context.Context, conn *pgx.Conn, filter flowstore.Filter) (changedMessages, error) {
	changed := changedMessages{DryRun: o.dryRun}
	progress := verb.NewProgressLine(o.env.Stderr)
	defer progress.Clear()
	chosen, err := o.count(ctx, conn, filter)
	if err != nil {
		return changed, err
	}
	begin, err := verb.DueIn(ctx, conn, 0)
	if err != nil {
		return changed, err
	}
	for after, slices := int64(0), 0; ; slices++ {
		top := o.step
		if o.limit > 0 {
			top = min(top, o.limit-changed.Messages-changed.Left)
		}
		if top < 1 {
			return changed, nil
		}
		page, err := flowstore.FindSuspended(ctx, conn, filter, top, after)
		if err != nil || len(page) == 0 {
			return changed, err
		}
		after = page[len(page)-1].SuspensionID
		if page = before(page, begin); len(page) == 0 {
			continue
		}
		n, err := o.run(ctx, conn, page)
		changed.Messages += n
		if err != nil {
			return changed, err
		}
		changed.Left += len(page) - n
		if slices > 0 {
			progress.Show(fmt.Sprintf("%s, of %d", o.report(changed), chosen))
		}
	}
}

// before gives those that were suspended before.
func before(page []flowstore.Suspended, begin time.Time) []flowstore.Suspended {
	kept := []flowstore.Suspended{}
	for _, s := range page {
		if !s.SuspendedAt.After(begin) {
			kept = append(kept, s)
		}
	}
	return kept
}

// count says how many messages are chosen, before anything is done to them.
func (o *operation) count(ctx context.Context, conn *pgx.Conn, filter flowstore.Filter) (chosen int64, err error) {
	groups, err := flowstore.SuspendedGroups(ctx, conn, filter)
	if err != nil {
		return 0, err
	}
	for _, group := range groups {
		chosen += group.Messages
	}
	if !o.env.JSON {
		fmt.Fprintf(o.env.Stderr, "%s chosen, in %s\n", verb.Counted(int(chosen), "message"), verb.Counted(len(groups), "group"))
	}
	return chosen, nil
}

func (o *operation) report(changed changedMessages) string {
	what := verb.Counted(changed.Messages, "message")
	if changed.DryRun {
		what += " would be"
	}
	what += " " + o.done
	if changed.Left > 0 {
		what += fmt.Sprintf(", %d left: %s", changed.Left, o.stays)
	}
	return what
}

func numbersOf(messages []flowstore.Suspended) []int64 {
	numbers := make([]int64, len(messages))
	for i, m := range messages {
		numbers[i] = m.SuspensionID
	}
	return numbers
}

func newResumeCommand(env environment) *cobra.Command {
	rate := 0
	o := &operation{env: env, name: "resume", done: "resumed"}
	o.stays = "they cannot be resumed, their port or location is gone, they match nothing still, " +
		"or another application's operator has to do it"
	o.run = func(ctx context.Context, conn *pgx.Conn, messages []flowstore.Suspended) (int, error) {
		return flowstore.Resume(ctx, conn, numbersOf(messages), rate, o.dryRun)
	}
	cmd := &cobra.Command{
		Use:   "resume {--all | --send-port PORT ...}",
		Short: "Have suspended messages tried again",
		Long: `Have suspended messages tried again: by their send port, by the pipeline of their location, or routed anew where they matched
nothing. They are counted first, and go slice by slice, a transaction each. One that fails again is suspended again, and is not resumed
twice by one command. With --rate at most so many go in a second. You need the right OPERATE.`,
		Example: `  parley flow suspended resume --send-port ERP --dry-run
  parley flow suspended resume --send-port ERP --rate 50`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rate < 0 {
				return verb.Usagef("--rate %d: give a positive number, or 0 for no limit", rate)
			}
			// They go with the commit of their slice, which is therefore one second's.
			if rate > 0 {
				o.step = min(o.step, rate)
			}
			return o.operate(cmd)
		},
	}
	o.add(cmd)
	cmd.Flags().IntVar(&rate, "rate", 0, "at most so many a second; 0 for no limit")
	return cmd
}

func newTerminateCommand(env environment) *cobra.Command {
	o := &operation{env: env, name: "terminate", done: "terminated"}
	o.stays = "another application's operator has to do it, or somebody else did"
	o.run = func(ctx context.Context, conn *pgx.Conn, messages []flowstore.Suspended) (int, error) {
		return flowstore.Terminate(ctx, conn, numbersOf(messages), o.dryRun)
	}
	cmd := &cobra.Command{
		Use:   "terminate {--all | --send-port PORT ...}",
		Short: "Give suspended messages up for good",
		Long: `Give suspended messages up for good. They are counted first, and go slice by slice, a transaction each. A message that others
still send stays for them, and what waits behind one in its order goes on. Save them first where they may be needed. You need the right
OPERATE.`,
		Example: `  parley flow suspended terminate --code send.refused --older-than 720h --dry-run
  parley flow suspended terminate --message 17`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.operate(cmd) },
	}
	o.add(cmd)
	return cmd
}
