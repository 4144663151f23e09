package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// argumentLists reports which command lists what may stand for an argument.
var argumentLists = map[string]string{
	"QUEUE":        "parley queues",
	"SERVICE":      "parley service list",
	"CONVERSATION": "parley conversations",
	"HANDLE":       "parley conversations",
}

// explainArguments makes each verb show its usage when its arguments are not as many as it takes, in one line.
func explainArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil && cmd.HasParent() && cmd.RunE != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return verb.ExitWith(argumentsError(cmd, args, err), verb.ExitUsage)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		explainArguments(sub)
	}
}

func argumentsError(cmd *cobra.Command, args []string, err error) error {
	if strings.HasPrefix(err.Error(), "unknown command") {
		if cmd.HasAvailableSubCommands() {
			return verb.NoSuchCommand(cmd, args[0])
		}
		return fmt.Errorf("%s takes no argument, and %q is one", cmd.CommandPath(), args[0])
	}
	_, names, _ := strings.Cut(cmd.Use, " ")
	usage := strings.TrimSpace(cmd.CommandPath() + " " + names)
	positions := positional(names)
	if len(args) >= len(positions) {
		return fmt.Errorf("%s: %w; write: %s", cmd.CommandPath(), err, usage)
	}
	missing := positions[len(args)]
	text := fmt.Sprintf("%s: %s is missing; write: %s", cmd.CommandPath(), missing, usage)
	if list := argumentLists[strings.TrimSuffix(missing, "...")]; list != "" {
		text += fmt.Sprintf(" (%s lists them)", list)
	}
	return fmt.Errorf("%s", text)
}

// positional gives the arguments that have to be there, of the words behind a verb: those before the first that may be left out, or that
// is one of several.
func positional(names string) (arguments []string) {
	for name := range strings.FieldsSeq(names) {
		if strings.ContainsAny(name[:1], "[({-") {
			break
		}
		arguments = append(arguments, name)
	}
	return arguments
}
