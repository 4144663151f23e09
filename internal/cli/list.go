package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

// listing is how a verb lists objects of a kind of which some are the broker's own.
type listing[T any] struct {
	read     func(context.Context, parley.DB) ([]T, error)
	isSystem func(T) bool
	write    func(io.Writer, []T) error // for people; programs get JSON
	allHelp  string                     // of the flag that lists the broker's own too
}

// lists makes a verb list objects.
func lists[T any](a *app, cmd *cobra.Command, what listing[T]) *cobra.Command {
	var all bool
	cmd.Flags().BoolVar(&all, "all", false, what.allHelp)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		conn, err := a.attach(ctx)
		if err != nil {
			return err
		}
		defer closeConnection(ctx, conn)
		found, err := what.read(ctx, conn)
		if err != nil {
			return err
		}
		shown := slices.DeleteFunc(append([]T{}, found...), func(object T) bool { return !all && what.isSystem(object) })
		if a.json {
			return encodeJSON(cmd.OutOrStdout(), shown)
		}
		return what.write(cmd.OutOrStdout(), shown)
	}
	return cmd
}
