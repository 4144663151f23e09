package operating

import (
	"cmp"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/schema"
)

func newInstallCommand(a *verb.App) *cobra.Command {
	var script bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Create the schema parley in the database",
		Long: `Create the schema parley, with the whole broker in it, in one transaction. When it is there already in
this version, nothing happens. It says in which database of which server, and as which role. The role needs the right to
create schemas in the database, nothing more.

With --print nothing is touched: the SQL is printed, to be run with a tool of your own.`,
		Example: `  parley install --dsn postgres://localhost/orders
  parley install --print | psql --set ON_ERROR_STOP=1 orders`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if script {
				if a.JSON {
					return verb.Usagef("--print gives SQL, not JSON: leave one of the two out")
				}
				_, err := fmt.Fprint(cmd.OutOrStdout(), schema.Script())
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			before, err := schema.ReadStatus(ctx, conn)
			if err != nil {
				return err
			}
			if err := schema.Install(ctx, conn); err != nil {
				return err
			}
			return reportInstall(a, cmd, conn, !before.Installed)
		},
	}
	cmd.Flags().BoolVar(&script, "print", false, "print the SQL instead of running it")
	return cmd
}

// installed is the report of install; as JSON it is a stable format, with the fields of status first.
type installed struct {
	schema.Status
	Created  bool   `json:"created"` // false: the schema was there
	Database string `json:"database"`
	Server   string `json:"server"` // host and port, or the socket
	Role     string `json:"role"`
	// DataFolder is that of the private PostgreSQL; nil when the server is another.
	DataFolder *string `json:"data_folder"`
}

// reportInstall reports where the schema is now, and whether this command has created it.
func reportInstall(a *verb.App, cmd *cobra.Command, conn *pgx.Conn, created bool) error {
	status, err := schema.ReadStatus(cmd.Context(), conn)
	if err != nil {
		return err
	}
	config := conn.Config()
	report := installed{Status: status, Created: created, Server: verb.ServerAddress(config.Host, config.Port)}
	err = conn.QueryRow(cmd.Context(), "select pg_catalog.current_database()::text, current_user::text").Scan(&report.Database, &report.Role)
	if err != nil {
		return fmt.Errorf("ask where the schema was installed: %w", err)
	}
	if a.Private.Server != nil {
		report.DataFolder = new(a.Private.Server.Folder())
	}
	if a.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), report)
	}
	fmt.Fprintln(cmd.OutOrStdout(), report.sentence())
	if report.DataFolder != nil {
		named := cmp.Or(a.Data, os.Getenv("PARLEY_DATA")) != ""
		fmt.Fprintln(cmd.OutOrStdout(), privateSentence(*report.DataFolder, named))
	}
	return writeStatus(cmd.OutOrStdout(), status, false)
}

func (i installed) sentence() string {
	where := fmt.Sprintf("database %s of the server at %s, as role %s", i.Database, i.Server, i.Role)
	if i.Created {
		return "installed schema parley in " + where
	}
	return "schema parley is installed already in " + where + ": nothing was changed"
}

// privateSentence mentions a private PostgreSQL, which is not meant when --dsn or --data was forgotten.
func privateSentence(folder string, named bool) string {
	if named {
		return "this is the private PostgreSQL in " + folder
	}
	return "this is the private PostgreSQL in " + folder + ", the default: --dsn names another server, --data another folder"
}
