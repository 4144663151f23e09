package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

// programVersion is the output of version; as JSON it is a stable format.
type programVersion struct {
	Release       string `json:"release"`
	SchemaVersion int    `json:"schema_version"`
	Go            string `json:"go"`
	Platform      string `json:"platform"`
	Commit        string `json:"commit,omitempty"`       // absent where Go does not know it: go install of a release, go run
	CommittedAt   string `json:"committed_at,omitempty"` // RFC 3339, UTC
}

// readSource reads which commit the program was built from, if the build recorded it.
func (v *programVersion) readSource() {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			v.Commit = setting.Value
		case "vcs.time":
			v.CommittedAt = setting.Value
		}
	}
}

func newVersionCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Example: "  parley version\n  parley version --json",
		Short:   "Print the version of this program and of the schema it works with",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := ownVersion()
			if a.JSON {
				return json.NewEncoder(a.Stdout).Encode(version)
			}
			_, err := fmt.Fprintln(a.Stdout, version)
			return err
		},
	}
}

// ownVersion is that of this program.
func ownVersion() programVersion {
	version := programVersion{
		Release:       parley.Release,
		SchemaVersion: parley.SchemaVersion,
		Go:            runtime.Version(),
		Platform:      runtime.GOOS + "/" + runtime.GOARCH,
	}
	version.readSource()
	return version
}

// String is the line that people read.
func (v programVersion) String() string {
	source := ""
	if v.Commit != "" {
		source = ", commit " + v.Commit[:min(12, len(v.Commit))]
	}
	return fmt.Sprintf("parley %s (schema version %d, %s, %s%s)", v.Release, v.SchemaVersion, v.Go, v.Platform, source)
}
