package verbs

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/setup"
	"github.com/parley-broker/parley/internal/verb"
)

// wizardPreset is the name of the preset of a scenario that the wizard takes: it ends within minutes.
const wizardPreset = "wizard-"

// wizard checks the set-up, asks for a scenario, and measures it.
func (a *measuring) wizard(cmd *cobra.Command, given map[string]string, scenario string) error {
	if a.flags.preset != "" && scenario == "" {
		p, err := a.flags.find()
		if err != nil {
			return verb.AsUsage(err)
		}
		scenario = p.Scenario
	}
	if scenario == "" && a.JSON {
		return verb.Usagef("--json asks no question: name the scenario, as --scenario %s; there are %s", a.names()[0],
			strings.Join(a.names(), ", "))
	}
	if scenario == "" {
		if !a.isAsked() {
			return cmd.Help()
		}
		var err error
		if scenario, err = a.ask(cmd.Context()); err != nil {
			return err
		}
	}
	chosen := a.command(scenario)
	if chosen == nil {
		return verb.Usagef("scenario %q is unknown: there are %s", scenario, strings.Join(a.names(), ", "))
	}
	for name, value := range given {
		flag := chosen.Flags().Lookup(name)
		if flag == nil {
			return verb.Usagef("parley bench %s has no --%s", scenario, name)
		}
		if err := chosen.Flags().Set(name, value); err != nil {
			return verb.AsUsage(err)
		}
	}
	chosen.SetContext(cmd.Context())
	chosen.SetOut(cmd.OutOrStdout())
	if a.flags.preset == "" {
		a.flags.preset = wizardPreset + scenario
		if _, err := a.flags.find(); err != nil {
			a.flags.preset = ""
		}
	}
	return chosen.RunE(chosen, nil)
}

// isAsked reports whether somebody sits before a terminal.
func (a *measuring) isAsked() bool {
	in, is := a.Stdin.(*os.File)
	if !is || a.JSON {
		return false
	}
	info, err := in.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && verb.IsTerminal(a.Stderr)
}

// ask shows the set-up and gives the scenario that somebody chose.
func (a *measuring) ask(ctx context.Context) (string, error) {
	conn, err := a.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer verb.CloseConnection(ctx, conn)
	present.Prose(a.Stderr, "", "Parley's benchmark wizard. It measures in databases of its own, which it drops; Ctrl-C ends it and "+
		"leaves nothing.")
	fmt.Fprintf(a.Stderr, "\nChecking the set-up; the storage takes %s\n", a.flags.sync)
	if a.flags.checks, err = setup.Checks(ctx, conn, a.flags.sync); err != nil {
		return "", err
	}
	present.Setup(a.Stderr, a.flags.checks)
	fmt.Fprintln(a.Stderr, "\nWhat shall be measured?")
	names := a.names()
	longest := 0
	for _, name := range names {
		longest = max(longest, len(name))
	}
	for i, name := range names {
		short := strings.TrimPrefix(a.command(name).Short, "Measure ")
		fmt.Fprintln(a.Stderr, fitted(fmt.Sprintf("  %2d  %-*s  %s", i+1, longest, name, short), widthOf(a.Stderr)))
	}
	return a.choose(ctx, names)
}

// choose asks until the answer is a number or a name of the list; an empty one is the first.
func (a *measuring) choose(ctx context.Context, names []string) (string, error) {
	asker := verb.Asker{In: a.Stdin, Out: a.Stderr}
	for {
		answer, err := asker.Question(ctx, fmt.Sprintf("Number or name [%s]:", names[0]))
		if err != nil {
			return "", err
		}
		if answer == "" {
			return names[0], nil
		}
		if number, err := strconv.Atoi(answer); err == nil && number >= 1 && number <= len(names) {
			return names[number-1], nil
		}
		for _, name := range names {
			if name == answer {
				return name, nil
			}
		}
		fmt.Fprintf(a.Stderr, "There is no %q.\n", answer)
	}
}

// names are those of the scenarios.
func (a *measuring) names() (names []string) {
	for _, scenario := range a.scenarios {
		names = append(names, scenario.Name())
	}
	return names
}

func (a *measuring) command(name string) *cobra.Command {
	for _, scenario := range a.scenarios {
		if scenario.Name() == name {
			return scenario
		}
	}
	return nil
}
