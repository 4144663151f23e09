package verbs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/definitions"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// completeApplications lists the applications.
const completeApplications verb.Completer = `select d.name from parley_flow.definitions as d where d.kind = 'application' order by d.name`

// writtenFile is a file that export --out names to programs; a stable format.
type writtenFile struct {
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
}

func newExportCommand(env environment) *cobra.Command {
	to := folder{}
	cmd := &cobra.Command{
		Use:   "export [APPLICATION]",
		Short: "Write the definitions of integration as YAML that apply takes",
		Long: `Write the definitions as YAML, those of one application or all: settings as they were given, and states as they are. Secrets are
references, as they were applied. Hosts and retry policies belong to no application: those that it uses come with it. The definitions go to
standard output, or with --out into a file for each kind, with their schemas beside them. You need the right VIEW.`,
		Example: `  parley flow export > flow.yaml
  parley flow export Orders --out orders`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				exported, err := flowstore.Export(ctx, conn, name)
				if err != nil {
					return err
				}
				switch {
				case name != "" && string(exported) == "{}":
					return fmt.Errorf("there is no application %q: parley flow export writes all", name)
				case to.path != "":
					return exportInto(env, cmd, to, exported)
				case env.JSON:
					return verb.EncodeJSON(cmd.OutOrStdout(), exported)
				}
				written, err := definitions.Write(exported)
				if err == nil {
					_, err = cmd.OutOrStdout().Write(written)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&to.path, "out", "", "folder for the files, made if it is not there")
	cmd.Flags().BoolVar(&to.overwrites, "force", false, "overwrite files that are there")
	env.CompleteArgument(cmd, completeApplications, 1)
	return cmd
}

func exportInto(env environment, cmd *cobra.Command, to folder, exported []byte) error {
	files, err := definitions.WriteEach(exported)
	if err != nil {
		return err
	}
	written := []writtenFile{}
	for _, file := range files {
		name, err := to.write(file.Name, file.Written)
		if err != nil {
			return err
		}
		written = append(written, writtenFile{name, len(file.Written)})
		if !env.JSON {
			fmt.Fprintln(cmd.OutOrStdout(), name)
		}
	}
	if env.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), written)
	}
	return nil
}

// folder is where files are written, and whether over those that are there.
type folder struct {
	path       string
	overwrites bool
}

// write writes a file, for its owner's eyes alone, and gives its path.
func (f folder) write(name string, content []byte) (string, error) {
	path := filepath.Join(f.path, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make the folder: %w", err)
	}
	how := os.O_EXCL
	if f.overwrites {
		how = os.O_TRUNC
	}
	file, err := os.OpenFile(path, os.O_CREATE|how|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("%s exists already: name another folder by --out, or overwrite it by --force", path)
	case err != nil:
		return "", fmt.Errorf("make the file: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return path, nil
}

func newSchemaCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of definitions, by which editors complete and check them",
		Long: `Print the JSON Schema of files of definitions, made from the settings that this database knows. An editor with the YAML language
server uses it for a file that begins with "# yaml-language-server: $schema=flow.schema.json".`,
		Example: `  parley flow schema > flow.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error {
				found, err := flowstore.Settings(ctx, conn)
				if err != nil {
					return err
				}
				settings := []definitions.Setting{}
				for _, s := range found {
					settings = append(settings, definitions.Setting{
						Kind: s.Kind, Name: s.Name, Type: s.Type, IsRequired: s.IsRequired, Default: s.Default, Lowest: s.Lowest, Highest: s.Highest,
						Choices: s.Choices, Description: s.Description,
					})
				}
				written, err := definitions.JSONSchema(settings)
				if err == nil {
					_, err = cmd.OutOrStdout().Write(written)
				}
				return err
			})
		},
	}
}
