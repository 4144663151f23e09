package verb

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

// Listing is how a verb lists objects of a kind of which some are the broker's own.
type Listing[T any] struct {
	Read     func(context.Context, parley.DB) ([]T, error)
	IsSystem func(T) bool
	Write    func(io.Writer, []T) error // for people; programs get JSON
	AllHelp  string                     // of the flag that lists the broker's own too
}

// Lists makes a verb list objects.
func Lists[T any](a *App, cmd *cobra.Command, what Listing[T]) *cobra.Command {
	var all bool
	cmd.Flags().BoolVar(&all, "all", false, what.AllHelp)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		conn, err := a.Attach(ctx)
		if err != nil {
			return err
		}
		defer CloseConnection(ctx, conn)
		found, err := what.Read(ctx, conn)
		if err != nil {
			return err
		}
		shown := slices.DeleteFunc(append([]T{}, found...), func(object T) bool { return !all && what.IsSystem(object) })
		if a.JSON {
			return EncodeJSON(cmd.OutOrStdout(), shown)
		}
		return what.Write(cmd.OutOrStdout(), shown)
	}
	return cmd
}
