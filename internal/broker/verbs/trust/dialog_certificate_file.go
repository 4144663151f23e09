package trust

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/verb"
)

// proveExport makes the content of a file that proves that the broker of a database has the private signing key of a certificate.
func proveExport(
	ctx context.Context, db parley.DB, keys *dialogsecurity.MasterKeys, certificate dialogsecurity.Certificate, sealedKeys []byte,
) (dialogsecurity.Exported, error) {
	broker, err := parley.Attach(ctx, db)
	if err != nil {
		return dialogsecurity.Exported{}, err
	}
	return dialogsecurity.ProveExport(keys, certificate, sealedKeys, broker.ServiceBrokerGUID)
}

// writeExported writes a file; "-" is out.
func writeExported(path string, exported dialogsecurity.Exported, out io.Writer) error {
	if path == "-" {
		_, err := out.Write(exported.Text())
		return err
	}
	if err := os.WriteFile(path, exported.Text(), 0o644); err != nil {
		return fmt.Errorf("write the certificate: %w", err)
	}
	return nil
}

// exportCertificate holds the arguments of export.
type exportCertificate struct {
	name, out      string
	isWithoutProof bool
	masterKey      MasterKeyFlag
}

func newDialogCertificateExportCommand(a *verb.App) *cobra.Command {
	var e exportCertificate
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Write the public part of a certificate, for the other side",
		Long: `Write the public part of a certificate, for the other side. The file carries the instance of this broker, and a proof: a
signature by the private key of the certificate, for which the master key is needed. The other side refuses a file without it.`,
		Example: `  parley dialog-certificate export stock --out stock.cert`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.name = args[0]
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) error {
				exported, err := e.read(cmd.Context(), conn)
				if err != nil {
					return err
				}
				return writeExported(e.out, exported, cmd.OutOrStdout())
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&e.out, "out", "-", "file to write to; - is the standard output")
	flags.BoolVar(&e.isWithoutProof, "without-proof", false,
		"write no proof: the other side has to compare the fingerprint and import with --without-proof")
	e.masterKey.AddFlag(cmd)
	a.CompleteArgument(cmd, completeCertificates, 1)
	return cmd
}

// read reads the certificate, and proves what it is.
func (e *exportCertificate) read(ctx context.Context, conn *pgx.Conn) (none dialogsecurity.Exported, err error) {
	found, err := readCertificate(ctx, conn, e.name)
	if err != nil {
		return none, err
	}
	certificate, err := dialogsecurity.ParseCertificate(found.Bytes)
	switch {
	case err != nil:
		return none, err
	case e.isWithoutProof:
		return dialogsecurity.Exported{Certificate: certificate}, nil
	case !found.PrivateKey:
		return none, verb.WithHint(
			fmt.Errorf("certificate %q is somebody else's: its private key, which proves whose it is, is not here", e.name),
			"Ask its owner for the file, or give --without-proof.",
		)
	}
	exported, err := e.prove(ctx, conn, certificate)
	if err != nil {
		return none, verb.WithHint(
			fmt.Errorf("prove whose certificate %q is: %w", e.name, err),
			"Give --master-key, as a role that may administer the broker, or --without-proof.",
		)
	}
	return exported, nil
}

func (e *exportCertificate) prove(
	ctx context.Context, conn *pgx.Conn, certificate dialogsecurity.Certificate,
) (none dialogsecurity.Exported, err error) {
	path, err := e.masterKey.find("")
	if err != nil {
		return none, err
	}
	keys, err := dialogsecurity.OpenMasterKeys(path)
	if err != nil {
		return none, err
	}
	held, err := truststore.JudgeCertificates(ctx, conn, nil, certificate.Fingerprint[:], "")
	switch {
	case err != nil:
		return none, err
	case held.PrivateKey == nil:
		return none, errors.New(held.Status)
	}
	return proveExport(ctx, conn, keys, certificate, held.PrivateKey)
}

// importCertificate holds the arguments of import.
type importCertificate struct {
	path, role, name, instance string
	isWithoutProof             bool
}

func newDialogCertificateImportCommand(a *verb.App) *cobra.Command {
	var i importCertificate
	cmd := &cobra.Command{
		Use:   "import FILE --role ROLE",
		Short: "Install the public part of somebody else's certificate under a role",
		Long: `Install the public part of a certificate that the other side has exported. The role stands for that side here: what is
signed with the certificate is done in its name, and a remote service binding that names it seals for the certificate.

Compare the fingerprint with the one that the other side sees: who can exchange the file can read your messages. The file proves
that the private signing key of the certificate has signed for the broker instance that is printed: nobody can pass the
certificate off as that of another one. With --instance another one is refused. A file without a valid proof is refused too, unless
you have compared the fingerprint and say --without-proof.`,
		Example: `  parley dialog-certificate import stock.cert --role stock_far
  parley dialog-certificate import stock.cert --role stock_far --instance 8f0e5d0c-4c3b-4b59-8d59-1f6f5e1c9a55`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			i.path = args[0]
			certificate, err := i.read()
			if err != nil {
				return err
			}
			if i.name == "" {
				i.name = certificate.Subject
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				err := truststore.CreateCertificate(ctx, conn, truststore.NewCertificate{
					Name: i.name, Owner: i.role, Bytes: certificate.Bytes, IsActive: true,
				})
				if err != nil {
					return err
				}
				proven := "broker instance not proven"
				if !i.isWithoutProof {
					proven = "of broker instance " + certificate.Instance.String()
				}
				fmt.Fprintf(cmd.OutOrStdout(), "certificate %q stands for role %q, fingerprint %x, %s\n",
					i.name, i.role, certificate.Fingerprint, proven)
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&i.role, "role", "", "role that stands for the other side")
	flags.StringVar(&i.name, "name", "", "name of the certificate here (default its subject)")
	flags.StringVar(&i.instance, "instance", "", "broker instance of the other side: a file of another one is refused")
	flags.BoolVar(&i.isWithoutProof, "without-proof", false,
		"take a file without a valid proof: only after you have compared the fingerprint with its owner")
	return cmd
}

// read reads the file, and refuses what is not proven.
func (i *importCertificate) read() (none dialogsecurity.Exported, err error) {
	var expected parley.UUID
	switch {
	case i.role == "":
		return none, verb.Usagef("give --role: the role that stands for the other side here")
	case i.instance != "" && i.isWithoutProof:
		return none, verb.Usagef("--instance or --without-proof, not both: without a proof nothing says whose the file is")
	case i.instance != "":
		if expected, err = parley.ParseUUID(i.instance); err != nil {
			return none, verb.Usagef("--instance %s: %v", i.instance, err)
		}
	}
	text, err := os.ReadFile(i.path)
	if err != nil {
		return none, fmt.Errorf("read the certificate: %w", err)
	}
	found, err := dialogsecurity.Import(text)
	if err != nil {
		return none, fmt.Errorf("%s: %w", i.path, err)
	}
	if i.isWithoutProof {
		return found, nil
	}
	if err := found.Verify(); err != nil {
		return none, verb.WithHint(
			fmt.Errorf("%s: %w", i.path, err),
			fmt.Sprintf("Let its owner export it anew, or compare the fingerprint %x with the owner and give --without-proof.",
				found.Fingerprint),
		)
	}
	if i.instance != "" && found.Instance != expected {
		return none, verb.WithHint(
			fmt.Errorf("%s: it is of broker instance %s, not of %s", i.path, found.Instance, expected),
			"Ask for the file of the broker that you expect; select service_broker_guid from parley.attach_broker() there shows its instance.",
		)
	}
	return found, nil
}
