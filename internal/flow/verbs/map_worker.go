package verbs

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/mapping"
)

// newMapWorkerCommand makes the worker for jq, which hosts start, and the command that builds that for stylesheets.
func newMapWorkerCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "map-worker",
		Hidden: true,
		Short:  "Transform messages by programs of jq, as a process that parley starts",
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mapping.RunJQ(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	var folder, compiler string
	install := &cobra.Command{
		Use:   "install",
		Short: "Build the worker for stylesheets, parley-xslt, and put it beside parley",
		Long: `Build parley-xslt, by which maps in XSLT run, of the source that parley carries. It needs a C compiler and the headers of
libxslt (on Debian gcc, libc6-dev and libxslt1-dev), and runs with libxslt alone. The packages of parley have it already.`,
		Example: "  parley flow map-worker install --folder /usr/local/bin",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.run(func() (int, error) {
				if folder == "" {
					self, err := os.Executable()
					if err != nil {
						return 0, err
					}
					folder = filepath.Dir(self)
				}
				name, err := mapping.BuildWorker(cmd.Context(), compiler, folder)
				if err != nil {
					return 0, err
				}
				_, err = fmt.Fprintln(env.Stdout, name)
				return 0, err
			})
		},
	}
	install.Flags().StringVar(&folder, "folder", "", "where to put it (default beside parley)")
	install.Flags().StringVar(&compiler, "cc", "cc", "the C compiler")
	cmd.AddCommand(install)
	return cmd
}
