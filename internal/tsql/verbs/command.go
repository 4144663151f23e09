// Package verbs is the command parley tsql.
package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

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
}

// New makes the command that runs scripts of T-SQL.
func New(a *verb.App) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "tsql [-f FILE]...",
		Short: "Run scripts of T-SQL as sqlcmd does",
		Long: `Run scripts of T-SQL: batches that GO separates, with the messages, result sets and errors that SQL Server gives.
Without -f the script comes from standard input.`,
		Example: `  parley tsql -f install.sql -f test.sql
  parley tsql -v Database=shop -b -f install.sql`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runScripts(cmd.Context(), a, o) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "file", "f", nil, "run this script; - is standard input")
	flags.StringArrayVarP(&o.variables, "variable", "v", nil, "NAME=VALUE of $(NAME) in the script")
	flags.BoolVarP(&o.stops, "stop-on-error", "b", false, "stop at the first batch with an error, with exit code 1")
	return cmd
}

// errStopped says that a batch had an error, and that the script asked to stop there. The error was printed already.
var errStopped = errors.New("a batch failed")

func runScripts(ctx context.Context, a *verb.App, o runOptions) (err error) {
	variables := map[string]string{}
	for _, v := range o.variables {
		name, value, found := strings.Cut(v, "=")
		if !found || name == "" {
			return verb.Usagef("-v %q is no NAME=VALUE", v)
		}
		variables[name] = strings.Trim(value, "\"")
	}
	if len(o.files) == 0 {
		o.files = []string{"-"}
	}
	db := connection.New(a.ConnectTo)
	s := interpreter.New(identity(), nil, db)
	defer func() {
		if closed := s.Close(context.WithoutCancel(ctx)); err == nil && closed != nil {
			err = fmt.Errorf("closing the session: %w", closed)
		}
	}()
	text := session.NewTextSink(a.Stdout)
	text.Server = identity().Server
	counted := &failures{Sink: text}
	if a.JSON {
		counted.Sink = session.NewJSONSink(a.Stdout)
	}
	for _, file := range o.files {
		if err := runFile(ctx, a, s, counted, file, script.Options{
			Variables: variables, Environment: os.LookupEnv, Read: readBeside, StopOnError: o.stops,
		}); err != nil {
			if errors.Is(err, errStopped) {
				return verb.ExitWith(nil, 1)
			}
			return err
		}
	}
	return nil
}

// identity is the user of this process: without a database there is no other.
func identity() interpreter.Identity {
	id := interpreter.Identity{User: "dbo", Program: "parley", Process: 51}
	if u, err := user.Current(); err == nil {
		id.Login = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		id.Host, id.Server = host, host
	}
	return id
}

// readBeside reads a file that :r names: its path is relative to that of the file with the :r.
func readBeside(from, name string) (path string, content []byte, err error) {
	path = name
	if !filepath.IsAbs(name) && from != "" {
		path = filepath.Join(filepath.Dir(from), name)
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
	var content []byte
	var err error
	if file == "-" {
		file = ""
		content, err = io.ReadAll(a.Stdin)
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	text, _ := script.Decode(content)
	for batch, err := range script.Batches(file, text, o) {
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
