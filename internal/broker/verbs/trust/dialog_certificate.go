package trust

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/verb"
)

// completeCertificates lists certificates of dialogs.
const completeCertificates verb.Completer = `
	select c.name || chr(9) || c.state from parley.certificates as c order by c.name limit 50`

func newDialogCertificateCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dialog-certificate",
		Short: "Make, exchange and replace the certificates of dialog security",
		Long: `A dialog certificate stands for a role: messages are sealed for it, so that only whoever has its private key can read them, and
signed with it, so that the other side knows who sends. Its public part is exported here and imported at the other side.

The private key never leaves the database, and is sealed there under the master key, which is in a file of the daemon.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		newDialogCertificateCreateCommand(a), newDialogCertificateRotateCommand(a), newDialogCertificateListCommand(a),
		newDialogCertificateExportCommand(a), newDialogCertificateImportCommand(a),
		newDialogCertificateActivateCommand(a), newDialogCertificateRevokeCommand(a), newDialogCertificateDropCommand(a),
	)
	return cmd
}

// validity of a certificate that nobody has limited otherwise, and how long before now it begins: clocks differ.
const (
	certificateDays = 365
	backDated       = 24 * time.Hour
)

// newCertificate holds the arguments of create and rotate.
type newCertificate struct {
	role, name, subject, out string
	days                     int
	isInactive               bool
	masterKey                MasterKeyFlag
}

func (n *newCertificate) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&n.name, "name", "", "name of the certificate")
	flags.StringVar(&n.out, "out", "", "write the public part to this file, for the other side")
	flags.IntVar(&n.days, "days", certificateDays, "how long it is valid")
	n.masterKey.AddFlag(cmd)
}

// create makes a certificate with its keys and stores it.
func (n *newCertificate) create(ctx context.Context, conn *pgx.Conn, out io.Writer) error {
	if n.days < 1 {
		return verb.Usagef("--days %d: give a positive number", n.days)
	}
	keys, err := n.masterKey.open()
	if err != nil {
		return err
	}
	now := time.Now()
	certificate, privateKey, err := dialogsecurity.NewCertificate(keys, n.subject, now.Add(-backDated), now.AddDate(0, 0, n.days))
	if err != nil {
		return err
	}
	err = truststore.CreateCertificate(ctx, conn, truststore.NewCertificate{
		Name: n.name, Owner: n.role, Bytes: certificate.Bytes, PrivateKey: privateKey, IsActive: !n.isInactive,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "certificate %q of role %q, valid until %s, fingerprint %x\n",
		n.name, n.role, certificate.End.Local().Format(time.DateOnly), certificate.Fingerprint)
	if n.out == "" {
		return nil
	}
	exported, err := proveExport(ctx, conn, keys, certificate, privateKey)
	if err != nil {
		return err
	}
	return writeExported(n.out, exported, out)
}

func newDialogCertificateCreateCommand(a *verb.App) *cobra.Command {
	var n newCertificate
	cmd := &cobra.Command{
		Use:   "create --role ROLE",
		Short: "Make a certificate for a role",
		Example: `  parley dialog-certificate create --role stock_owner --out stock.cert
  parley dialog-certificate create --role stock_owner --name stock-2027 --inactive`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n.role == "" {
				return verb.Usagef("give --role: the owner of the service that it is for")
			}
			if n.name == "" {
				n.name = n.role
			}
			if n.subject == "" {
				n.subject = n.name
			}
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error { return n.create(cmd.Context(), conn, cmd.OutOrStdout()) })
		},
	}
	n.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&n.role, "role", "", "role that it stands for")
	flags.StringVar(&n.subject, "subject", "", "what it says about its owner (default its name)")
	flags.BoolVar(&n.isInactive, "inactive", false, "do not use it for new messages yet: open only")
	return cmd
}

func newDialogCertificateRotateCommand(a *verb.App) *cobra.Command {
	var n newCertificate
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Make the successor of a certificate, not active yet",
		Long: `Make the successor of a certificate, for the same role. It opens what is sealed for it, and is used for nothing else until it is
activated: first import its public part at each other side, under the same role there as the one before; then activate
it here, and drop the old one. No message waits for this.`,
		Example: `  parley dialog-certificate rotate stock --out stock.cert
  parley dialog-certificate activate "stock 2027-03-01"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				old, err := readCertificate(cmd.Context(), conn, args[0])
				if err != nil {
					return err
				}
				n.role, n.subject, n.isInactive = old.Owner, old.Subject, true
				if n.name == "" {
					n.name = args[0] + " " + time.Now().Format(time.DateOnly)
				}
				return n.create(cmd.Context(), conn, cmd.OutOrStdout())
			})
		},
	}
	n.addFlags(cmd)
	a.CompleteArgument(cmd, completeCertificates, 1)
	return cmd
}

func readCertificate(ctx context.Context, db parley.DB, name string) (truststore.Certificate, error) {
	found, err := truststore.ReadCertificates(ctx, db, name)
	if err != nil {
		return truststore.Certificate{}, err
	}
	if len(found) == 0 {
		return truststore.Certificate{}, fmt.Errorf("certificate %q does not exist; see parley dialog-certificate list", name)
	}
	return found[0], nil
}

func newDialogCertificateListCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Example: "  parley dialog-certificate list",
		Short:   "List the certificates of dialogs, ours and those of others",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				found, err := truststore.ReadCertificates(cmd.Context(), conn, "")
				if err != nil {
					return err
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), append([]truststore.Certificate{}, found...))
				}
				table := verb.NewTable(cmd.OutOrStdout())
				fmt.Fprintln(table, "NAME\tROLE\tSTATE\tPRIVATE KEY\tEXPIRES\tFINGERPRINT")
				for _, c := range found {
					key := "-"
					if c.MasterKey != nil {
						key = "sealed by " + *c.MasterKey
					}
					fmt.Fprintln(table, strings.Join([]string{
						verb.OneLine(c.Name, 0), verb.OneLine(c.Owner, 0), c.State, key, c.Expiry.Local().Format(time.DateOnly), c.Fingerprint[:16],
					}, "\t"))
				}
				return table.Flush()
			})
		},
	}
}
