package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

// each calls visit with every command that people run; a group shows its commands instead.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Runnable() && !cmd.Hidden && !cmd.HasAvailableSubCommands() {
		visit(cmd)
	}
	for _, sub := range cmd.Commands() {
		each(sub, visit)
	}
}

func TestEachCommandShowsAnExample(t *testing.T) {
	t.Parallel()
	each(newRootCommand(&verb.App{}), func(cmd *cobra.Command) {
		if cmd.Example == "" || !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("the help of %s has no example of it", cmd.CommandPath())
		}
	})
}

// A terminal breaks a longer line wherever it ends. A list that its author laid out stays.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	each(newRootCommand(&verb.App{}), func(cmd *cobra.Command) {
		_, flags, _ := strings.Cut(cmd.UsageString(), "Flags:")
		for line := range strings.Lines(cmd.Long + flags) {
			isItem := !strings.Contains(flags, line) && strings.HasPrefix(line, " ")
			if width := len([]rune(strings.TrimRight(line, "\n"))); width > helpWidth && !isItem && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: %d characters: %s", cmd.CommandPath(), width, line)
			}
		}
	})
}
