package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
)

// completePeers lists the peers.
const completePeers completer = `
	select p.name || chr(9) || p.state || coalesce(', acts as ' || p.role_name, '')
	from parley.peers as p
	order by p.name
	limit 50`

func newPeersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "List and change the brokers elsewhere that the database trusts",
		Long: `List and change the brokers on other servers that the database trusts. You have to be an administrator to change them.
parley pair makes new ones.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		newPeersListCommand(a), newPeersTrustCommand(a), newPeersRoleCommand(a),
		a.newPeerChangeCommand("revoke", "revoked", "Trust a peer no more",
			`Trust a peer no more, with all its keys: nothing that it sends is accepted from now on, and its links are closed within seconds. It
stays in the list; drop it to trust it anew.`, truststore.RevokePeer),
		a.newPeerChangeCommand("drop", "dropped", "Forget a peer",
			`Forget a peer: it is unknown again, and its links are closed. Where a certificate authority vouches for peers,
revoke it instead.`,
			truststore.DropPeer),
	)
	return cmd
}

func newPeersListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the peers",
		Long:  `List the peers: what each acts as in this database, its keys, and where it listens.`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showAll(a, cmd, truststore.ReadPeers, writePeers)
		},
	}
}

func writePeers(out io.Writer, peers []truststore.Peer) error {
	if len(peers) == 0 {
		_, err := fmt.Fprintln(out, "no broker elsewhere is trusted: parley pair")
		return err
	}
	table := newTable(out)
	fmt.Fprintln(table, "PEER\tSTATE\tACTS AS\tADDRESS\tVALID UNTIL\tKEYS")
	for _, p := range peers {
		fingerprints := make([]string, 0, len(p.Fingerprints))
		for _, f := range p.Fingerprints {
			fingerprints = append(fingerprints, f[:16]+"…")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", oneLine(p.Name, 40), p.State, orNone(orEmpty(p.Role)), orNone(orEmpty(p.Address)),
			moment(p.NotAfter), orNone(strings.Join(fingerprints, " ")))
	}
	return table.Flush()
}

func newPeersTrustCommand(a *app) *cobra.Command {
	var p truststore.NewPeer
	cmd := &cobra.Command{
		Use:   "trust NAME FINGERPRINT",
		Short: "Trust a key that was learned in another way than by pairing",
		Long: `Trust a broker by the fingerprint of its key, as parley certificate list shows it there. How it came here is your affair:
whoever has changed it on the way is trusted instead.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			fingerprint, err := identity.ParseFingerprint(args[1])
			if err != nil {
				return asUsage(err)
			}
			p.Name, p.Fingerprint = args[0], fingerprint.String()
			return a.changePeer(cmd, p.Name, "trusted", func(ctx context.Context, conn *pgx.Conn) error {
				return truststore.TrustPeer(ctx, conn, p)
			})
		},
	}
	cmd.Flags().StringVar(&p.Role, "role", "", "role of this database that it acts as (default none: only what is granted to PUBLIC counts)")
	cmd.Flags().StringVar(&p.Address, "address", "", "where it listens, tcp://host:port; at this address nobody else may answer then")
	return cmd
}

func newPeersRoleCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "role NAME ROLE",
		Short: "Let a peer act as another role",
		Long:  `Let a peer act as another role of this database; PUBLIC for none.`,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changePeer(cmd, args[0], "altered", func(ctx context.Context, conn *pgx.Conn) error {
				return truststore.SetPeerRole(ctx, conn, args[0], args[1])
			})
		},
	}
	a.completeArgument(cmd, completePeers, 1)
	return cmd
}

func (a *app) newPeerChangeCommand(
	verb, change, short, long string, do func(context.Context, parley.DB, string) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Long:  long,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changePeer(cmd, args[0], change, func(ctx context.Context, conn *pgx.Conn) error { return do(ctx, conn, args[0]) })
		},
	}
	a.completeArgument(cmd, completePeers, 1)
	return cmd
}

// peerChange is what a command has done; as JSON it is a stable format.
type peerChange struct {
	Peer   string `json:"peer"`
	Change string `json:"change"` // trusted, altered, revoked or dropped
}

func (a *app) changePeer(cmd *cobra.Command, name, change string, do func(context.Context, *pgx.Conn) error) error {
	return a.change(cmd, peerChange{Peer: name, Change: change}, a.stderr, fmt.Sprintf("%s peer %s", change, name), do)
}
