package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newQueueCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "queue",
		Short:      "Create, alter, pause, switch off and drop queues",
		SuggestFor: []string{"create", "pause", "resume", "alter", "drop"},
		Long: `Create, alter, pause, resume, switch off and on, and drop queues. parley queues lists them. Programs and
web addresses that read a queue are set with parley activation.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		newQueueSettingsCommand(a, "create"), newQueueSettingsCommand(a, "alter"),
		newQueuePauseCommand(a, true), newQueuePauseCommand(a, false), newQueueQuotaCommand(a), newQueueLimitsCommand(a),
		newQueueSwitchCommand(a, "disable", false), newQueueSwitchCommand(a, "enable", true), newQueueDropCommand(a),
	)
	return cmd
}

// objectChange is the change of a command to a queue or a service; as JSON it is a stable format.
type objectChange struct {
	Kind   string `json:"kind"` // queue or service
	Name   string `json:"name"`
	Change string `json:"change"` // created, altered, paused, resumed, disabled, enabled, limited or dropped
}

// changeObject runs one statement and reports what it has changed.
func changeObject(a *verb.App, cmd *cobra.Command, change objectChange, run func(context.Context, *pgx.Conn) error) error {
	return a.Change(cmd, change, cmd.OutOrStdout(), fmt.Sprintf("%s %s %s", change.Kind, verb.OneLine(change.Name, 0), change.Change), run)
}

// newQueueSettingsCommand makes create or alter, which take the same flags.
func newQueueSettingsCommand(a *verb.App, name string) *cobra.Command {
	var off, retention, poison, activation, ifNotExists bool
	var kind, action, procedure, executeAs, owner, retry string
	var rollbacks, most int32
	var window time.Duration
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings := operate.QueueSettings{
				Retention:             verb.Given(cmd, "retention", retention),
				PoisonMessageHandling: verb.Given(cmd, "poison-handling", poison),
				PoisonAction:          verb.Given(cmd, "poison-action", strings.ToUpper(strings.ReplaceAll(action, "-", "_"))),
				PoisonRollbacks:       verb.Given(cmd, "poison-rollbacks", rollbacks),
				ActivationProcedure:   verb.Given(cmd, "procedure", procedure),
				MaxQueueReaders:       verb.Given(cmd, "max-readers", most),
				ExecuteAs:             verb.Given(cmd, "execute-as", executeAs),
				Activation:            verb.Given(cmd, "activation", activation),
				DeduplicationSeconds:  verb.Given(cmd, "deduplication-window", int32(window.Seconds())),
			}
			if cmd.Flags().Changed("retry") {
				policy, err := retryPolicy(retry)
				if err != nil {
					return verb.ExitWith(err, verb.ExitUsage)
				}
				settings.Retry = &policy
			}
			if name == "create" {
				settings.IfNotExists = verb.Given(cmd, "if-not-exists", ifNotExists)
				settings.Kind = verb.Given(cmd, "kind", strings.ToUpper(kind))
				settings.Status = verb.Given(cmd, "off", !off)
				settings.Authorization = verb.Given(cmd, "owner", owner)
				return changeObject(a, cmd, objectChange{"queue", args[0], "created"}, func(ctx context.Context, conn *pgx.Conn) error {
					return operate.CreateQueue(ctx, conn, args[0], settings)
				})
			}
			if settings == (operate.QueueSettings{}) {
				err := fmt.Errorf("nothing to alter in queue %s; parley queue alter --help lists the settings", args[0])
				return verb.ExitWith(err, verb.ExitUsage)
			}
			return changeObject(a, cmd, objectChange{"queue", args[0], "altered"}, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.AlterQueue(ctx, conn, args[0], settings)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&retention, "retention", false, "keep copies of messages until their conversation ends")
	flags.BoolVar(&poison, "poison-handling", true, "count how often a message is rolled back")
	flags.StringVar(&action, "poison-action", "set-aside", "what becomes of a message that came back too often: set-aside or disable-queue")
	flags.Int32Var(&rollbacks, "poison-rollbacks", 5, "how often is too often, 1 to 15")
	flags.StringVar(&procedure, "procedure", "", "procedure that the daemon calls while messages wait, with its schema: public.read_shop")
	flags.Int32Var(&most, "max-readers", 0, "how many of it run at most")
	flags.StringVar(&executeAs, "execute-as", "", "role that it runs as: SELF, OWNER or a name")
	flags.BoolVar(&activation, "activation", false, "whether the procedure is started (default with --procedure at create)")
	flags.DurationVar(&window, "deduplication-window", 0, "for how long a key of parley put --once counts in a simple queue (default 5m)")
	flags.StringVar(&retry, "retry", "", "how long a message waits after a failure: none, or some of "+retrySettings)
	if name == "create" {
		cmd.Use, cmd.Short = "create QUEUE", "Create a queue"
		cmd.Example = "  parley queue create shop\n" +
			"  parley queue create jobs --kind simple --retry first=2s,longest=1h,attempts=30 --if-not-exists\n" +
			"  parley queue create shop --procedure public.read_shop --max-readers 4 --execute-as OWNER"
		flags.StringVar(&kind, "kind", "dialog", "dialog for messages of conversations; simple for parley put and take")
		flags.BoolVar(&off, "off", false, "create it switched off")
		flags.BoolVar(&ifNotExists, "if-not-exists", false, "leave a queue of that name as it is")
		flags.StringVar(&owner, "owner", "", "role that owns it (default the current one)")
		return cmd
	}
	cmd.Use, cmd.Short = "alter QUEUE", "Change settings of a queue"
	cmd.Long = "Change settings of a queue. Flags that are not given keep what is set."
	cmd.Example = "  parley queue alter shop --retention\n  parley queue alter shop --activation=false"
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// newQueuePauseCommand makes pause or resume.
func newQueuePauseCommand(a *verb.App, pauses bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause QUEUE",
		Short: "Pause the readers of a queue; senders go on",
		Long: `Pause the readers of a queue: activation starts none, nothing is delivered to web addresses, and consumers receive nothing.
What they have received they finish. Senders go on, and parley receive takes messages by hand. To let nobody receive, switch the
queue off with parley queue disable.`,
		Example: "  parley queue pause shop",
		Args:    cobra.ExactArgs(1),
	}
	statement, done := operate.PauseReaders, "paused"
	if !pauses {
		cmd.Use, cmd.Short, cmd.Long = "resume QUEUE", "Let the readers of a queue go on", ""
		cmd.Example = "  parley queue resume shop"
		statement, done = operate.ResumeReaders, "resumed"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return changeObject(a, cmd, objectChange{"queue", args[0], done}, func(ctx context.Context, conn *pgx.Conn) error {
			return statement(ctx, conn, args[0])
		})
	}
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// newQueueSwitchCommand makes disable or enable.
func newQueueSwitchCommand(a *verb.App, name string, on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " QUEUE",
		Example: "  parley queue " + name + " shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := objectChange{"queue", args[0], name + "d"}
			return changeObject(a, cmd, change, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.SetQueueStatus(ctx, conn, args[0], on)
			})
		},
	}
	if on {
		cmd.Short = "Let messages be received from a queue again"
		cmd.Long = "Let messages be received from a queue again (ALTER QUEUE ... WITH STATUS = ON), whoever had switched it off.\n" +
			"The rollbacks that were counted are forgotten."
	} else {
		cmd.Short = "Let nothing be received from a queue"
		cmd.Long = "Let nothing be received from a queue (ALTER QUEUE ... WITH STATUS = OFF).\n" +
			"Messages that are sent to it wait with their senders; nothing is lost."
	}
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// droppedQueue is the queue that the command has dropped; as JSON it is a stable format.
type droppedQueue struct {
	objectChange

	Messages int64 `json:"messages"`
}

// dropQueue drops a queue; of one that holds messages it asks whether to, when somebody can answer.
func dropQueue(a *verb.App, cmd *cobra.Command, queue string, force bool) error {
	ctx := cmd.Context()
	return a.WithConnection(ctx, func(conn *pgx.Conn) error {
		dropped, err := operate.DropQueue(ctx, conn, queue, force)
		if held, is := errors.AsType[*parley.Error](err); is && held.Number == parley.StillUsed && strings.Contains(held.Hint, "force") {
			people := verb.Asker{In: a.Stdin, Out: a.Stderr}
			people.Printf("%s\n%s\n", held.Message, held.Detail)
			agreed, unanswered := people.Confirm(ctx, "Drop it with its messages?")
			if unanswered != nil || !agreed {
				return err
			}
			dropped, err = operate.DropQueue(ctx, conn, queue, true)
		}
		if err != nil {
			return err
		}
		if a.JSON {
			return verb.EncodeJSON(cmd.OutOrStdout(), droppedQueue{objectChange{"queue", queue, "dropped"}, dropped})
		}
		text := fmt.Sprintf("queue %s dropped", verb.OneLine(queue, 0))
		switch {
		case dropped == 1:
			text += " with 1 message"
		case dropped > 1:
			text += fmt.Sprintf(" with %d messages", dropped)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		return err
	})
}

func newQueueDropCommand(a *verb.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "drop QUEUE",
		Short: "Drop a queue that no service uses",
		Long: `Drop a queue that no service uses. A simple queue that holds messages is dropped with them only when you say so: on a
terminal it asks, and elsewhere --force says it. The answer names how many messages were dropped.`,
		Example: "  parley queue drop shop\n  parley queue drop jobs --force",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return dropQueue(a, cmd, args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "drop the messages of a simple queue with it")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}
