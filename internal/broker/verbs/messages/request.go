package messages

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

func newRequestCommand(a *verb.App) *cobra.Command {
	var flags sendFlags
	var timeout time.Duration
	var body string
	cmd := &cobra.Command{
		Use:   "request --from SERVICE --to SERVICE [BODY]",
		Short: "Send a message and wait for the reply",
		Long: `Begin a dialog, send a message, wait for the first message that comes back, print it and end the conversation. The body of
the reply goes to standard output as it is, behind text with a newline. The message is the argument, or a file, or what comes
from standard input: without an argument, or with -.

The command fails when an Error comes back, when the other side ends without a reply, and when no reply comes in time or
on Ctrl-C: then the conversation is ended with error 408, which the other side receives.`,
		Example: `  parley request --from //example.com/web --to //example.com/shop --contract //example.com/ordering \
      --type //example.com/order '{"item": 7}'
  parley request --from A --to B --timeout 5s --json hello`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.body = &args[0]
			}
			if timeout <= 0 {
				return verb.Usagef("--timeout %s: give a positive time", timeout)
			}
			if err := checkBody(body); err != nil {
				return err
			}
			if err := flags.check(); err != nil {
				return err
			}
			source, err := flags.open(a.Stdin)
			if err != nil {
				return err
			}
			defer source.Close()
			sent, err := flags.readBody(source)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			reply, err := parley.Request(ctx, conn, parley.RequestMessage{
				FromService: flags.from, ToService: flags.to, MessageType: flags.messageType, Body: sent,
				Options: []parley.DialogOption{parley.OnContract(flags.contract)},
			}, timeout)
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), show(reply, body))
			}
			return writeReply(cmd.OutOrStdout(), reply)
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.from, "from", "", "service of this database that asks")
	set.StringVar(&flags.to, "to", "", "service that is asked")
	set.StringVar(&flags.contract, "contract", parley.DefaultMessageType, "contract of the dialog")
	set.StringVar(&flags.messageType, "type", parley.DefaultMessageType, "message type")
	set.StringVar(&flags.file, "file", "", "read the body from this file; - is standard input")
	set.BoolVar(&flags.empty, "empty", false, "send a message without body")
	set.DurationVar(&timeout, "timeout", 30*time.Second, "wait so long for the reply")
	set.StringVar(&body, "body", bodyText, "show the body as text, hex or json, with --json")
	for _, flag := range []string{"from", "to"} {
		_ = cmd.MarkFlagRequired(flag)
		a.CompleteFlag(cmd, flag, verb.CompleteServices)
	}
	cmd.MarkFlagsMutuallyExclusive("file", "empty")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	a.CompleteFlag(cmd, "contract", verb.CompleteContracts)
	a.CompleteFlag(cmd, "type", verb.CompleteMessageTypes)
	return cmd
}

// writeReply prints a body byte by byte, so that a pipe has it as it was sent; text ends its line.
func writeReply(out io.Writer, reply parley.Message) error {
	if _, err := out.Write(reply.MessageBody); err != nil {
		return fmt.Errorf("print the reply: %w", err)
	}
	if _, isText := parley.BodyText(reply.MessageBody); isText && !bytes.HasSuffix(reply.MessageBody, []byte("\n")) {
		_, err := fmt.Fprintln(out)
		return err
	}
	return nil
}
