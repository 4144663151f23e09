package verb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
)

// usageError marks a mistake in the command line that only the verb itself could see.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef is for verbs: the command line asks for something that cannot be.
func Usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// AsUsage says that of an error.
func AsUsage(err error) error { return usageError{err} }

// IsUsage reports whether an error is a mistake in the command line.
func IsUsage(err error) bool {
	_, ok := errors.AsType[usageError](err)
	return ok
}

// ExitUsage is the exit code of a command line that is not understood.
const ExitUsage = 2

// exitError gives a verb an exit code of its own. An error inside it is reported like any other.
type exitError struct {
	error
	code int
}

func (e exitError) Unwrap() error { return e.error }

// ExitWith gives an error, which may be nil, an exit code.
func ExitWith(err error, code int) error { return exitError{err, code} }

// hintedError is an error with advice, which is shown like a hint of PostgreSQL.
type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }

// WithHint gives an error advice.
func WithHint(err error, hint string) error { return hintedError{err, hint} }

// Report prints what went wrong in a command, with what PostgreSQL adds to it, and returns the exit code.
func (a *App) Report(cmd *cobra.Command, err error) int {
	if err == nil {
		return 0
	}
	exit, hasCode := errors.AsType[exitError](err)
	if hasCode && exit.error == nil {
		return exit.code
	}
	fmt.Fprintf(a.Stderr, "parley: %s\n", inWords(err))
	if _, explained := errors.AsType[*connectionError](err); explained {
		if hasCode {
			return exit.code
		}
		return 1
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		if pgErr.Detail != "" {
			fmt.Fprintf(a.Stderr, "DETAIL: %s\n", pgErr.Detail)
		}
		if pgErr.Hint != "" {
			fmt.Fprintf(a.Stderr, "HINT: %s\n", InVerbs(pgErr.Hint))
		}
		if isOfPooler(pgErr) {
			fmt.Fprintf(a.Stderr, "DETAIL: That is the answer of a pooler in place of PostgreSQL.\nHINT: To find out why, %s.\n",
				poolerRemedy(pgErr.Message))
		}
	}
	if hinted, ok := errors.AsType[hintedError](err); ok {
		fmt.Fprintf(a.Stderr, "HINT: %s\n", hinted.hint)
	}
	if hasCode {
		return exit.code
	}
	var usage usageError
	if errors.As(err, &usage) || !a.VerbReached {
		what := "its arguments and flags"
		if cmd.HasSubCommands() {
			what = "the commands and flags"
		}
		fmt.Fprintf(a.Stderr, "Run '%s --help' for %s.\n", cmd.CommandPath(), what)
		return ExitUsage
	}
	return 1
}
