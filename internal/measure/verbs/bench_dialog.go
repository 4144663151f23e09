package verbs

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// addDialogFlags adds what only the benchmark of dialogs between databases takes.
func addDialogFlags(cmd *cobra.Command, options *bench.DialogOptions) {
	cmd.Long += `

Without a DSN it makes a private PostgreSQL server of its own and removes it at the end. The databases of both sides are on it, with one
daemon for the initiators and one for the target, which speak over a socket with mutual TLS. --separate-servers gives each database a
server and a daemon of its own.`
	cmd.Example += "\n  parley bench dialog --variant conversations,targets --conversation-steps 1,100 --target-steps 1,5 --repeat 1"
	flags := cmd.Flags()
	flags.BoolVar(&options.SeparateServers, "separate-servers", false, "a private server and a daemon for each database")
	flags.IntVar(&options.Readers, "readers", 0, "readers that messages start at a target at most (default the variant's own)")
	flags.IntVar(&options.Rate, "rate", 0, "messages a second that are offered where latency is measured (default 500)")
	flags.IntSliceVar(&options.ConversationSteps, "conversation-steps", nil,
		"over how many conversations the cost is compared (default 1,150,22500)")
	flags.IntSliceVar(&options.TargetSteps, "target-steps", nil,
		"to how many target databases the cost is compared (default 1,10,100)")
}
