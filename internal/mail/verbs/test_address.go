package verbs

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/mail/nexthop"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// testedAddress is the output of test-address for programs; a stable format.
type testedAddress struct {
	mailstore.AddressTest
	Hosts      []string `json:"hosts"`
	HostsError *string  `json:"hosts_error"`
}

func newMailTestAddressCommand(a *verb.App) *cobra.Command {
	var from string
	var size int64
	var hosts bool
	var nameServers []string
	cmd := &cobra.Command{
		Use:   "test-address ADDRESS",
		Short: "Explain what would become of a message to an address",
		Long: `Explain what would become of a message, and send none: who gets it, by way of which alias, group or forwarding, by which queue,
connector and next hop, or why it is refused. With --hosts the name servers are asked which hosts take mail for a domain.
You need the right VIEW.`,
		Example: `  parley mail test-address sales@example.org --from customer@example.com
  parley mail test-address ann@example.com --size 20000000 --hosts`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sender *string
			if cmd.Flags().Changed("from") {
				sender = &from
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				found, err := mailstore.TestAddress(ctx, conn, args[0], sender, size)
				if err != nil {
					return err
				}
				tested := []testedAddress{}
				for _, t := range found {
					tested = append(tested, testedAddress{AddressTest: t})
				}
				if hosts {
					if err := findHosts(ctx, tested, nameServers); err != nil {
						return err
					}
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), tested)
				}
				return writeTestedAddress(cmd.OutOrStdout(), args[0], tested)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "sender; '' is the null sender (default the postmaster)")
	flags.Int64Var(&size, "size", 1000, "bytes of the message")
	flags.BoolVar(&hosts, "hosts", false, "ask which hosts take mail for domains")
	flags.StringArrayVar(&nameServers, "name-server", nil,
		"name server as host:port, may be given several times (default those of the system)")
	return cmd
}

// findHosts asks which hosts take mail where the next hop is a domain.
func findHosts(ctx context.Context, tested []testedAddress, servers []string) error {
	resolver, err := nexthop.New(nexthop.Config{Servers: servers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("ask for hosts: %w", err)
	}
	for i, t := range tested {
		if !t.NextHopIsDomain {
			continue
		}
		exchangers, err := resolver.Exchangers(ctx, verb.OrEmpty(t.NextHop), func(string) bool { return false })
		if err != nil {
			text := err.Error()
			tested[i].HostsError = &text
			continue
		}
		for _, host := range exchangers {
			tested[i].Hosts = append(tested[i].Hosts, host.Name)
		}
	}
	return nil
}

func writeTestedAddress(out io.Writer, address string, tested []testedAddress) error {
	if len(tested) == 0 {
		_, err := fmt.Fprintf(out, "nobody gets a message to %s\n", verb.OneLine(address, 0))
		return err
	}
	for _, t := range tested {
		fmt.Fprint(out, verb.OneLine(t.Recipient, 0))
		switch verb.OrEmpty(t.ByWayOf) {
		case "RESOLVE":
			fmt.Fprint(out, ", of which it is another address")
		case "EXPAND":
			fmt.Fprint(out, ", as a member of a group")
		case "REDIRECT":
			fmt.Fprint(out, ", by forwarding")
		}
		fmt.Fprintln(out)
		if t.Status != nil {
			fmt.Fprintf(out, "  refused: %s %s\n", *t.Status, verb.OneLine(verb.OrEmpty(t.Reason), 0))
			continue
		}
		fmt.Fprintf(out, "  queue: %s (%s)\n", verb.OneLine(verb.OrEmpty(t.Queue), 0), statusOfTested(t))
		fmt.Fprintf(out, "  goes to: %s\n", verb.OneLine(verb.OrEmpty(t.GoesTo), 0))
		for _, host := range t.Hosts {
			fmt.Fprintf(out, "  host: %s\n", verb.OneLine(host, 0))
		}
		if t.HostsError != nil {
			fmt.Fprintf(out, "  hosts are not known: %s\n", verb.OneLine(*t.HostsError, 0))
		}
	}
	return nil
}

func statusOfTested(t testedAddress) string {
	switch {
	case t.IsHeld:
		return "its domain is held"
	case t.QueueStatus == nil:
		return "comes with the message"
	}
	return *t.QueueStatus
}
