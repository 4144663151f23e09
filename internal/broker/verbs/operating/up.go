package operating

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/postgres"
	"github.com/parley-broker/parley/internal/verb"
)

// runningServer is the report of up about the private PostgreSQL; as JSON it is a stable format.
type runningServer struct {
	DSN     string `json:"dsn"`
	TCPDSN  string `json:"tcp_dsn,omitempty"`
	Version int    `json:"postgres_version"`
	Folder  string `json:"data_folder"`
	Log     string `json:"log"`
}

func newUpCommand(a *verb.App) *cobra.Command {
	var tcp bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Keep the private PostgreSQL running and print its DSN",
		Long: `Start the private PostgreSQL, or join the one that another command runs on the same data folder,
print its DSN and keep it running until Ctrl-C. A server that crashes is started again.
The last command that uses the data folder stops the server.

PostgreSQL is the newest one installed, or 18 is fetched. It listens on a Unix socket that only you, root
and the user who runs the server can reach; --tcp adds a free port of 127.0.0.1, with a password.`,
		Example: `  parley up
  parley up --data ./db --postgres-version 18
  parley up --tcp --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.DSN != "" {
				return verb.Usagef("up runs the private PostgreSQL: --dsn, which names another one, does not go with it")
			}
			a.Private.TCP = tcp
			dsn, err := a.StartPrivate(cmd.Context())
			if err != nil {
				return err
			}
			server, err := describeServer(a.Private.Server, dsn, tcp)
			if err != nil {
				return err
			}
			if err := printServer(a, server); err != nil {
				return err
			}
			return a.Private.Server.Supervise(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&tcp, "tcp", false, "listen on a free port of 127.0.0.1 too, for clients without Unix sockets")
	return cmd
}

func describeServer(server *postgres.Server, dsn string, tcp bool) (runningServer, error) {
	version, err := server.Version()
	if err != nil {
		return runningServer{}, err
	}
	described := runningServer{DSN: dsn, Version: version, Folder: server.Folder(), Log: server.Log()}
	if tcp {
		if described.TCPDSN, err = server.TCPDSN(verb.PrivateDatabase); err != nil {
			return runningServer{}, err
		}
	}
	return described, nil
}

// printServer prints the DSNs alone to standard output, for scripts; what a person wants to know besides goes
// to standard error.
func printServer(a *verb.App, server runningServer) error {
	if a.JSON {
		encoder := json.NewEncoder(a.Stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(server)
	}
	fmt.Fprintf(a.Stderr, "PostgreSQL %d runs on %s until Ctrl-C.\n", server.Version, server.Folder)
	if _, err := fmt.Fprintln(a.Stdout, server.DSN); err != nil {
		return err
	}
	if server.TCPDSN == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.Stdout, server.TCPDSN)
	return err
}
