package verbs

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// Names that complete the arguments of verbs.
const (
	completeSendPorts verb.Completer = `select s.name || chr(9) || s.state from parley_flow.send_ports as s order by s.name`
	completeLocations verb.Completer = `select l.name || chr(9) || l.address from parley_flow.receive_locations as l order by l.name`
)

// changedState reports a change of a state to programs; a stable format.
type changedState struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Operation string `json:"operation"`
	IsDone    bool   `json:"is_done"`
}

// stateVerb is a verb that changes the state of an object.
type stateVerb struct {
	name, argument, short, long string
	done, notDone               string // behind the name of the object
	hasGroups                   bool
}

var stateVerbs = []stateVerb{
	{
		"start", "NAME", "Have a send port send what waits for it",
		`Have a send port send what waits for it, in its order, and enlist it if it is not. Messages that wait for their next attempt are
tried at once, also where the port was started before. Or, with --group, a send port group.`,
		"is started", "was started before; what waits for its next attempt is tried now", true,
	},
	{
		"stop", "NAME", "Have a send port send nothing more, and messages wait",
		`Have a send port send nothing more: messages are routed to it as before, and wait until it is started. What is being sent is not
interrupted.`, "is stopped", "was stopped before", false,
	},
	{
		"enlist", "NAME", "Have messages routed to a send port, where they wait",
		`Have messages routed to a send port that is Bound; they wait until it is started. Or, with --group, a send port group.`,
		"is enlisted", "was enlisted before", true,
	},
	{
		"unenlist", "NAME", "Have nothing routed to a send port any more",
		`Have nothing routed to a send port any more. Or, with --group, a send port group. A port for which messages wait stays as it is: let
them be sent, or terminate them.`, "is not enlisted any more", "was not enlisted", true,
	},
	{
		"enable", "LOCATION", "Have a receive location take messages in",
		`Have a receive location take messages in.`, "is enabled", "was enabled before", false,
	},
	{
		"disable", "LOCATION", "Have a receive location take nothing in any more",
		`Have a receive location take nothing in any more. What it has taken goes its way.`, "is disabled", "was disabled before", false,
	},
}

func newStateCommand(env environment, s stateVerb) *cobra.Command {
	var isGroup, isOrchestration bool
	cmd := &cobra.Command{
		Use:     s.name + " " + s.argument,
		Short:   s.short,
		Long:    s.long + "\n\nYou need the right OPERATE for its application. It is no fault when there is nothing to do.",
		Example: fmt.Sprintf("  parley flow %s 'Orders %s'", s.name, map[string]string{"NAME": "out", "LOCATION": "folder"}[s.argument]),
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := flowstore.KindSendPort
			switch {
			case isGroup && isOrchestration:
				return verb.Usagef("--group and --orchestration do not go together")
			case isGroup:
				kind = flowstore.KindGroup
			case isOrchestration:
				kind = flowstore.KindOrchestration
			case s.argument == "LOCATION":
				kind = "receive location"
			}
			ctx := cmd.Context()
			return env.WithConnection(ctx, func(conn *pgx.Conn) error { return changeState(ctx, env, cmd, conn, s, args[0], kind) })
		},
	}
	complete := completeSendPorts
	if s.argument == "LOCATION" {
		complete = completeLocations
	}
	env.CompleteArgument(cmd, complete, 1)
	if s.argument == "NAME" {
		cmd.Flags().BoolVar(&isOrchestration, "orchestration", false, "an orchestration")
	}
	if s.hasGroups {
		cmd.Flags().BoolVar(&isGroup, "group", false, "a send port group")
	}
	return cmd
}

func changeState(ctx context.Context, env environment, cmd *cobra.Command, conn *pgx.Conn, s stateVerb, name, kind string) error {
	isDone, err := flowstore.ChangeState(ctx, conn, s.name, name, kind)
	if err != nil {
		if elsewhere := s.elsewhere(ctx, conn, name, kind, err); elsewhere != nil {
			return elsewhere
		}
		return err
	}
	if env.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), changedState{kind, name, s.name, isDone})
	}
	done := s.done
	if !isDone {
		done = s.notDone
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", kind, strings.TrimSpace(verb.OneLine(name, 0)), done)
	return err
}

// elsewhere says of what other kind a name is for which there is no object of the kind that was meant; nil: of none that has a state.
func (s stateVerb) elsewhere(ctx context.Context, conn *pgx.Conn, name, meant string, err error) error {
	if pgdb.SQLState(err) != "PF004" {
		return nil
	}
	kinds, lookErr := flowstore.KindsOf(ctx, conn, name)
	if lookErr != nil {
		return nil //nolint:nilerr // the first error says more
	}
	verbs, word := map[string]string{"enable": "start", "disable": "stop"}, shellWord(name)
	operation := s.name
	if s.argument == "LOCATION" {
		operation = verbs[s.name]
	}
	for _, kind := range kinds {
		var command string
		switch kind {
		case flowstore.KindSendPort:
			command = operation + " " + word
		case flowstore.KindOrchestration:
			command = operation + " " + word + " --orchestration"
		case flowstore.KindGroup:
			if operation == "stop" {
				operation = "unenlist"
			}
			command = operation + " " + word + " --group"
		case "receive location":
			command = map[string]string{"start": "enable", "enlist": "enable"}[operation]
			if command == "" {
				command = "disable"
			}
			command += " " + word
		default:
			continue
		}
		return verb.WithHint(fmt.Errorf("there is no %s %q, and there is the %s %[2]q", meant, name, kind), "write: parley flow "+command)
	}
	return nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// shellWord writes a name as a shell takes it.
func shellWord(name string) string {
	if plainWord.MatchString(name) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
