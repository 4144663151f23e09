package verbs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

//go:embed presets.json
var ownPresets []byte

// preset is settings of a scenario under a name, with what the figures have to keep.
type preset struct {
	Name     string            `json:"name"`
	Short    string            `json:"short"`
	Scenario string            `json:"scenario"`
	Flags    map[string]string `json:"flags,omitempty"`
	// Limits replace those that figures have of their own, by the names of figures; one of nothing is none.
	Limits map[string]record.Limit `json:"limits,omitempty"`
}

// presetsOf reads the presets of the program, and then those of a file, of which one with the same name counts.
func presetsOf(path string) ([]preset, error) {
	var all []preset
	if err := json.Unmarshal(ownPresets, &all); err != nil {
		return nil, fmt.Errorf("read the presets of the program: %w", err)
	}
	if path == "" {
		return all, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read presets: %w", err)
	}
	var given []preset
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("%s: presets are a list of objects with name, scenario, flags and limits: %w", path, err)
	}
	for _, p := range given {
		if p.Name == "" || p.Scenario == "" {
			return nil, fmt.Errorf("%s: a preset has a name and a scenario", path)
		}
		all = slices.DeleteFunc(all, func(other preset) bool { return other.Name == p.Name })
		all = append(all, p)
	}
	return all, nil
}

// find gives the preset that was asked for.
func (f *frame) find() (preset, error) {
	all, err := presetsOf(f.presets)
	if err != nil {
		return preset{}, err
	}
	var names []string
	for _, p := range all {
		if p.Name == f.preset {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return preset{}, fmt.Errorf("preset %q is unknown: there are %s", f.preset, strings.Join(names, ", "))
}

// applyPreset sets the flags of the preset that the user has not set, and gives its limits.
func (f *frame) applyPreset(cmd *cobra.Command) (map[string]record.Limit, error) {
	if f.preset == "" {
		return nil, nil
	}
	p, err := f.find()
	if err != nil {
		return nil, err
	}
	if p.Scenario != cmd.Name() {
		return nil, fmt.Errorf("preset %s is for parley bench %s", p.Name, p.Scenario)
	}
	return p.Limits, setFlags(cmd, p.Flags)
}

// setFlags sets flags that the user has not set.
func setFlags(cmd *cobra.Command, values map[string]string) error {
	for name, value := range values {
		flag := cmd.Flag(name)
		if flag == nil {
			return fmt.Errorf("parley bench %s has no --%s", cmd.Name(), name)
		}
		if flag.Changed {
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// repeated are the flags that a run is repeated with; where it is, and where its results go, is for whoever repeats it.
var repeated = []string{
	"preset", "variant", "system", "sessions", "conversations", "size", "batch", "messages", "rows", "rate", "senders", "readers",
	"connections",
	"workers", "duration", "warm-up", "repeat", "try",
	"initiators", "threads", "sizes", "dialogs", "all", "versions", "documents", "processes", "large-mb",
}

// flagsGiven are the flags that the user has set, as words.
func flagsGiven(cmd *cobra.Command) (words []string) {
	for _, name := range repeated {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
			words = append(words, "--"+name+"="+strings.Trim(flag.Value.String(), "[]"))
		}
	}
	return words
}

func newPresetsCommand(a *measuring) *cobra.Command {
	return &cobra.Command{
		Use:     "presets",
		Example: "  parley bench presets",
		Short:   "List presets: settings and limits of scenarios under a name",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := presetsOf(a.flags.presets)
			if err != nil {
				return verb.AsUsage(err)
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), all)
			}
			return listPresets(cmd.OutOrStdout(), all)
		},
	}
}

func listPresets(out io.Writer, all []preset) error {
	table := verb.NewTable(out)
	fmt.Fprintln(table, "preset\tscenario\tfor")
	for _, p := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Name, p.Scenario, p.Short)
	}
	return table.Flush()
}
