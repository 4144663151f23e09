package trust

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
	"github.com/parley-broker/parley/internal/verb"
)

// completePeers lists the peers.
const completePeers verb.Completer = `
	select p.name || chr(9) || p.state || coalesce(', acts as ' || p.role_name, '')
	from parley.peers as p
	order by p.name
	limit 50`

func newPeersCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "List and change the brokers elsewhere that the database trusts",
		Long: `List and change the brokers on other servers that the database trusts. You have to be an administrator to change them.
parley pair makes new ones.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		newPeersListCommand(a), newPeersTrustCommand(a), newPeersRoleCommand(a),
		newPeerChangeCommand(a, "revoke", "revoked", "Trust a peer no more",
			`Trust a peer no more, with all its keys: nothing that it sends is accepted from now on, and its links are closed within seconds. It
stays in the list; drop it to trust it anew.`, truststore.RevokePeer),
		newPeerChangeCommand(a, "drop", "dropped", "Forget a peer",
			`Forget a peer: it is unknown again, and its links are closed. Where a certificate authority vouches for peers,
revoke it instead.`,
			truststore.DropPeer),
	)
	return cmd
}

func newPeersListCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Example: "  parley peers list",
		Short:   "List the peers",
		Long:    `List the peers: what each acts as in this database, its keys, and where it listens.`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, truststore.ReadPeers, writePeers)
		},
	}
}

func writePeers(out io.Writer, peers []truststore.Peer) error {
	if len(peers) == 0 {
		_, err := fmt.Fprintln(out, "no broker elsewhere is trusted: parley pair")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "PEER\tSTATE\tACTS AS\tADDRESS\tVALID UNTIL\tKEYS")
	for _, p := range peers {
		fingerprints := make([]string, 0, len(p.Fingerprints))
		for _, f := range p.Fingerprints {
			fingerprints = append(fingerprints, f[:16]+"…")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			verb.OneLine(p.Name, 40), p.State, verb.OrNone(verb.OrEmpty(p.Role)), verb.OrNone(verb.OrEmpty(p.Address)),
			verb.Moment(p.NotAfter), verb.OrNone(strings.Join(fingerprints, " ")))
	}
	return table.Flush()
}

func newPeersTrustCommand(a *verb.App) *cobra.Command {
	var p truststore.NewPeer
	cmd := &cobra.Command{
		Use:     "trust NAME FINGERPRINT",
		Example: "  parley peers trust stock e1ee2ffe94787841b7c5693d63ae03353e8bb1c76920d139aa22c46cb35e0d65",
		Short:   "Trust a key that was learned in another way than by pairing",
		Long: `Trust a broker by the fingerprint of its key, as parley certificate list shows it there. How it came here is your affair:
whoever has changed it on the way is trusted instead.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			fingerprint, err := identity.ParseFingerprint(args[1])
			if err != nil {
				return verb.AsUsage(err)
			}
			p.Name, p.Fingerprint = args[0], fingerprint.String()
			return changePeer(a, cmd, p.Name, "trusted", func(ctx context.Context, conn *pgx.Conn) error {
				return truststore.TrustPeer(ctx, conn, p)
			})
		},
	}
	cmd.Flags().StringVar(&p.Role, "role", "", "role of this database that it acts as (default none: only what is granted to PUBLIC counts)")
	cmd.Flags().StringVar(&p.Address, "address", "", "where it listens, tcp://host:port; at this address nobody else may answer then")
	return cmd
}

func newPeersRoleCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "role NAME ROLE",
		Example: "  parley peers role stock stock_peer",
		Short:   "Let a peer act as another role",
		Long:    `Let a peer act as another role of this database; PUBLIC for none.`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changePeer(a, cmd, args[0], "altered", func(ctx context.Context, conn *pgx.Conn) error {
				return truststore.SetPeerRole(ctx, conn, args[0], args[1])
			})
		},
	}
	a.CompleteArgument(cmd, completePeers, 1)
	return cmd
}

func newPeerChangeCommand(a *verb.App,
	verb, change, short, long string, do func(context.Context, parley.DB, string) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Use:     verb + " NAME",
		Example: "  parley peers " + verb + " stock",
		Short:   short,
		Long:    long,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changePeer(a, cmd, args[0], change, func(ctx context.Context, conn *pgx.Conn) error { return do(ctx, conn, args[0]) })
		},
	}
	a.CompleteArgument(cmd, completePeers, 1)
	return cmd
}

// peerChange is the result of a command; as JSON it is a stable format.
type peerChange struct {
	Peer   string `json:"peer"`
	Change string `json:"change"` // trusted, altered, revoked or dropped
}

func changePeer(a *verb.App, cmd *cobra.Command, name, change string, do func(context.Context, *pgx.Conn) error) error {
	return a.Change(cmd, peerChange{Peer: name, Change: change}, a.Stderr, fmt.Sprintf("%s peer %s", change, name), do)
}
