package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpWidth is how many characters a line of help has at most: those of a terminal that nobody has made wider.
const helpWidth = 80

// fitHelp fills the help of a command and of those below it to the width of a terminal: texts, and flags with what they are for.
func fitHelp(cmd *cobra.Command) {
	cmd.Long = filled(cmd.Long)
	for _, sub := range cmd.Commands() {
		fitHelp(sub)
	}
}

// fitFlags fits the flags, in the template of the usage, which all commands inherit. The library lets a line be five characters longer
// than it is told, rather than leave one word for the next.
func fitFlags(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", ".LocalFlags.FlagUsagesWrapped 75",
		".InheritedFlags.FlagUsages", ".InheritedFlags.FlagUsagesWrapped 75",
	).Replace(root.UsageTemplate()))
}

// filled breaks the lines of each paragraph anew. Those that are indented are a list or an example, and stay.
func filled(text string) string {
	var all, words []string
	flush := func() {
		for len(words) > 0 {
			line := words[0]
			for words = words[1:]; len(words) > 0 && utf8.RuneCountInString(line+words[0]) < helpWidth; words = words[1:] {
				line += " " + words[0]
			}
			all = append(all, line)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && !strings.HasPrefix(line, " ") {
			words = append(words, strings.Fields(line)...)
			continue
		}
		flush()
		all = append(all, line)
	}
	flush()
	return strings.Join(all, "\n")
}
