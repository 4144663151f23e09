// Package trust is the verbs of peers, keys and certificates: with whom a broker speaks, and how what it says is sealed.
package trust

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// Commands makes the verbs of this folder.
func Commands(a *verb.App) []*cobra.Command {
	return []*cobra.Command{
		newCertificateCommand(a),
		newDialogCertificateCommand(a),
		newMasterKeyCommand(a),
		newPairCommand(a),
		newPeersCommand(a),
	}
}
