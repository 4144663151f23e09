package verbs

import (
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/adapter/web"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

func newOpenAPICommand(env environment) *cobra.Command {
	var title, version, listener, out string
	var overwrites bool
	cmd := &cobra.Command{
		Use:   "openapi [APPLICATION]",
		Short: "Write an OpenAPI document of the HTTP locations",
		Long: `Write a document of OpenAPI 3.1 that describes the receive locations that take requests by HTTP, those of one application or all:
paths, headers, authentication, statuses, and the body by the message type of the location. JSON Schemas of message types stand in
it, schemas of XML are named. Secrets do not. It goes to standard output, or with --out into a file. You need the right VIEW.`,
		Example: `  parley flow openapi Orders --out orders.json
  parley flow openapi --listener 10.0.0.5:8443 --title Orders --api-version 2`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				exported, err := flowstore.Export(ctx, conn, name)
				if err != nil {
					return err
				}
				if title == "" {
					title = "Integration"
					if name != "" {
						title = name
					}
				}
				written, err := web.OpenAPI(exported, title, version, listener)
				if err != nil {
					return err
				}
				if out == "" {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), string(written))
					return err
				}
				to := folder{path: filepath.Dir(out), overwrites: overwrites}
				file, err := to.write(filepath.Base(out), append(written, '\n'))
				if err != nil {
					return err
				}
				if env.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), writtenFile{file, len(written) + 1})
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), file)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "title of the document (default: the application)")
	cmd.Flags().StringVar(&version, "api-version", "1", "version of what is described")
	cmd.Flags().StringVar(&listener, "listener", "", "host:port: locations of this listener alone")
	cmd.Flags().StringVar(&out, "out", "", "file for the document")
	cmd.Flags().BoolVar(&overwrites, "force", false, "overwrite the file")
	env.CompleteArgument(cmd, completeApplications, 1)
	return cmd
}
