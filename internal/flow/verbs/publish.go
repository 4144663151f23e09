package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// publishedMessage names a message that publish or resubmit has made to programs; a stable format.
type publishedMessage struct {
	MessageID int64  `json:"message_id"`
	Outcome   string `json:"outcome,omitempty"` // of publish: PUBLISHED, SUSPENDED, FAILED_ROUTED or REPEATED
	DryRun    bool   `json:"dry_run,omitempty"`
}

// readBody reads a body from a file, or from standard input for -. An empty one is probably a file that could not be made.
func (env environment) readBody(name string, mayBeEmpty bool) ([]byte, error) {
	file, err := env.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	if len(body) == 0 && !mayBeEmpty {
		return nil, errors.New("the body is empty: give --empty where that is meant")
	}
	return body, nil
}

func readProperties(flag string, given []string) (map[string]string, error) {
	properties := map[string]string{}
	for _, text := range given {
		// The namespace may hold a sign of equality, and the local name behind # does not.
		at := strings.Index(text, "#")
		end := strings.Index(text[max(at, 0):], "=")
		if end < 0 || max(at, 0)+end == 0 {
			return nil, verb.Usagef("--%s %q: give namespace#Name=VALUE", flag, text)
		}
		name, value := text[:max(at, 0)+end], text[max(at, 0)+end+1:]
		if _, isTwice := properties[name]; isTwice {
			return nil, verb.Usagef("--%s: %s is given twice", flag, name)
		}
		properties[name] = value
	}
	return properties, nil
}

func newPublishCommand(env environment) *cobra.Command {
	var message flowstore.Publication
	var properties, written []string
	var isEmpty bool
	cmd := &cobra.Command{
		Use:   "publish [FILE]",
		Short: "Publish a message from a file or standard input",
		Long: `Publish a message, as select parley_flow.publish(...) does, and print its number. The body is the file, or standard input.
--property gives promoted properties, which filters can ask for, and --written others. A message that nobody subscribes to is suspended:
see parley flow failures. You need the right PUBLISH.`,
		Example: `  parley flow publish order.xml --type 'http://shop.example/orders#Order' ` +
			`--property 'http://shop.example/properties#PoNumber=4711'
  date | parley flow publish --receive-port 'Orders in'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if message.Properties, err = readProperties("property", properties); err != nil {
				return err
			}
			if message.Written, err = readProperties("written", written); err != nil {
				return err
			}
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			if message.Body, err = env.readBody(name, isEmpty); err != nil {
				return err
			}
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				id, outcome, err := flowstore.Publish(ctx, conn, message)
				if err != nil {
					return err
				}
				if says := saysOfOutcome[outcome]; says != "" && !env.JSON {
					fmt.Fprintf(env.Stderr, "%s\n", says)
				}
				return env.showPublished(cmd, publishedMessage{MessageID: id, Outcome: outcome})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&message.MessageType, "type", "", "type of the message, namespace#Root")
	flags.StringVar(&message.ReceivePort, "receive-port", "", "receive port by which it comes")
	flags.StringArrayVar(&properties, "property", nil, "promote a property, as namespace#Name=VALUE; may be given several times")
	flags.StringArrayVar(&written, "written", nil,
		"give it a property that is not promoted, as namespace#Name=VALUE; may be given several times")
	flags.StringVar(&message.IdempotencyKey, "idempotency-key", "", "a second message with the same key is the first one")
	flags.BoolVar(&isEmpty, "empty", false, "publish it also when its body is empty")
	return cmd
}

// saysOfOutcome are the outcomes that somebody who publishes a message may not expect.
var saysOfOutcome = map[string]string{
	"SUSPENDED":     "nobody subscribes to it, and it is suspended: parley flow failures says what it missed",
	"FAILED_ROUTED": "nobody subscribes to it, and it is routed as a failed message: parley flow failures says what it missed",
	"REPEATED":      "its key was used before, and this is the number of the first message",
}

func (env environment) showPublished(cmd *cobra.Command, published publishedMessage) error {
	if env.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), published)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), published.MessageID)
	return err
}

func newResubmitCommand(env environment) *cobra.Command {
	var body string
	var properties, removed []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "resubmit SUSPENSION [--body FILE] [--property NAME=VALUE ...]",
		Short: "Put another message in the place of a suspended one",
		Long: `Put another message in the place of a suspended one, with a link to it, and end the suspended one; print the number of the new
message. It goes to the send port alone, into the pipeline of its location, or is routed anew, by where the first one failed. What is not
given is as it was. With --dry-run all is checked and undone. You need the right OPERATE.`,
		Example: `  parley flow suspended save --suspension 4 --out saved
  parley flow suspended resubmit 4 --body saved/17.body`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			suspension, err := readNumber(args[0], "suspension")
			if err != nil {
				return err
			}
			given, err := readProperties("property", properties)
			if err != nil {
				return err
			}
			changed := map[string]*string{}
			for name, value := range given {
				changed[name] = &value
			}
			for _, name := range removed {
				if _, isGiven := changed[name]; isGiven {
					return verb.Usagef("--remove-property: %s is given by --property", name)
				}
				changed[name] = nil
			}
			var content []byte
			if body != "" {
				if content, err = env.readBody(body, true); err != nil {
					return err
				}
			}
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				id, err := resubmit(ctx, conn, suspension, content, changed, dryRun)
				if err != nil {
					return err
				}
				return env.showPublished(cmd, publishedMessage{MessageID: id, DryRun: dryRun})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&body, "body", "", "file with the new body; - is standard input (default the body as it was)")
	flags.StringArrayVar(&properties, "property", nil, "promote a property, as namespace#Name=VALUE; may be given several times")
	flags.StringArrayVar(&removed, "remove-property", nil, "take a property away, namespace#Name; may be given several times")
	flags.BoolVar(&dryRun, "dry-run", false, "check it, and change nothing")
	return cmd
}

// resubmit does it in a transaction, which a dry run rolls back.
func resubmit(
	ctx context.Context, conn *pgx.Conn, suspension int64, body []byte, properties map[string]*string, dryRun bool,
) (id int64, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if id, err = flowstore.Resubmit(ctx, tx, suspension, body, properties); err != nil || dryRun {
		return id, err
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return id, nil
}
