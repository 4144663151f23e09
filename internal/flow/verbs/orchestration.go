package verbs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/process"
)

// orchestrated gives an orchestration of files of definitions, and the whole of these.
func (a *application) orchestrated(args []string, name string) (*process.Program, json.RawMessage, error) {
	document, err := a.readWhole(args)
	if err != nil {
		return nil, nil, err
	}
	written, err := document.JSON()
	if err != nil {
		return nil, nil, err
	}
	known, err := process.KnownOf(written)
	if err != nil {
		return nil, nil, err
	}
	names := slices.Sorted(maps.Keys(known.Orchestrations))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	definition, isThere := known.Orchestrations[name]
	if !isThere {
		return nil, nil, noSuch("orchestration", name, names)
	}
	program, problems := process.Compile(name, definition, known)
	if len(problems) > 0 {
		faults := definitions.Faults{}
		for _, p := range problems {
			faults = append(faults, definitions.Fault{Place: document.Locate(p.Path), Path: p.Path, Message: p.Message, Remedy: p.Remedy})
		}
		return nil, nil, faults.Sorted()
	}
	return program, written, nil
}

func newOrchestrationCommand(env environment) *cobra.Command {
	a, name, page := &application{env: env}, "", ""
	cmd := &cobra.Command{
		Use:   "orchestration DIR|FILE...",
		Short: "Check an orchestration of files, and draw it",
		Long: `Check an orchestration of files of definitions without a database, and draw it as a page of HTML that asks for nothing from
elsewhere. All that is wrong is reported with file, line and column.`,
		Example: `  parley flow orchestration flow --name Fulfil --html fulfil.html`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			program, _, err := a.orchestrated(args, name)
			if err != nil {
				return env.reportOffline(err)
			}
			if page == "" {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "orchestration %s is right\n", program.Name())
				return err
			}
			_, err = folder{overwrites: true}.write(page, program.Page(nil, nil, nil))
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "which one, where there are several")
	cmd.Flags().StringVar(&page, "html", "", "file for the picture")
	a.addVariables(cmd)
	return cmd
}
