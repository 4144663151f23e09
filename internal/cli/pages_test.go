package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
)

var (
	// invocation is a command line of ours in a page: in a block of code, or between backticks.
	invocation = regexp.MustCompile("(?:^|[`$ (;|&])parley ([a-z][^`|;&)]*)")
	flagName   = regexp.MustCompile(`^--?([a-z][a-z-]*)`)
)

// written gives the command lines of a page.
func written(text string) (lines []string) {
	isCode := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			isCode = !isCode
			continue
		}
		if isCode {
			lines = append(lines, line)
			continue
		}
		// Outside of a block only what stands between backticks is code.
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 {
				lines = append(lines, part)
			}
		}
	}
	return lines
}

func TestThePagesNameCommandsAndFlagsThatExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands, flags := 0, 0
	for _, name := range append(pages, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range written(string(text)) {
			for _, found := range invocation.FindAllStringSubmatch(line, -1) {
				if strings.HasPrefix(found[1], "is ") { // a message that begins with the schema's name
					continue
				}
				cmd, rest := commandOf(rootWithCompletion(), strings.Fields(found[1]))
				if cmd == nil {
					t.Errorf("%s: %q names no command", filepath.Base(name), line)
					continue
				}
				commands++
				for _, word := range rest {
					flag := flagName.FindStringSubmatch(word)
					if word == "--" {
						break
					}
					if flag == nil || strings.HasSuffix(word, "...") {
						continue
					}
					flags++
					if !hasFlag(cmd, flag[1]) {
						t.Errorf("%s: %q: %s has no flag %s", filepath.Base(name), line, cmd.CommandPath(), word)
					}
				}
			}
		}
	}
	if commands < 100 || flags < 100 {
		t.Errorf("the pages have %d commands and %d flags", commands, flags)
	}
}

// Hints, remedies and comments of the schema send people to commands; what follows the name of a group of commands is one of its own.
func TestTheSchemaNamesCommandsThatExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`\bparley ((?:[a-z][a-z-]* ?)+)`)
	root, found := rootWithCompletion(), 0
	err := filepath.WalkDir(filepath.Join("..", "..", "sql"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sql" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			cmd, rest := commandOf(root, strings.Fields(match[1]))
			if cmd == nil || match[1] == "flow calls it" { // a sentence about the program
				continue
			}
			found++
			if cmd.HasAvailableSubCommands() && len(rest) > 0 && !strings.HasPrefix(cmd.Use, cmd.Name()+" ") {
				t.Errorf("%s: parley %s: %s has no command %s", path, match[1], cmd.CommandPath(), rest[0])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("the schema names %d commands", found)
	}
}

// commandOf finds the command that words begin with, and gives what follows; nil when the first is none.
func commandOf(root *cobra.Command, words []string) (*cobra.Command, []string) {
	cmd := root
	for len(words) > 0 {
		next := (*cobra.Command)(nil)
		for _, sub := range cmd.Commands() {
			if sub.Name() == strings.TrimRight(words[0], ",.:") || sub.HasAlias(words[0]) {
				next = sub
			}
		}
		if next == nil {
			break
		}
		cmd, words = next, words[1:]
	}
	if cmd == root {
		return nil, nil
	}
	return cmd, words
}

func hasFlag(cmd *cobra.Command, name string) bool {
	if len(name) == 1 {
		return cmd.Flags().ShorthandLookup(name) != nil || cmd.InheritedFlags().ShorthandLookup(name) != nil || name == "h"
	}
	return cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil || name == "help"
}

// rootWithCompletion has the command that Cobra adds when a command line is run.
func rootWithCompletion() *cobra.Command {
	root := newRootCommand(&verb.App{})
	root.InitDefaultCompletionCmd()
	return root
}
