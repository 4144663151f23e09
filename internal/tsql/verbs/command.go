// Package verbs is the command parley tsql.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/verb"
)

// runOptions are the flags of a run.
type runOptions struct {
	files     []string
	variables []string
	stops     bool
	checks    bool
}

// New makes the command that runs scripts of T-SQL.
func New(a *verb.App) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "tsql [-f FILE]... | --check FILE...",
		Short: "Run scripts of T-SQL as sqlcmd does, or check them",
		Long: `Run scripts of T-SQL: batches that GO separates, with the messages, result sets and errors that SQL Server gives.
Without -f the script comes from standard input.

With --check nothing runs and no database is needed: each file is listed with what it uses and what is refused, with
reason and line. The exit code is 1 where something is refused or does not run yet.`,
		Example: `  parley tsql -f install.sql -f test.sql
  parley tsql -v Database=shop -b -f install.sql
  parley tsql --check install.sql procedures.sql`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			options, err := o.ofScripts()
			switch {
			case err != nil:
				return err
			case o.checks:
				return checkFiles(a, append(o.files, files...), options)
			case len(files) > 0:
				return verb.Usagef("%s: name a script to run by -f, or give --check", files[0])
			}
			return runScripts(cmd.Context(), a, o.files, options)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "file", "f", nil, "run this script; - is standard input")
	flags.StringArrayVarP(&o.variables, "variable", "v", nil, "NAME=VALUE of $(NAME) in the script")
	flags.BoolVarP(&o.stops, "stop-on-error", "b", false, "stop at the first batch with an error, with exit code 1")
	flags.BoolVar(&o.checks, "check", false, "list what the files use and what is refused, and run nothing")
	return cmd
}

// ofScripts gives the flags in the form in which scripts are read.
func (o *runOptions) ofScripts() (script.Options, error) {
	variables := map[string]string{}
	for _, v := range o.variables {
		name, value, found := strings.Cut(v, "=")
		if !found || name == "" {
			return script.Options{}, verb.Usagef("-v %q is no NAME=VALUE", v)
		}
		variables[name] = strings.Trim(value, "\"")
	}
	return script.Options{Variables: variables, Environment: os.LookupEnv, Read: readBeside, StopOnError: o.stops}, nil
}

// errStopped says that a batch had an error, and that the script asked to stop there. The error was printed already.
var errStopped = errors.New("a batch failed")

func runScripts(ctx context.Context, a *verb.App, files []string, options script.Options) (err error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	db := connection.New(a.ConnectTo)
	id, err := identity(ctx, a)
	if err != nil {
		return err
	}
	s := interpreter.New(id, nil, db)
	defer func() {
		if closed := s.Close(context.WithoutCancel(ctx)); err == nil && closed != nil {
			err = fmt.Errorf("closing the session: %w", closed)
		}
	}()
	text := session.NewTextSink(a.Stdout)
	text.Server = id.Server
	counted := &failures{Sink: text}
	if a.JSON {
		counted.Sink = session.NewJSONSink(a.Stdout)
	}
	for _, file := range files {
		if err := runFile(ctx, a, s, counted, file, options); err != nil {
			if errors.Is(err, errStopped) {
				return verb.ExitWith(nil, 1)
			}
			return err
		}
	}
	return nil
}

// identity has the role and the database that the command line names, and the user of this process where it names none: a script
// without tables starts no server.
func identity(ctx context.Context, a *verb.App) (interpreter.Identity, error) {
	id := interpreter.Identity{User: "dbo", Program: "parley", Process: 51}
	if u, err := user.Current(); err == nil {
		id.Login = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		id.Host, id.Server = host, host
	}
	if !a.NamesDatabase() {
		return id, nil
	}
	dsn, err := a.ResolveDSN(ctx)
	if err != nil {
		return id, err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return id, a.BadDSN(err)
	}
	id.Login, id.User, id.Database = config.User, config.User, config.Database
	return id, nil
}

// readBeside reads a file that :r names: its path is relative to that of the file with the :r, and may have backslashes.
func readBeside(from, name string) (path string, content []byte, err error) {
	path = filepath.FromSlash(strings.ReplaceAll(name, `\`, "/"))
	if !filepath.IsAbs(path) && from != "" {
		path = filepath.Join(filepath.Dir(from), path)
	}
	content, err = os.ReadFile(path)
	return path, content, err
}

// failures counts the errors that pass to a sink.
type failures struct {
	session.Sink
	count int
}

// Message counts an error.
func (f *failures) Message(m *fault.Error) error {
	if !m.IsInformational() {
		f.count++
	}
	return f.Sink.Message(m)
}

func runFile(ctx context.Context, a *verb.App, s session.Session, sink *failures, file string, o script.Options) error {
	content, err := readScript(a, file)
	if err != nil {
		return err
	}
	if file == "-" {
		file = ""
	}
	text, _ := script.Decode(content)
	for batch, err := range script.Batches(file, text, o) {
		if fault, is := errors.AsType[*script.Error](err); is {
			return verb.WithHint(err, fault.Hint)
		}
		if err != nil {
			return err
		}
		for range batch.Count {
			before := sink.count
			if err := s.Run(ctx, batch.Text, sink); err != nil {
				return err
			}
			if batch.StopOnError && sink.count > before {
				return errStopped
			}
		}
	}
	return nil
}
