package verb

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

// Given gives the value of a flag, nil when the command line does not have it.
func Given[T any](cmd *cobra.Command, name string, value T) *T {
	if !cmd.Flags().Changed(name) {
		return nil
	}
	return &value
}

// ParseHandle reads a handle, or the id of a group, from the command line.
func ParseHandle(text string) (parley.UUID, error) {
	handle, err := parley.ParseUUID(text)
	if err != nil {
		return handle, AsUsage(fmt.Errorf("%w; parley conversations lists the handles, and with --json the groups", err))
	}
	return handle, nil
}
