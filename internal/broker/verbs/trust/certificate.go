package trust

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/identity"
	"github.com/parley-broker/parley/internal/verb"
)

func newCertificateCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certificate",
		Short: "Make, change and list the certificates of this broker",
		Long: `Make, change and list the certificates with which the daemon proves to brokers on other servers who it is. They live with
their keys in a folder of the user that runs the daemon; parley serve --listen makes the first one when there is none.

Others trust the key. They get its fingerprint by parley pair, or by parley.trust_peer in their database.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newCertificateCreateCommand(a), newCertificateRotateCommand(a), newCertificateListCommand(a))
	return cmd
}

// certificateFlags describe a new certificate, and where it is written.
type certificateFlags struct {
	folder string
	name   string
	days   int
}

func (f *certificateFlags) add(cmd *cobra.Command) {
	addIdentityFlag(cmd, &f.folder)
	cmd.Flags().StringVar(&f.name, "name", "", "name in the certificate, for people (default the name of this host)")
	cmd.Flags().IntVar(&f.days, "days", int(identity.Validity/(24*time.Hour)), "for how many days it is valid")
}

func addIdentityFlag(cmd *cobra.Command, folder *string) {
	cmd.Flags().StringVar(folder, "identity", "",
		"folder with the keys of the broker (default parley/identity in the user's data directory)")
}

func (f *certificateFlags) config() (identity.Config, error) {
	if f.days < 1 || f.days > 36500 {
		return identity.Config{}, verb.Usagef("--days %d: give 1 to 36500", f.days)
	}
	name := f.name
	if name == "" {
		name, _ = os.Hostname()
	}
	return identity.Config{Name: name, Validity: time.Duration(f.days) * 24 * time.Hour}, nil
}

func newCertificateCreateCommand(a *verb.App) *cobra.Command {
	var f certificateFlags
	cmd := &cobra.Command{
		Use:     "create",
		Example: "  parley certificate create",
		Short:   "Make the first certificate of this broker",
		Long: `Make the first certificate of this broker, with a new key. One that is there stays: parley certificate rotate takes the
next step.

It is valid for a year, and since yesterday for those whose clocks are late.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := f.config()
			if err != nil {
				return err
			}
			folder, err := identity.OpenFolder(f.folder)
			if err != nil {
				return err
			}
			c, isNew, err := folder.Create(config)
			if err != nil {
				return err
			}
			if !isNew {
				return fmt.Errorf("there is a certificate already, in %s: parley certificate rotate makes the next one", folder.Path())
			}
			return reportCertificate(a, cmd, c)
		},
	}
	f.add(cmd)
	return cmd
}

func newCertificateRotateCommand(a *verb.App) *cobra.Command {
	var f certificateFlags
	var compromised bool
	cmd := &cobra.Command{
		Use:     "rotate",
		Example: "  parley certificate rotate",
		Short:   "Take a new key, which the old one vouches for",
		Long: `Make a new certificate with a new key. A daemon that runs uses it from its next connection on, within a second, and is not
stopped. The old key signs the new one: peers that trust the old one take the new one by themselves at the next connection, as long
as the old certificate is valid, and trust both until then. Links that are open stay open.

With --compromised the old key signs nothing, because a thief could have signed too. Then revoke the peer at each other side
(parley peers revoke), and pair again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := f.config()
			if err != nil {
				return err
			}
			folder, err := identity.OpenFolder(f.folder)
			if err != nil {
				return err
			}
			c, err := folder.Rotate(config, compromised)
			if err != nil {
				return err
			}
			if len(c.Chain) == 1 {
				fmt.Fprintln(a.Stderr, "The old key does not vouch for the new one: peers have to be paired with again.")
			}
			return reportCertificate(a, cmd, c)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&compromised, "compromised", false, "somebody else may have the old key")
	return cmd
}

func newCertificateListCommand(a *verb.App) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:     "list",
		Example: "  parley certificate list",
		Short:   "List the certificates of this broker",
		Long:    `List the certificates of this broker, the newest first. Give others the fingerprint of the one in use, or its words.`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := identity.OpenFolder(path)
			if err != nil {
				return err
			}
			list, err := folder.List()
			if err != nil {
				return err
			}
			inUse, err := folder.Certificate()
			if err != nil && !errors.Is(err, identity.ErrNoCertificate) {
				return err
			}
			shown := make([]shownCertificate, 0, len(list))
			for _, c := range list {
				shown = append(shown, showCertificate(c, c.Fingerprint == inUse.Fingerprint))
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), shown)
			}
			return writeCertificates(cmd.OutOrStdout(), shown)
		},
	}
	addIdentityFlag(cmd, &path)
	return cmd
}

// shownCertificate is the output of the commands for programs; a stable format.
type shownCertificate struct {
	Name        string    `json:"name"`
	State       string    `json:"state"` // VALID, NOT YET VALID or EXPIRED
	IsInUse     bool      `json:"is_in_use"`
	Fingerprint string    `json:"fingerprint"`
	Words       string    `json:"words"` // its first half, for people to read out
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
}

func showCertificate(c *identity.Certificate, isInUse bool) shownCertificate {
	state := "VALID"
	switch err := identity.Check(c.Leaf, time.Now()); {
	case errors.Is(err, identity.ErrExpired):
		state = "EXPIRED"
	case err != nil:
		state = "NOT YET VALID"
	}
	return shownCertificate{
		Name: c.Leaf.Subject.CommonName, State: state, IsInUse: isInUse, Fingerprint: c.Fingerprint.String(), Words: c.Fingerprint.Words(),
		NotBefore: c.Leaf.NotBefore, NotAfter: c.Leaf.NotAfter,
	}
}

func writeCertificates(out io.Writer, list []shownCertificate) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "this broker has no certificate yet: parley certificate create, or parley serve --listen")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "IN USE\tNAME\tSTATE\tVALID UNTIL\tFINGERPRINT\tWORDS")
	for _, c := range list {
		inUse := "-"
		if c.IsInUse {
			inUse = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			inUse, verb.OneLine(c.Name, 40), c.State, c.NotAfter.Local().Format("2006-01-02"), c.Fingerprint, c.Words)
	}
	return table.Flush()
}

func reportCertificate(a *verb.App, cmd *cobra.Command, c *identity.Certificate) error {
	shown := showCertificate(c, true)
	if a.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), shown)
	}
	return writeCertificates(cmd.OutOrStdout(), []shownCertificate{shown})
}
