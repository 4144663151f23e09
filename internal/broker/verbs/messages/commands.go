// Package messages is the verbs of conversations and their messages, and of simple queues.
package messages

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// Commands makes the verbs of this folder.
func Commands(a *verb.App) []*cobra.Command {
	return []*cobra.Command{
		newBatchCommand(a), newCancelCommand(a), newClaimsCommand(a),
		newConversationsCommand(a),
		newDelayedCommand(a), newScheduleCommand(a),
		newEndCommand(a), newFinishedCommand(a),
		newPeekCommand(a),
		newPoisonCommand(a),
		newPutCommand(a),
		newReceiveCommand(a),
		newRequestCommand(a),
		newSendCommand(a),
		newTailCommand(a),
		newTakeCommand(a),
	}
}
