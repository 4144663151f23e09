package verbs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/biztalk"
	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/verb"
)

// rolesFile is the file with the roles that hosts need, beside the definitions.
const rolesFile = "roles.sql"

// imported is the outcome of an import for programs; a stable format.
type imported struct {
	Definitions json.RawMessage    `json:"definitions,omitempty"`
	Variables   map[string]any     `json:"variables"`
	Files       []writtenFile      `json:"files,omitempty"`
	Roles       []biztalk.Role     `json:"roles"`
	LeftOut     []biztalk.Omission `json:"left_out"`
}

type importing struct {
	env      environment
	to       folder
	settings biztalk.Settings
}

func newImportCommand(env environment) *cobra.Command {
	i := &importing{env: env, settings: biztalk.Settings{Resolve: resolveBeside, Carry: carryBeside}}
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Make definitions of files of BizTalk Server",
		Long: `Make definitions of files of BizTalk Server: binding files, schemas with their promotions (.xsd), pipelines (.btp) and
orchestrations (.odx). Give all files of an application together, so that filters find their property schemas, and ports their
pipelines. No database is needed.

The definitions go to standard output as YAML that apply takes, or with --out into a file for each kind. What they leave out goes to
standard error: each with its place, why, and what to do instead. A port that would not do what it did is written, but does not run: a
location is disabled, a send port or orchestration bound. Secrets become references. --out writes the roles of the hosts into
roles.sql too.`,
		Example: `  parley flow import bindings.xml > orders.yaml
  parley flow import bindings.xml schemas/*.xsd pipelines/*.btp --out orders`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.run(func() (int, error) { return 0, i.run(cmd.OutOrStdout(), args) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&i.to.path, "out", "", "folder for the files, made if it is not there")
	flags.BoolVar(&i.to.overwrites, "force", false, "overwrite files that are there")
	flags.StringVar(&i.settings.Application, "application", "", "application of what belongs to none (default the first of the bindings)")
	return cmd
}

// resolveBeside reads a schema that another one includes from beside it.
func resolveBeside(from, location string) (name string, body []byte, err error) {
	name = filepath.Join(filepath.Dir(from), filepath.FromSlash(strings.ReplaceAll(location, `\`, "/")))
	body, err = os.ReadFile(name)
	return name, body, err
}

// carryBeside reads a schema with all that it includes below its folder.
func carryBeside(file string) (map[string]string, error) {
	return filesBeside(definitions.NamedFile{File: filepath.Base(file), Place: definitions.Place{File: file}})
}

func (i *importing) run(out io.Writer, names []string) error {
	sources := []biztalk.Source{}
	for _, name := range names {
		file, err := i.env.open(name)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(file)
		_ = file.Close() // it was only read
		if err != nil {
			return &fault.Fault{Message: err.Error(), Err: err, File: name, Remedy: "name a file that can be read"}
		}
		sources = append(sources, biztalk.Source{Name: name, Body: body})
	}
	result, err := biztalk.Import(sources, i.settings)
	if err != nil {
		return err
	}
	report := imported{
		Variables: result.Variables, Roles: append([]biztalk.Role{}, result.Roles...),
		LeftOut: append([]biztalk.Omission{}, result.Omissions...),
	}
	switch {
	case i.to.path != "":
		if report.Files, err = i.writeFiles(result); err != nil {
			return err
		}
	case i.env.JSON:
		report.Definitions = result.Definitions
	default:
		written, err := definitions.WriteWith(result.Definitions, result.Variables)
		if err != nil {
			return err
		}
		if _, err := out.Write(written); err != nil {
			return err
		}
	}
	if i.env.JSON {
		return verb.EncodeJSON(out, report)
	}
	for _, file := range report.Files {
		fmt.Fprintln(out, file.File)
	}
	return i.list(report)
}

func (i *importing) writeFiles(result *biztalk.Result) ([]writtenFile, error) {
	files, err := definitions.WriteEachWith(result.Definitions, result.Variables)
	if err != nil {
		return nil, err
	}
	if len(result.Roles) > 0 {
		files = append(files, definitions.File{Name: rolesFile, Written: []byte(statements(result.Roles))})
	}
	written := []writtenFile{}
	for _, file := range files {
		name, err := i.to.write(file.Name, file.Written)
		if err != nil {
			return nil, err
		}
		written = append(written, writtenFile{name, len(file.Written)})
	}
	return written, nil
}

// statements make the roles of hosts.
func statements(roles []biztalk.Role) string {
	text := strings.Builder{}
	for _, r := range roles {
		fmt.Fprintf(&text, "create role %s nologin; -- serves host %s\n", pgx.Identifier{r.Name}.Sanitize(), verb.OneLine(r.Host, 0))
	}
	return text.String()
}

// list prints what the definitions leave out, for people.
func (i *importing) list(report imported) error {
	stopped := 0
	text := strings.Builder{}
	for _, o := range report.LeftOut {
		fmt.Fprintf(&text, "%s\nHINT: %s\n", verb.OneLine(o.String(), 0), verb.OneLine(o.Instead, 0))
		if o.IsStopped {
			stopped++
		}
	}
	if len(report.LeftOut) > 0 {
		fmt.Fprintf(&text, "parley: the definitions leave out or change %s, %d of which stop what they belong to\n",
			verb.Counted(len(report.LeftOut), "thing"), stopped)
	}
	if len(report.Roles) > 0 && i.to.path == "" {
		fmt.Fprintf(&text, "parley: apply needs the roles of the hosts:\n%s", statements(report.Roles))
	}
	_, err := io.WriteString(i.env.Stderr, text.String())
	return err
}
