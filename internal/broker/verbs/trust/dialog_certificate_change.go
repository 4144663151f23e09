package trust

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/verb"
)

func newDialogCertificateActivateCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "activate NAME",
		Example: "  parley dialog-certificate activate shop",
		Short:   "Use a certificate for new messages, instead of the others of its role",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return activateCertificate(ctx, tx, args[0]) })
			})
		},
	}
	a.CompleteArgument(cmd, completeCertificates, 1)
	return cmd
}

// activateCertificate activates one certificate and deactivates the others of its role that could be used in the same way.
func activateCertificate(ctx context.Context, tx pgx.Tx, name string) error {
	chosen, err := readCertificate(ctx, tx, name)
	if err != nil {
		return err
	}
	all, err := truststore.ReadCertificates(ctx, tx, "")
	if err != nil {
		return err
	}
	yes, no := true, false
	if err := truststore.AlterCertificate(ctx, tx, name, &yes, nil); err != nil {
		return err
	}
	for _, other := range all {
		if other.Owner == chosen.Owner && other.PrivateKey == chosen.PrivateKey && other.Name != name && other.State == "VALID" {
			if err := truststore.AlterCertificate(ctx, tx, other.Name, &no, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func newDialogCertificateRevokeCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke NAME",
		Example: "  parley dialog-certificate revoke shop",
		Short:   "Let a certificate count for nothing any more, at once",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			yes := true
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				return truststore.AlterCertificate(cmd.Context(), conn, args[0], nil, &yes)
			})
		},
	}
	a.CompleteArgument(cmd, completeCertificates, 1)
	return cmd
}

func newDialogCertificateDropCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drop NAME",
		Example: "  parley dialog-certificate drop shop",
		Short:   "Remove a certificate, with its private key",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error { return truststore.DropCertificate(cmd.Context(), conn, args[0]) })
		},
	}
	a.CompleteArgument(cmd, completeCertificates, 1)
	return cmd
}
