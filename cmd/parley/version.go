package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

// programVersion is what version prints; as JSON it is a stable format.
type programVersion struct {
	Release       string `json:"release"`
	SchemaVersion int    `json:"schema_version"`
	Go            string `json:"go"`
	Platform      string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the schema it works with",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := programVersion{
				Release:       parley.Release,
				SchemaVersion: parley.SchemaVersion,
				Go:            runtime.Version(),
				Platform:      runtime.GOOS + "/" + runtime.GOARCH,
			}
			if a.json {
				return json.NewEncoder(a.stdout).Encode(version)
			}
			_, err := fmt.Fprintf(a.stdout, "parley %s (schema version %d, %s, %s)\n",
				version.Release, version.SchemaVersion, version.Go, version.Platform)
			return err
		},
	}
}
