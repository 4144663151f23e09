package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/mapping"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

type application struct {
	env           environment
	dryRun, prune bool
	environment   string
	set           []string
	unchecked     bool          // maps are not compiled here
	maps          *mapping.Pool // nil: they are not compiled
}

func newApplyCommand(env environment) *cobra.Command {
	a := &application{env: env}
	cmd := &cobra.Command{
		Use:   "apply DIR|FILE...",
		Short: "Make the definitions of integration what files say",
		Long: `Make the definitions what files of YAML or JSON say: ports, pipelines, message types, filters. All files together are one
document of {kind: {name: settings}}, which is applied in one transaction, or not at all. Of a folder all files that end in .yaml, .yml
and .json are read; - is standard input. Hosts use it at once for what begins then.

Schemas that message types name are read beside the definitions, with all files that they name, and go into the database with them:
hosts need no files. Everything that is wrong is reported with its file, line and column, and nothing is changed. You need the right
ADMINISTER.`,
		Example: `  parley flow apply flow --dry-run
  parley flow apply flow --environment production
  parley flow apply orders.yaml --set ERP_HOST=erp.example`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.env.reportFaults(a.run(cmd.Context(), cmd.OutOrStdout(), args))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&a.dryRun, "dry-run", false, "show what would change, and change nothing")
	flags.BoolVar(&a.unchecked, "unchecked-maps", false, "do not compile maps here: the nodes have the worker for stylesheets")
	flags.BoolVar(&a.prune, "prune", false, "drop what the files do not name, of the applications that they name")
	a.addVariables(cmd)
	return cmd
}

// addVariables adds the flags that give variables values.
func (a *application) addVariables(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.environment, "environment", "", "take the values of variables from environments/NAME.yaml")
	flags.StringArrayVar(&a.set, "set", nil, "give a variable a value, as NAME=VALUE; may be given several times")
}

// read reads the files. Faults in them are no error: the document has what could be read, and the rest of it is checked too.
func (a *application) read(args []string) (*definitions.Document, definitions.Faults, error) {
	settings := definitions.Settings{Set: map[string]string{}}
	for _, set := range a.set {
		name, text, isSet := strings.Cut(set, "=")
		if !isSet {
			return nil, nil, verb.Usagef("--set %q: give NAME=VALUE", set)
		}
		settings.Set[name] = text
	}
	if strings.ContainsAny(a.environment, `/\`) {
		return nil, nil, verb.Usagef("--environment %q: give the name of a file in environments, without .yaml", a.environment)
	}
	sources, err := definitions.Find(args, a.env.Stdin)
	if err != nil {
		return nil, nil, err
	}
	if a.environment != "" {
		if settings.Environment, err = definitions.FindEnvironment(args, a.environment); err != nil {
			return nil, nil, err
		}
	}
	document, err := definitions.Read(sources, settings)
	faults, are := errors.AsType[definitions.Faults](err)
	if err != nil && !are {
		return nil, nil, err
	}
	return document, append(faults, carryFiles(document)...), nil
}

// readWhole reads files that must have no faults.
func (a *application) readWhole(args []string) (*definitions.Document, error) {
	document, faults, err := a.read(args)
	if err == nil && len(faults) > 0 {
		err = faults.Sorted()
	}
	return document, err
}

func (a *application) run(ctx context.Context, out io.Writer, args []string) error {
	document, faults, err := a.read(args)
	if err != nil {
		return err
	}
	written, err := document.JSON()
	if err != nil {
		return err
	}
	if !a.unchecked {
		a.maps = mapping.NewPool(mapping.PoolConfig{})
		defer a.maps.Close()
	}
	err = a.env.WithConnection(ctx, func(conn *pgx.Conn) error {
		var err error
		if faults, err = a.check(ctx, conn, document, written, faults); err != nil || len(faults) > 0 {
			return err
		}
		changes, err := a.apply(ctx, conn, document, written)
		if err != nil {
			return err
		}
		if a.env.JSON {
			return verb.EncodeJSON(out, append([]flowstore.Change{}, changes...))
		}
		return writeChanges(out, changes)
	})
	if len(faults) > 0 { // also where the database could not be asked
		return faults.Sorted()
	}
	return err
}

// placed gives faults that the database found their places in the files.
func placed(document *definitions.Document, found []flowstore.Fault) definitions.Faults {
	faults := definitions.Faults{}
	for _, f := range found {
		fault := definitions.Fault{Place: document.Locate(f.Path), Path: f.Path, Message: f.Message, Remedy: f.Remedy}
		if f.Cause != nil {
			fault.Message += ". " + *f.Cause
		}
		faults = append(faults, fault)
	}
	return faults
}

// reportFaults prints all that is wrong with definitions; for programs a line of JSON each.
func (env environment) reportFaults(err error) error {
	faults, are := errors.AsType[definitions.Faults](err)
	if !are {
		return err
	}
	env.printFaults(faults)
	if !env.JSON {
		fmt.Fprintf(env.Stderr, "parley: the definitions have %s; nothing was changed\n", verb.Counted(len(faults), "fault"))
	}
	return verb.ExitWith(nil, exitFailed)
}

func (env environment) printFaults(faults definitions.Faults) {
	encoder := json.NewEncoder(env.Stderr)
	encoder.SetEscapeHTML(false)
	for _, f := range faults {
		if env.JSON {
			_ = encoder.Encode(f) // a broken stderr has nowhere to be reported
			continue
		}
		fmt.Fprintf(env.Stderr, "%s\nHINT: %s\n", verb.OneLine(f.Error(), 0), verb.OneLine(f.Remedy, 0))
	}
}

func writeChanges(out io.Writer, changes []flowstore.Change) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(out, "nothing changes")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "ACTION\tKIND\tNAME\tSETTING\tOLD\tNEW")
	for _, c := range changes {
		was, is := changed(string(c.Old), string(c.New))
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Action, c.Kind, verb.OneLine(c.Name, 0), verb.OrNone(verb.OrEmpty(c.Setting)),
			verb.OneLine(was, verb.BodyWidth), verb.OneLine(is, verb.BodyWidth))
	}
	return table.Flush()
}

// changed gives two values as a line shows them: those that are long from a little before the place at which they begin to differ.
func changed(was, is string) (shownWas, shownIs string) {
	if max(len(was), len(is)) <= verb.BodyWidth {
		return was, is
	}
	same := 0
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	from := same - verb.BodyWidth/3
	if from <= 0 {
		return was, is
	}
	for !utf8.RuneStart(was[from]) {
		from--
	}
	return "…" + was[from:], "…" + is[from:]
}
