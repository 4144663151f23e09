package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/verbs"
)

// newFlowCommand puts the verbs of the integration engine into the command line: what they report themselves ends with their exit code.
func newFlowCommand(a *app) *cobra.Command {
	group := verbs.New(verbs.Environment{Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, JSON: func() bool { return a.json }})
	for _, verb := range group.Commands() {
		run := verb.RunE
		verb.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if usage, ok := errors.AsType[verbs.UsageError](err); ok {
				return usageError{usage}
			}
			if exit, ok := errors.AsType[verbs.ExitError](err); ok {
				return exitError{code: exit.Code}
			}
			return err
		}
	}
	return group
}
