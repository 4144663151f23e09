package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// exportedAtOnce bounds the messages in memory.
const exportedAtOnce = 10

// exportedMail is the output of export for programs; a stable format.
type exportedMail struct {
	MessageID int64  `json:"message_id"`
	Queue     string `json:"queue"`
	File      string `json:"file"`
	Bytes     int    `json:"bytes"`
}

func newMailExportCommand(a *verb.App) *cobra.Command {
	var filter mailFilterFlags
	to := exportFolder{}
	var all bool
	cmd := &cobra.Command{
		Use:   "export {--all | --message ID ...} [--to FOLDER]",
		Short: "Write suspended messages into files",
		Long: `Write messages into files, one each, which a replay folder takes; they stay where they are. Only what is suspended is written,
so that it is not sent meanwhile. Of several that --message names, the others are written, and the exit status is 1. You need the
right READ_CONTENT, and each message stands in the audit.`,
		Example: `  parley mail suspend --message 17 && parley mail export --message 17 --to saved`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := filter.filter()
			if err != nil {
				return err
			}
			if len(chosen) == 0 != all {
				return verb.Usagef("choose messages by --message, --queue or another flag, or all by --all")
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				written, leftOut, err := exportEach(ctx, a, conn, cmd.OutOrStdout(), eachNamed(chosen, filter.messages), to)
				if err != nil {
					return err
				}
				if a.JSON {
					err = verb.EncodeJSON(cmd.OutOrStdout(), written)
				}
				if len(written)+leftOut == 0 && !a.JSON {
					fmt.Fprintln(a.Stderr, "nothing is suspended of what was chosen: parley mail suspend holds messages")
				}
				if leftOut > 0 && err == nil {
					err = fmt.Errorf("%s left out", verb.Counted(leftOut, "message"))
				}
				return err
			})
		},
	}
	filter.add(a, cmd)
	cmd.Flags().StringVar(&to.path, "to", ".", "folder for the files, which must exist")
	cmd.Flags().BoolVar(&to.overwrites, "force", false, "overwrite files that are there")
	cmd.Flags().BoolVar(&all, "all", false, "all suspended messages")
	return cmd
}

// exportFolder is where files are written, and whether over those that are there.
type exportFolder struct {
	path       string
	overwrites bool
}

// eachNamed makes a filter for each message that is named, so that one that cannot be exported keeps none of the others.
func eachNamed(filter mailstore.Filter, messages []int64) []mailstore.Filter {
	filters := []mailstore.Filter{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(messages))) {
		one := maps.Clone(filter)
		one["messages"] = []int64{id}
		filters = append(filters, one)
	}
	if len(filters) == 0 {
		return []mailstore.Filter{filter}
	}
	return filters
}

// exportEach writes what each of the filters chooses. Where there are several, messages that are not there or not suspended are left out:
// it says why, and gives how many.
func exportEach(
	ctx context.Context, a *verb.App, conn *pgx.Conn, out io.Writer, filters []mailstore.Filter, to exportFolder,
) (written []exportedMail, leftOut int, err error) {
	written = []exportedMail{}
	for _, filter := range filters {
		more, err := exportMessages(ctx, a, conn, out, filter, to)
		refused, is := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil:
			written = append(written, more...)
		case is && len(filters) > 1 && (refused.Code == mailstore.CodeAbsent || refused.Code == mailstore.CodeNotSuspended):
			fmt.Fprintf(a.Stderr, "left out: %s. %s %s\n", refused.Message, refused.Detail, verb.InVerbs(refused.Hint))
			leftOut++
		default:
			return nil, 0, err
		}
	}
	return written, leftOut, nil
}

// exportMessages writes messages into files, and gives what it has written.
func exportMessages(
	ctx context.Context, a *verb.App, conn *pgx.Conn, out io.Writer, filter mailstore.Filter, to exportFolder,
) ([]exportedMail, error) {
	written := []exportedMail{}
	for after := int64(0); ; {
		batch, err := mailstore.ExportMessages(ctx, conn, filter, exportedAtOnce, after)
		if err != nil {
			return nil, fmt.Errorf("export messages: %w", err)
		}
		for _, m := range batch {
			file := filepath.Join(to.path, filepath.Base(m.FileName))
			if err := to.write(file, m.Content); err != nil {
				return nil, fmt.Errorf("%w (%s written before)", err, verb.Counted(len(written), "file"))
			}
			after = m.Bookmark
			written = append(written, exportedMail{m.MessageID, m.Queue, file, len(m.Content)})
			if !a.JSON {
				fmt.Fprintln(out, file)
			}
		}
		if len(batch) < exportedAtOnce {
			return written, nil
		}
	}
}

// write writes a file, for its owner's eyes alone.
func (f exportFolder) write(name string, content []byte) error {
	how := os.O_EXCL
	if f.overwrites {
		how = os.O_TRUNC
	}
	file, err := os.OpenFile(name, os.O_CREATE|how|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already: name another folder by --to, or overwrite it by --force", name)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s: make it first, or name another one by --to", f.path)
	case err != nil:
		return fmt.Errorf("make the file: %w", err)
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func newMailReadCommand(a *verb.App) *cobra.Command {
	var body bool
	var bytes int
	cmd := &cobra.Command{
		Use:   "read MESSAGE",
		Short: "Show the header of a message, or more of it",
		Long: `Show the header of a message that is under way, or with --body the whole of it. You need the right READ_CONTENT, and it stands
in the audit that you read it.`,
		Example: `  parley mail read 17
  parley mail read 17 --body > 17.eml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return verb.Usagef("%q is no number of a message: parley mail messages lists them", args[0])
			}
			if bytes < 1 {
				return verb.Usagef("--bytes %d: give a positive number", bytes)
			}
			part := "HEADER"
			if body {
				part = "ALL"
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				content, err := mailstore.ReadMessage(ctx, conn, id, part, bytes)
				if err != nil {
					return fmt.Errorf("read the message: %w", err)
				}
				_, err = cmd.OutOrStdout().Write(content)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&body, "body", false, "the body as well")
	cmd.Flags().IntVar(&bytes, "bytes", 1<<30, "at most so many bytes")
	return cmd
}
