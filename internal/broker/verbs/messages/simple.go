package messages

import (
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

func newPutCommand(a *verb.App) *cobra.Command {
	var key, once, unique string
	var due dueFlags
	var priority int
	cmd := &cobra.Command{
		Use:   "put QUEUE BODY",
		Short: "Put a message into a simple queue",
		Long: `Put a message into a simple queue: one that was created with parley queue create --kind simple. Messages with the
same key are taken in the order in which they were put. With --json it says what came of the message: the message_id that
parley cancel takes, or the delayed_id of parley delayed withdraw.

With - for BODY it is what comes from standard input, byte by byte.`,
		Example: `  parley put jobs 'resize 17.png'
  parley put jobs - < picture.png
  parley put jobs 'remind 17' --delay 1h --key 17
  parley put jobs 'rebuild the index' --unique index`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			options := []parley.PutOption{parley.WithPriority(priority)}
			if cmd.Flags().Changed("key") {
				options = append(options, parley.WithKey(key))
			}
			body, err := bodyOf(args[1], a.Stdin)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			at, err := due.due(ctx, conn)
			if err != nil {
				return err
			}
			if at != nil {
				options = append(options, parley.DeliverAt(*at))
			}
			var sent parley.SentMessage
			switch {
			case unique != "":
				sent, err = parley.PutUnique(ctx, conn, args[0], body, unique, options...)
			case once != "":
				sent, err = parley.PutOnce(ctx, conn, args[0], body, once, options...)
			default:
				sent, err = parley.Put(ctx, conn, args[0], body, options...)
			}
			switch {
			case err != nil:
				return err
			case a.JSON:
				return verb.EncodeJSON(cmd.OutOrStdout(), sent)
			case sent.IsDuplicate && unique != "":
				fmt.Fprintln(a.Stderr, "one with this key is there")
			case sent.IsDuplicate:
				fmt.Fprintln(a.Stderr, "put before")
			}
			return nil
		},
	}
	set := cmd.Flags()
	set.StringVar(&key, "key", "", "take it in order with the others of this key")
	set.IntVar(&priority, "priority", 5, "1 is last, 10 is first")
	set.StringVar(&once, "once", "", "do not put it when this deduplication key was used before")
	set.StringVar(&unique, "unique", "", "do not put it while one that was put with this unique key waits or is worked on")
	cmd.MarkFlagsMutuallyExclusive("once", "unique")
	due.add(cmd)
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

func newTakeCommand(a *verb.App) *cobra.Command {
	var count int
	var follow bool
	var timeout time.Duration
	var way string
	cmd := &cobra.Command{
		Use:   "take QUEUE",
		Short: "Take messages from a simple queue and print them",
		Long: `Take messages from a simple queue, print each body on a line, and commit when all of them are printed. When that fails,
or on Ctrl-C, they stay in the queue, and a rollback is counted.

With --follow it goes on until Ctrl-C, or until nothing came within --timeout, and connects anew when the connection is lost: what
was printed and not committed then comes again. Each --count messages are then a transaction
of their own, and with --json each message is an object on a line.`,
		Example: `  parley take jobs
  parley take jobs --count 100 --timeout 30s --json
  parley take jobs --follow | while read -r job; do echo "$job"; done`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBody(way); err != nil {
				return err
			}
			var options []parley.ReceiveOption
			if timeout != 0 {
				options = append(options, parley.Wait(timeout))
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			if follow {
				return keepTaking(ctx, a, conn, cmd.OutOrStdout(), takeLoop{args[0], count, timeout, way})
			}
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				messages, err := parley.Take(ctx, tx, args[0], count, options...)
				if err != nil {
					return err
				}
				return printTaken(a, cmd.OutOrStdout(), messages, way)
			})
		},
	}
	set := cmd.Flags()
	set.IntVar(&count, "count", 1, "take at most so many messages")
	set.BoolVarP(&follow, "follow", "f", false, "go on taking until Ctrl-C, or until --timeout has passed without a message")
	set.DurationVar(&timeout, "timeout", 0, "wait so long for a message, such as 30s; negative for ever")
	set.StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// shownTaken is a message of a simple queue as take prints it for programs; a stable format.
type shownTaken struct {
	MessageID    int64     `json:"message_id"`
	Key          *string   `json:"key"`
	Priority     int16     `json:"priority"`
	EnqueuedAt   time.Time `json:"enqueued_at"`
	TraceContext *string   `json:"trace_context"`
	Attempt      int32     `json:"attempt"`
	BodyBytes    int       `json:"body_bytes"`
	BodyEncoding string    `json:"body_encoding"`
	Body         any       `json:"body"`
}

func showTaken(m parley.TakenMessage, way string) shownTaken {
	encoding, body := encodeBody(m.Body, way)
	return shownTaken{m.MessageID, m.Key, m.Priority, m.EnqueuedAt, m.TraceContext, m.Attempt, len(m.Body), encoding, body}
}

func printTaken(a *verb.App, out io.Writer, messages []parley.TakenMessage, way string) error {
	if a.JSON {
		shown := []shownTaken{}
		for _, m := range messages {
			shown = append(shown, showTaken(m, way))
		}
		return verb.EncodeJSON(out, shown)
	}
	if len(messages) == 0 {
		_, err := fmt.Fprintln(a.Stderr, "no messages")
		return err
	}
	for _, m := range messages {
		if _, err := fmt.Fprintln(out, bodyCell(m.Body, way, 0)); err != nil {
			return fmt.Errorf("print a message: %w", err)
		}
	}
	return nil
}

// printPut shows messages that wait in a simple queue.
func printPut(a *verb.App, out io.Writer, messages []parley.TakenMessage, way string, full bool) error {
	if a.JSON {
		return printTaken(a, out, messages, way)
	}
	if len(messages) == 0 {
		_, err := fmt.Fprintln(out, "no messages")
		return err
	}
	width := verb.BodyWidth
	if full {
		width = 0
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "MESSAGE ID\tKEY\tPRIORITY\tENQUEUED\tBYTES\tBODY")
	for _, m := range messages {
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%d\t%s\n",
			m.MessageID, keyCell(m.Key), m.Priority, verb.Moment(&m.EnqueuedAt), len(m.Body), bodyCell(m.Body, way, width))
	}
	return table.Flush()
}

// keyCell shows the key of a message.
func keyCell(key *string) string {
	if key == nil {
		return "-"
	}
	return verb.OneLine(*key, 0)
}
