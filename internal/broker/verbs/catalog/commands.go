// Package catalog is the verbs of what is defined in a database: services, queues, what reads them.
package catalog

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// Commands makes the verbs of this folder.
func Commands(a *verb.App) []*cobra.Command {
	return []*cobra.Command{
		newActivationCommand(a),
		newQueueCommand(a),
		newQueuesCommand(a),
		newServiceCommand(a),
	}
}
