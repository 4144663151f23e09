package trust

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/broker/identity"
	truststore "github.com/parley-broker/parley/internal/store/trust"
	"github.com/parley-broker/parley/internal/verb"
)

// paired is the result of a command; as JSON it is a stable format.
type paired struct {
	Peer        string                       `json:"peer"`
	Fingerprint string                       `json:"fingerprint"`
	Address     string                       `json:"address"`
	Role        string                       `json:"role"`
	Databases   []truststore.OfferedDatabase `json:"databases"`
	// DialogCertificates are the fingerprints of those that stand for the peer's role.
	DialogCertificates []string `json:"dialog_certificates"`
}

func reportPaired(a *verb.App, cmd *cobra.Command, conn *pgx.Conn, offer truststore.PairingOffer, p paired) error {
	taken, obstacle, err := truststore.ReadPeerDialogCertificates(cmd.Context(), conn, p.Peer, offer.DialogCertificates)
	if err != nil {
		return err
	}
	p.DialogCertificates = append([]string{}, taken...)
	p.Databases = append([]truststore.OfferedDatabase{}, offer.WithoutDialogCertificates().Databases...)
	if a.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), p)
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "paired with %s, which acts as %s here\n", p.Peer, cmp.Or(p.Role, "nobody: only what is granted to PUBLIC counts"))
	for _, d := range p.Databases {
		fmt.Fprintf(out, "  database %s, broker %s, services: %s\n", d.Database, d.Instance, verb.OrNone(strings.Join(d.Services, ", ")))
	}
	switch {
	case len(taken) > 0:
		fmt.Fprintf(out, "  its dialog certificate stands for %s: %s\n", cmp.Or(p.Role, "its role"), strings.Join(words(taken), ", "))
	case len(offer.DialogCertificates) > 0 && obstacle != "":
		fmt.Fprintf(out, "  its dialog certificate was not taken: %s\n", obstacle)
	}
	return nil
}

// words spells fingerprints.
func words(fingerprints []string) (spelled []string) {
	for _, text := range fingerprints {
		if fingerprint, err := identity.ParseFingerprint(text); err == nil {
			spelled = append(spelled, fingerprint.Words())
		}
	}
	return spelled
}

// printCertificates shows dialog certificates to the people who compare the code, which covers them.
func (f *pairFlags) printCertificates(whose string, fingerprints []string) {
	if f.certificates {
		for _, spelled := range words(fingerprints) {
			f.asker.Printf("  %s dialog certificate: %s\n", whose, spelled)
		}
	}
}
