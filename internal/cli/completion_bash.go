package cli

import (
	_ "embed"
	"fmt"

	"github.com/spf13/cobra"
)

// bareBash defines what the script of completion takes from the package bash-completion, for shells without it.
//
//go:embed completion_bare.bash
var bareBash string

// completeInBareBash puts these functions in front of the script that parley completion bash prints.
func completeInBareBash(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash == root {
		panic("there is no command completion bash")
	}
	inner := bash.RunE
	bash.Long = `Print the completion for bash. The package bash-completion is not needed.

In this shell:              source <(parley completion bash)
In every new one:           parley completion bash > ~/.parley-completion; echo 'source ~/.parley-completion' >> ~/.bashrc
With bash-completion, too:  parley completion bash > /etc/bash_completion.d/parley`
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := fmt.Fprint(cmd.Root().OutOrStdout(), bareBash); err != nil {
			return err
		}
		return inner(cmd, args)
	}
}
