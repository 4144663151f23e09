// Package operating is the verbs of a database as a whole: install it, show what it does, diagnose it.
package operating

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// Commands makes the verbs of this folder.
func Commands(a *verb.App) []*cobra.Command {
	return []*cobra.Command{
		newDiagnoseCommand(a),
		newInstallCommand(a),
		newStatusCommand(a),
		newTopCommand(a),
		newTraceCommand(a),
		newUninstallCommand(a),
		newUpCommand(a),
		newUpgradeCommand(a),
		newVerifyCommand(a),
	}
}
