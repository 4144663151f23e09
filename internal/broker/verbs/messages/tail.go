package messages

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// following holds the arguments of tail.
type following struct {
	queue        string
	handle       string
	messageType  string
	way          string
	full         bool
	count        int
	position     int64
	fromStart    bool
	interval     time.Duration
	conversation parley.UUID
}

func newTailCommand(a *verb.App) *cobra.Command {
	var f following
	cmd := &cobra.Command{
		Use:   "tail QUEUE",
		Short: "Show messages as they pass through a queue, without taking them",
		Long: `Show the messages that are sent to a queue, from now on until Ctrl-C, without taking them and without disturbing
senders or readers. Only committed messages show.

A message that is received before tail polls is never seen. Tail polls every --interval, and at once when a sender notifies;
senders notify while readers sleep, and tail does not ask them to, since that would cost them. So of a queue whose readers keep up
it shows a part; of a queue that is paused (parley top) or has no reader, all. What a transaction sends that stays open
while thousands of other messages pass may be missed too.

Each line is the time of arrival, the position, the conversation, the type, the size and the body; of a simple queue the key
stands in place of conversation and type, or -. --position goes on where
an earlier tail ended: give the position that it printed last, plus one. A body that is text is shown as text, any other in hex
(base64 in JSON).`,
		Example: `  parley tail shop
  parley tail shop --from-start -n 100 --full
  parley tail shop --json --body json | jq 'select(.body.amount > 1000)'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.queue = args[0]
			if !cmd.Flags().Changed("position") {
				f.position = -1
			}
			if err := f.check(); err != nil {
				return err
			}
			return tail(cmd.Context(), a, cmd.OutOrStdout(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.handle, "conversation", "", "only messages of the conversation with this handle")
	flags.StringVar(&f.messageType, "type", "", "only messages of this type")
	flags.StringVar(&f.way, "body", bodyText, "show bodies as text, hex or json")
	flags.BoolVar(&f.full, "full", false, "show bodies in full")
	flags.IntVarP(&f.count, "count", "n", 0, "end after so many messages")
	flags.BoolVar(&f.fromStart, "from-start", false, "begin with what waits already")
	flags.Int64Var(&f.position, "position", 0, "begin at this position")
	flags.DurationVar(&f.interval, "interval", 200*time.Millisecond, "time between two polls")
	cmd.MarkFlagsMutuallyExclusive("from-start", "position")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	a.CompleteFlag(cmd, "type", verb.CompleteMessageTypes)
	return cmd
}

// leastTailInterval keeps a tail from becoming a load.
const leastTailInterval = 10 * time.Millisecond

func (f *following) check() (err error) {
	if err := checkBody(f.way); err != nil {
		return err
	}
	switch {
	case f.count < 0:
		return verb.Usagef("-n %d: give a positive number", f.count)
	case f.position < -1:
		return verb.Usagef("--position %d: give a position that tail or peek has shown", f.position)
	case f.interval < leastTailInterval:
		return verb.Usagef("--interval %s: use %s or more", f.interval, leastTailInterval)
	}
	if f.fromStart {
		f.position = 0
	}
	if f.handle != "" {
		f.conversation, err = verb.ParseHandle(f.handle)
	}
	return err
}

// tail shows messages until there were enough or ctx ends.
func tail(ctx context.Context, a *verb.App, out io.Writer, f following) error {
	dsn, err := a.ResolveDSN(ctx)
	if err != nil {
		return err
	}
	// Unlike other commands this one gives up waiting all the time, which must not cancel what comes next.
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer verb.CloseConnection(ctx, conn)
	if err := verb.PrepareSession(ctx, conn); err != nil {
		return err
	}
	follower, err := operate.Follow(ctx, conn, f.queue, f.position)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "watching %s; Ctrl-C ends\n", verb.OneLine(f.queue, 0))
	for shown := 0; ; {
		messages, err := follower.Next(ctx)
		if err != nil {
			return untilStopped(ctx, err)
		}
		for _, m := range messages {
			if !f.wants(m) {
				continue
			}
			if err := printPassing(a, out, m, f); err != nil {
				return err
			}
			shown++
			if shown == f.count {
				return nil
			}
		}
		if len(messages) == 0 {
			if err := follower.Wait(ctx, f.interval); err != nil {
				return untilStopped(ctx, err)
			}
		}
	}
}

// untilStopped takes Ctrl-C for the end that it is.
func untilStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (f *following) wants(m operate.PassingMessage) bool {
	return (f.messageType == "" || f.messageType == m.MessageTypeName) && (f.handle == "" || f.conversation == m.ConversationHandle)
}

// passingMessage is a message as tail prints it; as JSON it is a stable format.
type passingMessage struct {
	QueuingOrder int64 `json:"queuing_order"`
	Priority     int16 `json:"priority"`
	// Messages of simple queues have no conversation.
	ConversationHandle  *parley.UUID `json:"conversation_handle"`
	ConversationGroupID *parley.UUID `json:"conversation_group_id"`
	MessageKey          *string      `json:"message_key"` // of simple queues
	ServiceName         string       `json:"service_name"`
	FarService          string       `json:"far_service"`
	ServiceContractName string       `json:"service_contract_name"`
	MessageTypeName     string       `json:"message_type_name"`
	MessageEnqueueTime  time.Time    `json:"message_enqueue_time"`
	BodyBytes           int          `json:"body_bytes"`
	BodyEncoding        string       `json:"body_encoding"`
	Body                any          `json:"body"`
}

func printPassing(a *verb.App, out io.Writer, m operate.PassingMessage, f following) error {
	if a.JSON {
		line := passingMessage{
			QueuingOrder: m.QueuingOrder, Priority: m.Priority, ConversationHandle: orNull(m.ConversationHandle),
			ConversationGroupID: orNull(m.ConversationGroupID), MessageKey: m.MessageKey, ServiceName: m.ServiceName, FarService: m.FarService,
			ServiceContractName: m.ServiceContractName, MessageTypeName: m.MessageTypeName,
			MessageEnqueueTime: m.MessageEnqueueTime, BodyBytes: len(m.MessageBody),
		}
		line.BodyEncoding, line.Body = encodeBody(m.MessageBody, f.way)
		return verb.EncodeJSON(out, line)
	}
	width := verb.BodyWidth
	if f.full {
		width = 0
	}
	belongs := m.ConversationHandle.String() + "  " + verb.OneLine(m.MessageTypeName, 0)
	if m.ConversationHandle.IsZero() {
		belongs = keyCell(m.MessageKey)
	}
	_, err := fmt.Fprintf(out, "%s  %d  %s  %d B  %s\n", m.MessageEnqueueTime.Local().Format("15:04:05.000"), m.QueuingOrder,
		belongs, len(m.MessageBody), bodyCell(m.MessageBody, f.way, width))
	return err
}

// orNull is nil for no id at all.
func orNull(id parley.UUID) *parley.UUID {
	if id.IsZero() {
		return nil
	}
	return &id
}
