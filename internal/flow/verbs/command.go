// Package verbs is the commands of parley flow: schemas tried on files without a database, definitions, and the operation of what runs.
package verbs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/verb"
)

// Exit codes beside 0 and 2, which the command line has.
const (
	exitFailed = 1
	exitBad    = 3 // good messages were written, and bad ones reported
)

// New makes the group of commands; serve is the one that runs hosts.
func New(a *verb.App, serve *cobra.Command) *cobra.Command {
	env := environment{a}
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Integration: take files apart, define ports, operate what runs",
	}
	cmd.AddCommand(serve, newHostsCommand(env))
	cmd.AddCommand(newDisassembleCommand(env), newAssembleCommand(env), newApplyCommand(env), newExportCommand(env), newImportCommand(env),
		newOpenAPICommand(env), newSchemaCommand(env), newPortsCommand(env), newLocationsCommand(env), newMessagesCommand(env),
		newSuspendedCommand(env),
		newFailuresCommand(env),
		newOrchestrationCommand(env), newTryOrchestrationCommand(env),
		newInstancesCommand(env), newInstanceCommand(env), newOrchestrationsCommand(env),
		newSubscriptionsCommand(env), newTrackCommand(env), newPublishCommand(env), newTestMapCommand(env), newMapWorkerCommand(env))
	for _, s := range stateVerbs {
		cmd.AddCommand(newStateCommand(env, s))
	}
	return cmd
}

// reported is an error as programs read it; a stable format.
type reported struct {
	Error string `json:"error"`
	*fault.Fault
}

// An environment is what the command line gives to these verbs.
type environment struct{ *verb.App }

// report prints an error with its place and remedy.
func (env environment) report(err error) {
	f, isFault := fault.Of(err)
	if env.JSON {
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

// run ends a verb: an error that is none of the command line is reported here, with its place and in the form that was asked for.
func (env environment) run(work func() (exit int, err error)) error {
	exit, err := work()
	if verb.IsUsage(err) {
		return err
	}
	if err != nil {
		env.report(err)
		exit = exitFailed
	}
	if exit == 0 {
		return nil
	}
	return verb.ExitWith(nil, exit)
}

// open opens a file, or standard input for -.
func (env environment) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(env.Stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, &fault.Fault{Message: err.Error(), Err: err, Remedy: "name a file that can be read, or - for standard input"}
	}
	return file, nil
}
