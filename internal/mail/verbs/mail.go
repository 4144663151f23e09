// Package verbs is the commands of parley mail: mail configured, sent, read and tracked, and its queues operated.
package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// New makes the group of commands, with the one that serves among them.
func New(a *verb.App, serve *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mail",
		Short: "Send and take in mail: configure it, run it, submit messages, operate its queues",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(serve, newMailApplyCommand(a), newMailSendCommand(a), newMailQueuesCommand(a), newMailMessagesCommand(a),
		newMailSuspendCommand(a), newMailResumeCommand(a), newMailRetryCommand(a), newMailResubmitCommand(a), newMailRemoveCommand(a),
		newMailChangeCommand(a), newMailHoldCommand(a), newMailReleaseCommand(a), newMailExportCommand(a), newMailReadCommand(a),
		newMailTrackCommand(a), newMailTestAddressCommand(a), newMailKeyCommand(a), newMailWithdrawCommand(a))
	return cmd
}

func newMailApplyCommand(a *verb.App) *cobra.Command {
	var dryRun, prune bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make the configuration of mail what a file says",
		Long: `Make the configuration of mail what a file says: {"kind": {"name": {"setting": value}}}. A file of - is standard input.
Daemons use it within seconds, also the addresses on which they listen. What is taken but does not work yet, such as a binding to a
service that does not exist, is a warning.

The kinds and settings are in the view parley_mail.setting_definitions.`,
		Example: `  parley mail apply mail.json --dry-run
  parley mail apply mail.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			written, err := readFileOrInput(a, args[0])
			if err != nil {
				return err
			}
			if !json.Valid(written) {
				return fmt.Errorf("%s is no JSON: give {\"kind\": {\"name\": {\"setting\": value}}}", args[0])
			}
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]mailstore.Change, error) {
				return mailstore.Apply(ctx, db, written, dryRun, prune)
			}, func(out io.Writer, changes []mailstore.Change) error {
				for _, change := range changes {
					if change.Warning != "" {
						fmt.Fprintf(a.Stderr, "parley: warning: %s %q: %s\n", change.Kind, change.Name, change.Warning)
					}
				}
				return writeMailChanges(out, changes)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVar(&prune, "prune", false, "drop what the file does not name")
	return cmd
}

func readFileOrInput(a *verb.App, name string) ([]byte, error) {
	if name == "-" {
		written, err := io.ReadAll(a.Stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return written, nil
	}
	written, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return written, nil
}

func writeMailChanges(out io.Writer, changes []mailstore.Change) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(out, "nothing changes")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "ACTION\tKIND\tNAME\tSETTINGS")
	for _, change := range changes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n",
			change.Action, change.Kind, verb.OneLine(change.Name, 0), verb.OneLine(string(change.Settings), 0))
	}
	return table.Flush()
}

// sentMail is the output of mail send for programs; a stable format.
type sentMail struct {
	MessageID int64 `json:"message_id"`
}

func newMailSendCommand(a *verb.App) *cobra.Command {
	var message mailstore.Submission
	var raw string
	var isEmpty bool
	cmd := &cobra.Command{
		Use:   "send --from ADDRESS --to ADDRESS [TEXT]",
		Short: "Submit a message",
		Long: `Submit a message, as select parley_mail.send(...) does. The text is the argument or comes from standard input; with --raw a whole
message with its header comes from a file, or from standard input for -. An empty text is refused, unless --empty asks for it.`,
		Example: `  parley mail send --from shop@example.org --to ann@example.com --subject 'Order 7' 'Thank you.'
  parley mail send --from shop@example.org --to ann@example.com --raw message.eml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := readMailBody(a, &message, raw, isEmpty, args); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				id, err := mailstore.Submit(ctx, conn, message)
				if err != nil {
					return err
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), sentMail{MessageID: id})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&message.Sender, "from", "", "sender, as address or Name <address>")
	flags.StringArrayVar(&message.Recipients, "to", nil, "recipient, may be given several times")
	flags.StringVar(&message.Subject, "subject", "", "subject")
	flags.StringVar(&raw, "raw", "", "file with a whole message; - is standard input")
	flags.BoolVar(&isEmpty, "empty", false, "send it without a text")
	flags.StringVar(&message.IdempotencyKey, "idempotency-key", "", "a second message with the same key is the first one")
	return cmd
}

func readMailBody(a *verb.App, message *mailstore.Submission, raw string, isEmpty bool, args []string) error {
	switch {
	case message.Sender == "" || len(message.Recipients) == 0:
		return verb.Usagef("give --from and --to")
	case raw != "" && (len(args) > 0 || message.Subject != ""):
		return verb.Usagef("--raw is a whole message: give no text and no --subject")
	case isEmpty && (raw != "" || len(args) > 0):
		return verb.Usagef("--empty is a message without a text: give no text and no --raw")
	case isEmpty:
		return nil
	case len(args) == 1:
		message.Text = args[0]
		return requireText(message.Text)
	}
	name := raw
	if name == "" {
		name = "-"
	}
	written, err := readFileOrInput(a, name)
	if err != nil {
		return err
	}
	if raw == "" {
		message.Text = string(written)
		return requireText(message.Text)
	}
	if len(written) == 0 {
		return errors.New("the message is empty")
	}
	message.Raw = written
	return nil
}

// requireText refuses what is more likely a mistake, such as a variable that is not set or a file that could not be read.
func requireText(text string) error {
	if text == "" {
		return verb.Usagef("the text is empty: give one, or --empty to send the message without")
	}
	return nil
}
