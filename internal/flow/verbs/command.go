// Package verbs is the commands of parley flow that need no database: schemas tried on files.
package verbs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// An Environment is what the command line gives to its verbs.
type Environment struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	JSON           func() bool // whether programs read what is printed
}

// An ExitError ends the program with a code. What went wrong was reported.
type ExitError struct{ Code int }

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Exit codes beside 0 and 2, which the command line has.
const (
	ExitFailed = 1
	ExitBad    = 3 // good messages were written, and bad ones reported
)

// A UsageError is a mistake in the command line.
type UsageError struct{ error }

// New makes the group of commands.
func New(env Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Integration: take files apart and put them together",
	}
	cmd.AddCommand(newDisassembleCommand(env), newAssembleCommand(env))
	return cmd
}

// reported is an error as programs read it; a stable format.
type reported struct {
	Error string `json:"error"`
	*fault.Fault
}

// report prints an error with its place and remedy.
func (env Environment) report(err error) {
	f, isFault := fault.Of(err)
	if env.JSON() {
		encoder := json.NewEncoder(env.Stderr)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(reported{Error: err.Error(), Fault: f}) // a broken stderr has nowhere to be reported
		return
	}
	fmt.Fprintf(env.Stderr, "parley: %v\n", err)
	if isFault && f.Remedy != "" {
		fmt.Fprintf(env.Stderr, "HINT: %s\n", f.Remedy)
	}
}

// failed reports an error, unless it is one of the command line.
func (env Environment) failed(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[UsageError](err); ok {
		return err
	}
	if _, ok := errors.AsType[ExitError](err); ok {
		return err
	}
	env.report(err)
	return ExitError{ExitFailed}
}

// open opens a file, or standard input for -.
func (env Environment) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(env.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, &fault.Fault{Message: err.Error(), Err: err, Remedy: "name a file that can be read, or - for standard input"}
	}
	return file, nil
}
