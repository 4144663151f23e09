// Package verbs is the command parley tsql.
package verbs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/tsql/script"
	"github.com/parley-broker/parley/internal/verb"
)

// New makes the command that runs scripts of T-SQL.
func New(a *verb.App) *cobra.Command {
	o := runOptions{format: newFormat()}
	cmd := &cobra.Command{
		Use:   "tsql [-f FILE]... | -Q QUERY | --check FILE...",
		Short: "Run T-SQL as sqlcmd does, at a prompt or from scripts, or check scripts",
		Long: `Run T-SQL: batches that GO separates, with the messages, result sets and errors that SQL Server gives.
On a terminal there is a prompt; without a terminal, -f and -Q the script comes from standard input. The options are those of
sqlcmd; docs/tsql/sqlcmd.md lists what differs.

With --check nothing runs and no database is needed: each file is listed with what it uses and what is refused, with
reason and line. The exit code is 1 where something is refused or does not run yet.`,
		Example: `  parley tsql
  parley tsql -f install.sql -f test.sql
  parley tsql -v Database=shop -b -f install.sql
  parley tsql -W -s, -h-1 -Q "SELECT name FROM sys.service_queues"
  parley tsql --check install.sql procedures.sql`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, files []string) error {
			// sqlcmd takes several variables behind one -v.
			files = slices.DeleteFunc(files, func(word string) bool {
				isVariable := len(o.variables) > 0 && strings.Contains(word, "=")
				if isVariable {
					o.variables = append(o.variables, word)
				}
				return isVariable
			})
			if err := o.validate(cmd.Flags().Changed); err != nil {
				return err
			}
			switch {
			case o.checks:
				return checkFiles(a, append(o.files, files...), o.ofCheck())
			case len(files) > 0:
				return verb.Usagef("%s: name a script to run by -f, or give --check", files[0])
			}
			return run(cmd.Context(), a, &o)
		},
	}
	o.define(cmd)
	return cmd
}

// ofCheck gives the options by which scripts are read and not run.
func (o *runOptions) ofCheck() script.Options {
	options := o.ofScripts()
	options.Command = func(script.Command) error { return nil }
	return options
}
