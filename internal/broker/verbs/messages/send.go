package messages

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

// sendFlags are the flags of send.
type sendFlags struct {
	conversation       string
	from, to, contract string
	messageType        string
	file               string
	batch, empty, end  bool
	pooled             bool
	allowUnknown       bool
	key                *string
	once               *string
	due                dueFlags
	body               *string // the argument
}

// sentMessages is the output of send for programs; a stable format.
type sentMessages struct {
	ConversationHandle parley.UUID `json:"conversation_handle"`
	BeganDialog        bool        `json:"began_dialog"`
	MessagesSent       int         `json:"messages_sent"`
	Ended              bool        `json:"ended"`
	IsDuplicate        bool        `json:"is_duplicate,omitempty"` // sent before with the key of --once
	DelayedID          *int64      `json:"delayed_id,omitempty"`   // of what is not due yet
}

func newSendCommand(a *verb.App) *cobra.Command {
	var flags sendFlags
	var key, once string
	cmd := &cobra.Command{
		Use:   "send [BODY]",
		Short: "Send a message, on a conversation or on a new one",
		Long: `Send a message on a conversation (--conversation), or begin a dialog from one service to another (--from, --to) and send
on that: then the new conversation handle is printed. It is one transaction.

With --pooled it goes over a conversation that is open already, and one is begun only when there is none; with --key
over the one of that key, so that what has the same key is received in order.

With --at or --delay it is sent when it is due, and waits until then: parley delayed lists it. With --once it is not sent when
the service has sent a message with the same key before; on a new conversation, none is begun then.

With --end the conversation is ended behind what is sent, in the same transaction: for messages that need no answer.

The body is the argument, or a file, or what comes from standard input: without an argument, or with -. With --batch each
line of it is a message of its own.

That it was sent does not mean that it was delivered: when the target cannot be reached the message waits, and when it
refuses an Error message comes back to the queue of the sending service. A dialog is not begun when nothing could lead to
the target: no service of this name, no route, no other database of the same daemon. With --allow-unknown-target it is, and
the message waits until the target exists.`,
		Example: `  parley send --from //example.com/web --to //example.com/shop --contract //example.com/ordering \
      --type //example.com/order '{"item": 7}'
  parley send --conversation 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --type //example.com/order --file order.json
  parley send --from A --to B --end 'something happened'
  seq 1000000 | parley send --from A --to B --batch`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.body = &args[0]
			}
			flags.key, flags.once = verb.Given(cmd, "key", key), verb.Given(cmd, "once", once)
			if err := flags.check(); err != nil {
				return err
			}
			source, err := flags.open(a.Stdin)
			if err != nil {
				return err
			}
			defer source.Close()
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			var sent sentMessages
			err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
				sent, err = flags.send(ctx, tx, source)
				if err != nil || !flags.end || sent.IsDuplicate {
					return err
				}
				sent.Ended = true
				return parley.EndConversation(ctx, tx, sent.ConversationHandle)
			})
			if err != nil {
				return err
			}
			return printSent(a, cmd.OutOrStdout(), sent)
		},
	}
	flags.add(cmd)
	set := cmd.Flags()
	set.StringVar(&key, "key", "", "send on the conversation of this key; implies --pooled")
	set.StringVar(&once, "once", "", "do not send it when this deduplication key was used before")
	flags.due.add(cmd)
	excludeSendFlags(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	a.CompleteFlag(cmd, "from", verb.CompleteServices)
	a.CompleteFlag(cmd, "to", verb.CompleteServices)
	a.CompleteFlag(cmd, "contract", verb.CompleteContracts)
	a.CompleteFlag(cmd, "type", verb.CompleteMessageTypes)
	return cmd
}

// add adds the flags that say what is sent, and on what.
func (f *sendFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.conversation, "conversation", "", "send on the conversation with this handle")
	set.StringVar(&f.from, "from", "", "begin a dialog from this service, which must be of this database")
	set.StringVar(&f.to, "to", "", "begin a dialog to this service")
	set.StringVar(&f.contract, "contract", parley.DefaultMessageType, "contract of the dialog to begin")
	set.BoolVar(&f.pooled, "pooled", false, "send on a conversation that is used again (parley conversations --pooled lists them)")
	set.BoolVar(&f.allowUnknown, "allow-unknown-target", false, "begin the dialog even when nothing leads to the target yet")
	set.StringVar(&f.messageType, "type", parley.DefaultMessageType, "message type")
	set.StringVar(&f.file, "file", "", "read the body from this file; - is standard input")
	set.BoolVar(&f.batch, "batch", false, "each line is a message")
	set.BoolVar(&f.end, "end", false, "end the conversation behind what is sent: nothing is left open, and no answer is received")
	set.BoolVar(&f.empty, "empty", false, "send a message without body")
}

func excludeSendFlags(cmd *cobra.Command) {
	cmd.MarkFlagsMutuallyExclusive("conversation", "from")
	cmd.MarkFlagsMutuallyExclusive("conversation", "contract")
	cmd.MarkFlagsMutuallyExclusive("conversation", "allow-unknown-target")
	for _, flag := range []string{"pooled", "key"} {
		cmd.MarkFlagsMutuallyExclusive("conversation", flag)
		cmd.MarkFlagsMutuallyExclusive("end", flag)
	}
	for _, flag := range []string{"at", "delay", "once"} {
		cmd.MarkFlagsMutuallyExclusive("batch", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("file", "empty")
	cmd.MarkFlagsMutuallyExclusive("batch", "empty")
}

// check refuses a message for no conversation, and two bodies at once.
func (f sendFlags) check() error {
	switch {
	case f.conversation == "" && (f.from == "" || f.to == ""):
		return verb.Usagef("say who sends to whom, as in: parley send --from web --to shop 'hello'; " +
			"or on which conversation, with --conversation HANDLE (parley conversations lists them)")
	case f.conversation != "" && f.to != "":
		return verb.Usagef("--conversation and --to exclude each other: a conversation has its two services")
	case f.body != nil && f.file != "":
		return verb.Usagef("give the body as argument or with --file, not both")
	case f.body != nil && f.empty:
		return verb.Usagef("--empty sends no body: leave the argument out")
	case f.body != nil && f.batch:
		return verb.Usagef("--batch reads lines from standard input or --file: leave the argument out")
	}
	return nil
}

// open gives the reader of the body. The caller closes it.
func (f sendFlags) open(stdin io.Reader) (io.ReadCloser, error) {
	if f.file == "" || f.file == "-" {
		return io.NopCloser(stdin), nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return file, nil
}

func (f sendFlags) send(ctx context.Context, tx pgx.Tx, source io.Reader) (sent sentMessages, err error) {
	if f.allowUnknown {
		// Not an option of the dialog, because conversations that are used again have none.
		if _, err := tx.Exec(ctx, "set local parley.allow_unknown_targets = on"); err != nil {
			return sent, err
		}
	}
	switch {
	case f.conversation != "":
		sent.ConversationHandle, err = verb.ParseHandle(f.conversation)
	case f.pooled || f.key != nil:
		options := []parley.PoolOption{parley.PoolDialog(parley.OnContract(f.contract))}
		if f.key != nil {
			options = append(options, parley.ForKey(*f.key))
		}
		sent.ConversationHandle, err = parley.GetConversation(ctx, tx, f.from, f.to, options...)
	case f.batch:
		sent.BeganDialog = true
		sent.ConversationHandle, err = parley.BeginDialog(ctx, tx, f.from, f.to, parley.OnContract(f.contract))
	}
	if err != nil {
		return sent, err
	}
	if f.batch {
		sent.MessagesSent, err = sendLines(ctx, tx, sent.ConversationHandle, f.messageType, source)
		return sent, err
	}
	body, err := f.readBody(source)
	if err != nil {
		return sent, err
	}
	return f.sendOne(ctx, tx, sent, body)
}

// sendOne sends one message, on the conversation that there is or on a new one.
func (f sendFlags) sendOne(ctx context.Context, tx pgx.Tx, sent sentMessages, body []byte) (sentMessages, error) {
	due, err := f.due.due(ctx, tx)
	if err != nil {
		return sent, err
	}
	sent.MessagesSent = 1
	isNew := sent.ConversationHandle.IsZero()
	var options []parley.SendOption
	if due != nil {
		options = append(options, parley.SentAt(*due))
	}
	switch {
	case isNew:
		if sent.ConversationHandle, sent.IsDuplicate, err = f.begin(ctx, tx); sent.IsDuplicate {
			sent.MessagesSent = 0
			return sent, err
		}
		sent.BeganDialog = true
	case f.once != nil:
		options = append(options, parley.SentOnce(*f.once))
	}
	if err != nil {
		return sent, err
	}
	if len(options) == 0 {
		return sent, parley.Send(ctx, tx, sent.ConversationHandle, f.messageType, body)
	}
	answer, err := parley.SendWith(ctx, tx, sent.ConversationHandle, f.messageType, body, options...)
	if err != nil {
		return sent, err
	}
	sent.DelayedID = answer.DelayedID
	if answer.IsDuplicate {
		sent.IsDuplicate, sent.MessagesSent, sent.ConversationHandle = true, 0, *answer.ConversationHandle
	}
	return sent, nil
}

// begin begins a dialog, unless its key was used before, and reports that.
func (f sendFlags) begin(ctx context.Context, tx pgx.Tx) (handle parley.UUID, isDuplicate bool, err error) {
	if f.once != nil {
		return parley.BeginDialogOnce(ctx, tx, f.from, f.to, *f.once, parley.OnContract(f.contract))
	}
	handle, err = parley.BeginDialog(ctx, tx, f.from, f.to, parley.OnContract(f.contract))
	return handle, false, err
}

func (f sendFlags) readBody(source io.Reader) ([]byte, error) {
	switch {
	case f.empty:
		return nil, nil
	case f.body != nil:
		return bodyOf(*f.body, source)
	}
	return readBody(source)
}

// printSent prints a new handle alone to standard output, for scripts; what a person wants to know besides goes to
// standard error.
func printSent(a *verb.App, out io.Writer, sent sentMessages) error {
	if a.JSON {
		return verb.EncodeJSON(out, sent)
	}
	if sent.IsDuplicate {
		fmt.Fprintln(a.Stderr, "sent before")
	} else {
		fmt.Fprintf(a.Stderr, "sent %s\n", verb.Counted(sent.MessagesSent, "message"))
	}
	if !sent.BeganDialog {
		return nil
	}
	_, err := fmt.Fprintln(out, sent.ConversationHandle)
	return err
}
