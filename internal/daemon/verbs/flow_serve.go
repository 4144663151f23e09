package verbs

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/verb"
)

// NewFlowServe makes parley flow serve.
func NewFlowServe(a *verb.App) *cobra.Command {
	cmd := serveCommand(a, flowAlone)
	cmd.Short = "Run hosts of integration: take in, route, send"
	cmd.Long = `Run hosts of the integration engine for a database until Ctrl-C or SIGTERM: receive locations take in, send ports send.
They are defined in the database: see parley flow apply. Changes are used at once.

Without --host it serves every host whose role the login is a member of. Any number of nodes may serve one host. What a node has in its
hands when it is killed is sent by another when its lease is over (--lease). When it is asked to stop it takes in nothing more, finishes
what it has in its hands for as long as --drain says, and gives the rest back; asked again it ends at once.

Definitions name folders, addresses and secrets. A node uses only those that --allow-folder, --allow-listen, --allow-connect and
--allow-secret permit: without them none. It leaves out what names others, with a finding of parley diagnose.

It is parley serve --flow --broker=false; parley serve --flow runs hosts beside the broker in one daemon, and has these flags as
--flow-host and so on.`
	cmd.Example = `  parley flow serve --dsn postgres://rx@db1/shop --host Receive --allow-folder /data/orders
  parley flow serve --dsn postgres://tx@db1/shop --host Send --allow-connect erp.example:9000 --allow-secret 'env:ERP_*'
  parley flow serve --dsn postgres://node@db1/shop --allow-listen '*:8443' --allow-connect '*:443' --http 127.0.0.1:9189`
	return cmd
}

// addFlowFlags adds what hosts may be asked for. In parley serve their names begin with a prefix.
func (s *serving) addFlowFlags(cmd *cobra.Command, prefix string) {
	flags, c := cmd.Flags(), &s.Flow.Config
	flags.StringArrayVar(&c.Hosts, prefix+"host", nil,
		"host to serve, may be given several times (default all whose roles the login is a member of)")
	flags.StringVar(&c.Node, prefix+"node", "", "name of this node, which no other one has (default host and process id)")
	flags.StringArrayVar(&c.Permission.Folders, prefix+"allow-folder", nil,
		"folder of this machine, given by its full path, below which files may be read and written, may be given several times (default none)")
	flags.StringArrayVar(&c.Permission.Listen, prefix+"allow-listen", nil,
		"address that locations may listen at, as host:port, where either may be * (default none)")
	flags.StringArrayVar(&c.Permission.Connect, prefix+"allow-connect", nil,
		"address that definitions may connect to, as host:port, where the port may be *, and the host * for all that are public (default none)")
	flags.StringArrayVar(&c.Permission.Secrets, prefix+"allow-secret", nil,
		"secret that definitions may name, as env:NAME, file:/PATH or command:/PATH; * at the end stands for any ending (default none)")
	flags.DurationVar(&c.Lease, prefix+"lease", host.DefaultLease, "how long what a node was sending waits for others when it was killed")
	flags.DurationVar(&c.Drain, prefix+"drain", host.DefaultDrain,
		"how long a node finishes what it has in its hands when it is asked to stop")
}
