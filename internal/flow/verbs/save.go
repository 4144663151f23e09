package verbs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// savedMessage is the file that stands beside a body; a stable format.
type savedMessage struct {
	flowstore.Suspended
	Files      []string             `json:"files"`
	Properties []flowstore.Property `json:"properties"`
}

func newSaveCommand(env environment) *cobra.Command {
	to := folder{}
	o := &operation{env: env, name: "save", done: "saved", stays: "see above"}
	o.run = func(ctx context.Context, conn *pgx.Conn, messages []flowstore.Suspended) (int, error) {
		if o.dryRun {
			return len(messages), nil
		}
		for i, m := range messages {
			if err := saveMessage(ctx, conn, to, m); err != nil {
				return i, err
			}
		}
		return len(messages), nil
	}
	cmd := &cobra.Command{
		Use:   "save {--all | --send-port PORT ...} --out DIR",
		Short: "Write suspended messages into files",
		Long: `Write suspended messages into files, for you alone to read; they stay where they are. The body of message 17 goes into
DIR/17.body, parts behind the first into DIR/17.part2 and on, what is known of it and its properties into DIR/17.json. You need the right
READ_CONTENT, and it is recorded that you read them.`,
		Example: `  parley flow suspended save --message 17 --out saved`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to.path == "" {
				return verb.Usagef("give --out, the folder for the files")
			}
			return o.operate(cmd)
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&to.path, "out", "", "folder for the files, made if it is not there")
	cmd.Flags().BoolVar(&to.overwrites, "force", false, "overwrite files that are there")
	return cmd
}

func saveMessage(ctx context.Context, conn *pgx.Conn, to folder, message flowstore.Suspended) error {
	saved := savedMessage{Suspended: message}
	parts, err := flowstore.Parts(ctx, conn, message.MessageID)
	if err != nil {
		return err
	}
	for part := 1; part <= parts; part++ {
		content, err := flowstore.ReadMessage(ctx, conn, message.MessageID, part)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%d.body", message.MessageID)
		if part > 1 {
			name = fmt.Sprintf("%d.part%d", message.MessageID, part)
		}
		if _, err := to.write(name, content); err != nil {
			return err
		}
		saved.Files = append(saved.Files, name)
	}
	if saved.Properties, err = flowstore.ReadProperties(ctx, conn, message.MessageID); err != nil {
		return err
	}
	written, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return fmt.Errorf("write what is known of message %d: %w", message.MessageID, err)
	}
	_, err = to.write(fmt.Sprintf("%d.json", message.MessageID), append(written, '\n'))
	return err
}
