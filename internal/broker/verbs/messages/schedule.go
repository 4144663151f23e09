package messages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/cron"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// scheduleChange is the output of the verbs that change a schedule, for programs; a stable format.
type scheduleChange struct {
	Schedule string `json:"schedule"`
	Change   string `json:"change"` // set, removed, paused, resumed or run
}

func newScheduleCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "schedule",
		Short:      "List schedules, set, pause, run and remove them",
		SuggestFor: []string{"cron", "crontab", "periodic", "recurring"},
		Long: `List schedules: messages that the daemon puts into a simple queue again and again, or with which it begins a conversation.
You see your own and those of queues that you may take from.`,
		Example: `  parley schedule
  parley schedule set nightly jobs 'make the report' --cron '30 2 * * *' --time-zone Europe/Berlin
  parley schedule set hourly 'count the stock' --from Shop --to Stock --cron @hourly
  parley schedule history nightly`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, operate.ReadSchedules, writeSchedules)
		},
	}
	cmd.AddCommand(
		newScheduleSetCommand(a), newScheduleHistoryCommand(a),
		newScheduleChangeCommand(a, "pause", "Pause a schedule; times that pass are not made up for", "paused", operate.PauseSchedule),
		newScheduleChangeCommand(a, "resume", "Have a schedule that is paused go on", "resumed", operate.ResumeSchedule),
		newScheduleChangeCommand(a, "run", "Put the message of a schedule now; its next time stays", "run", operate.RunSchedule),
		newScheduleChangeCommand(a, "remove", "Remove a schedule and its history", "removed", operate.RemoveSchedule),
	)
	return cmd
}

func newScheduleSetCommand(a *verb.App) *cobra.Command {
	var cronText, zone, key, missed, from, to, contract, messageType string
	var every time.Duration
	var priority int32
	cmd := &cobra.Command{
		Use: "set NAME {QUEUE BODY | BODY --from SERVICE --to SERVICE} (--cron EXPRESSION | --every DURATION)",
		Example: "  parley schedule set nightly jobs 'make the report' --cron '30 2 * * *' --time-zone Europe/Berlin\n" +
			"  parley schedule set poll jobs poll --every 5m --missed skip\n" +
			"  parley schedule set hourly 'count the stock' --from Shop --to Stock --cron @hourly",
		Short: "Make a schedule, or change the one of that name",
		Long: `Make a schedule, or change the one of that name; it keeps its next time unless when it is due changes. Cron expressions have five
fields, minute, hour, day of the month, month and day of the week, or six with seconds in front; @hourly, @daily and the like are
known too. With --from and --to each due time begins a conversation between these services, and BODY is its first message.

With - for BODY it is what comes from standard input.`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cronText != "" {
				expression, err := cron.Parse(cronText)
				if err == nil {
					_, err = expression.Next(time.Now(), time.UTC) // the 31st of February never comes
				}
				if err != nil {
					return verb.Usagef("--cron: %v", err)
				}
			}
			body, err := bodyOf(args[len(args)-1], a.Stdin)
			if err != nil {
				return err
			}
			schedule := operate.NewSchedule{
				Name: args[0], Body: string(body),
				FromService: verb.Given(cmd, "from", from), ToService: verb.Given(cmd, "to", to),
				Contract: verb.Given(cmd, "contract", contract), MessageType: verb.Given(cmd, "message-type", messageType),
				Cron: verb.Given(cmd, "cron", cronText), Every: verb.Given(cmd, "every", every), TimeZone: verb.Given(cmd, "time-zone", zone),
				Key: verb.Given(cmd, "key", key), Priority: verb.Given(cmd, "priority", priority),
				Missed: verb.Given(cmd, "missed", strings.ToUpper(missed)),
			}
			switch {
			case (len(args) == 2) != (schedule.FromService != nil):
				return verb.Usagef("give a queue and a body, or a body with --from and --to")
			case len(args) == 3:
				schedule.Queue = args[1]
			}
			return changeSchedule(a, cmd, args[0], "set", func(ctx context.Context, conn *pgx.Conn) error {
				_, err := operate.SetSchedule(ctx, conn, schedule)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cronText, "cron", "", "when it is due, such as '30 2 * * *'")
	flags.DurationVar(&every, "every", 0, "how often it is due from now on, such as 5m")
	flags.StringVar(&zone, "time-zone", "UTC", "time zone in which --cron is meant")
	flags.StringVar(&key, "key", "", "its messages are taken in order with the others of this key")
	flags.Int32Var(&priority, "priority", 5, "1 is last, 10 is first")
	flags.StringVar(&from, "from", "", "the service from which a conversation is begun")
	flags.StringVar(&to, "to", "", "the service with which it is begun")
	flags.StringVar(&contract, "contract", "DEFAULT", "contract of the conversation")
	flags.StringVar(&messageType, "message-type", "DEFAULT", "type of its first message")
	flags.StringVar(&missed, "missed", "once", "what becomes of times for which no daemon was there: once, all or skip")
	cmd.MarkFlagsOneRequired("cron", "every")
	cmd.MarkFlagsMutuallyExclusive("cron", "every")
	cmd.MarkFlagsRequiredTogether("from", "to")
	return cmd
}

func newScheduleChangeCommand(
	a *verb.App, name, short, done string, change func(context.Context, parley.DB, string) error,
) *cobra.Command {
	return &cobra.Command{
		Use:               name + " NAME",
		Example:           "  parley schedule " + name + " nightly",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeSchedule(a, cmd, args[0], done, func(ctx context.Context, conn *pgx.Conn) error {
				return change(ctx, conn, args[0])
			})
		},
	}
}

func changeSchedule(a *verb.App, cmd *cobra.Command, name, done string, run func(context.Context, *pgx.Conn) error) error {
	text := fmt.Sprintf("schedule %s %s", verb.OneLine(name, 0), done)
	return a.Change(cmd, scheduleChange{name, done}, cmd.OutOrStdout(), text, run)
}

func newScheduleHistoryCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:               "history NAME",
		Example:           "  parley schedule history nightly",
		Short:             "List the last hundred runs of a schedule",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.ScheduleRun, error) {
				runs, err := operate.ReadScheduleRuns(ctx, db, args[0])
				if err != nil || len(runs) > 0 {
					return runs, err
				}
				return runs, requireSchedule(ctx, db, args[0])
			}, writeScheduleRuns)
		},
	}
}

// requireSchedule tells a schedule that has not run yet from one that is not there.
func requireSchedule(ctx context.Context, db parley.DB, name string) error {
	schedules, err := operate.ReadSchedules(ctx, db)
	if err == nil && !slices.ContainsFunc(schedules, func(s operate.Schedule) bool { return s.Name == name }) {
		err = fmt.Errorf("there is no schedule %s that you may see; parley schedule lists them", name)
	}
	return err
}

func writeSchedules(out io.Writer, schedules []operate.Schedule) error {
	if len(schedules) == 0 {
		_, err := fmt.Fprintln(out, "no schedules")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "NAME\tFOR\tWHEN\tTIME ZONE\tNEXT\tLAST\tFAULT")
	for _, s := range schedules {
		when := verb.OrEmpty(s.Cron)
		if s.Every != nil {
			when = "every " + time.Duration(*s.Every*float64(time.Second)).String()
		}
		next := verb.Moment(s.NextAt)
		switch {
		case s.IsPaused:
			next = "paused"
		case s.NextAt == nil && s.Fault != nil:
			next = "-"
		case s.NextAt == nil: // a new one: the daemon finds out when
			next = "once a daemon runs"
		}
		place := verb.OrEmpty(s.Queue)
		if s.ToService != nil {
			place = verb.OrEmpty(s.FromService) + " to " + *s.ToService
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", verb.OneLine(s.Name, 0), verb.OneLine(place, 0), verb.OneLine(when, 0),
			s.TimeZone, next, verb.Moment(s.LastAt), verb.OrNone(verb.OneLine(verb.OrEmpty(s.Fault), verb.BodyWidth)))
	}
	return table.Flush()
}

func writeScheduleRuns(out io.Writer, runs []operate.ScheduleRun) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "no runs")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "DUE\tSENT\tMESSAGE\tMISSED\tERROR")
	for _, r := range runs {
		message := "-"
		switch {
		case r.MessageID != nil:
			message = fmt.Sprint(*r.MessageID)
		case r.ConversationHandle != nil:
			message = r.ConversationHandle.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", verb.Moment(r.DueAt), verb.Moment(&r.SentAt), message, r.Missed,
			verb.OrNone(verb.OneLine(verb.OrEmpty(r.Error), verb.BodyWidth)))
	}
	return table.Flush()
}
