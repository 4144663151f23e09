package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/flow/definitions"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/process"
	"github.com/parley-broker/parley/internal/verb"
)

// exitWaiting is the exit code of an instance that still waits.
const exitWaiting = 3

// trialOfProcess runs one instance of an orchestration with messages of files.
type trialOfProcess struct {
	application
	name, parameters, page, out string
	activities, maps, rows      []string
	from                        string
	advances                    bool

	program *process.Program
	world   *fileWorld
	step    process.Step
	passed  []process.Passed
	asked   []process.Activity
	sent    int
	stdout  io.Writer
}

func newTryOrchestrationCommand(env environment) *cobra.Command {
	t := &trialOfProcess{application: application{env: env}}
	cmd := &cobra.Command{
		Use:   "try-orchestration DIR|FILE [MESSAGE...]",
		Short: "Run an orchestration offline with messages of files, and show each step",
		Long: `Run one instance of an orchestration of files of definitions, without a database. The first message begins it, each that follows
goes to the receive that waits for it. Times pass at once. Each step is printed with the shapes it passed and what it publishes.

Nothing outside is asked: activities, maps and statements are answered by files. The exit code is 0 when the instance has ended, 3 when
it still waits, 1 when it failed or a message was not taken.`,
		Example: `  parley flow try-orchestration flow --name Fulfil order.xml answer.xml
  parley flow try-orchestration flow --name Fulfil order.xml --advance --out sent --html fulfil.html
  parley flow try-orchestration flow --name Charge order.xml --activity Charge=charged.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.stdout = cmd.OutOrStdout()
			exit, err := t.run(cmd.Context(), args[0], args[1:])
			if err != nil {
				return env.reportOffline(err)
			}
			return verb.ExitWith(nil, exit)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&t.name, "name", "", "which one, where there are several")
	flags.StringVar(&t.parameters, "parameters", "", "values with which it is started, an object of JSON, where no message begins it")
	flags.StringVar(&t.from, "from", "", "receive port of the messages")
	flags.StringArrayVar(&t.activities, "activity", nil, "answer an activity, as NAME=FILE with JSON; may be given several times")
	flags.StringArrayVar(&t.maps, "map", nil, "the result of a map, as NAME=FILE; may be given several times")
	flags.StringArrayVar(&t.rows, "rows", nil, "file with the rows of the next statement, a list of objects; may be given several times")
	flags.BoolVar(&t.advances, "advance", false, "let the time of the next timer come where no message is left")
	flags.StringVar(&t.out, "out", "", "folder for what is published")
	flags.StringVar(&t.page, "html", "", "file for the picture with the way that was taken")
	t.addVariables(cmd)
	return cmd
}

// reportOffline prints faults of definitions, or another error with its remedy.
func (env environment) reportOffline(err error) error {
	if faults, are := errors.AsType[definitions.Faults](err); are {
		env.printFaults(faults)
		return verb.ExitWith(nil, exitFailed)
	}
	return env.run(func() (int, error) { return 0, err })
}

// pairs reads NAME=FILE; a name may be given several times.
func pairs(flag string, given []string) (map[string][]string, error) {
	all := map[string][]string{}
	for _, one := range given {
		name, file, isPair := strings.Cut(one, "=")
		if !isPair {
			return nil, verb.Usagef("--%s %q: give NAME=FILE", flag, one)
		}
		all[name] = append(all[name], file)
	}
	return all, nil
}

func (t *trialOfProcess) run(ctx context.Context, from string, files []string) (exit int, err error) {
	activities, err := pairs("activity", t.activities)
	if err != nil {
		return 0, err
	}
	program, whole, err := t.orchestrated([]string{from}, t.name)
	if err != nil {
		return 0, err
	}
	t.program = program
	if t.world, err = newFileWorld(t.env, whole, t.rows); err != nil {
		return 0, err
	}
	if t.world.maps, err = pairs("map", t.maps); err != nil {
		return 0, err
	}
	if files, err = t.begin(ctx, files); err != nil {
		return 0, err
	}
	for t.step.Status == process.Waiting {
		isDone, left, err := t.next(ctx, files, activities)
		if err != nil {
			return 0, err
		}
		if files = left; isDone {
			break
		}
	}
	return t.end(files)
}

// begin runs the first step, and gives the files that are left.
func (t *trialOfProcess) begin(ctx context.Context, files []string) ([]string, error) {
	if len(t.program.Activations()) == 0 {
		return files, t.take(ctx, "started", process.Event{Kind: process.Started, Parameters: json.RawMessage(t.parameters)})
	}
	if len(files) == 0 {
		return nil, &fault.Fault{Message: "a message begins this orchestration", Remedy: "name a file with one behind the definitions"}
	}
	found := ""
	for _, a := range t.program.Activations() {
		for _, group := range a.Filter {
			m, err := t.world.read(ctx, files[0], t.from, group)
			if err != nil {
				return nil, err
			}
			if found = m.Type; satisfies(group, *m) {
				return files[1:], t.take(ctx, "message "+files[0], process.Event{Kind: process.Activated, Receive: a.Receive, Message: m})
			}
		}
	}
	return nil, &fault.Fault{
		Message: fmt.Sprintf("message %s of type %q begins no instance", files[0], found),
		Remedy:  "see the type and filter of the receive that activates; --from says the receive port",
	}
}

func satisfies(group []match.Predicate, m process.Message) bool {
	promoted := map[string]string{}
	for name, value := range m.Promoted {
		promoted[name] = fmt.Sprint(value)
	}
	return len(group) == 0 || len(match.New(1, []match.Group{{SendPort: 1, Predicates: group}}).Match(promoted)) > 0
}

// next does what can happen: an activity is answered, a message is taken, or a time comes.
func (t *trialOfProcess) next(ctx context.Context, files []string, answers map[string][]string) (isDone bool, left []string, err error) {
	for i, a := range t.asked {
		given := answers[a.Name]
		if len(given) == 0 {
			continue
		}
		body, err := t.world.file(given[0])
		if err != nil {
			return false, nil, err
		}
		if len(given) > 1 {
			answers[a.Name] = given[1:]
		}
		t.asked = slices.Delete(t.asked, i, i+1)
		return false, files, t.take(ctx, "activity "+a.Name, process.Event{Kind: process.ActivityDone, Activity: a.ID, Result: body})
	}
	for i, file := range files {
		for _, w := range t.step.Waits {
			if !w.IsOpen {
				continue
			}
			m, err := t.world.read(ctx, file, t.from, w.Filter)
			if err != nil {
				return false, nil, err
			}
			if isFor(w, *m) {
				left = slices.Delete(slices.Clone(files), i, i+1)
				return false, left, t.take(ctx, "message "+file, process.Event{Kind: process.Received, Wait: w.ID, Message: m})
			}
		}
	}
	if !t.advances || len(t.step.Timers) == 0 {
		return true, files, nil
	}
	first := slices.MinFunc(t.step.Timers, func(a, b process.Timer) int { return a.At.Compare(b.At) })
	if first.At.After(t.world.now) {
		t.world.now = first.At
	}
	at := first.At.UTC().Format("2006-01-02 15:04:05")
	return false, files, t.take(ctx, "time "+at, process.Event{Kind: process.TimerFired, Timer: first.ID})
}

// isFor reports whether a wait takes a message. A token is no condition: the answer of a port has it, and no file can.
func isFor(w process.Wait, m process.Message) bool {
	for name, value := range w.Equal {
		if name != process.TokenProperty && fmt.Sprint(m.Promoted[name]) != value {
			return false
		}
	}
	return satisfies(w.Filter, m)
}

// take runs a step and prints it.
func (t *trialOfProcess) take(ctx context.Context, what string, event process.Event) error {
	step, err := t.program.Run(ctx, t.world, t.step.State, event)
	if err != nil {
		return err
	}
	t.step = step
	t.passed = append(t.passed, step.Passed...)
	t.asked = slices.DeleteFunc(append(t.asked, step.Activities...), func(a process.Activity) bool {
		return slices.Contains(step.Cancelled, a.ID)
	})
	if t.env.JSON {
		return verb.EncodeJSON(t.stdout, struct {
			Event string `json:"event"`
			process.Step
		}{what, step})
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s\n", verb.OneLine(what, 0))
	for _, p := range step.Passed {
		fmt.Fprintf(text, "  passed   %s %s\n", p.Path, verb.OneLine(p.Way, 0))
	}
	if err := t.publish(text, step.Publications); err != nil {
		return err
	}
	for _, s := range step.Starts {
		fmt.Fprintf(text, "  starts   %s %s\n", s.Orchestration, s.Parameters)
	}
	for _, a := range step.Activities {
		fmt.Fprintf(text, "  asks     %s in queue %s: %s\n", a.Name, a.Queue, verb.OneLine(string(a.Input), verb.BodyWidth))
	}
	fmt.Fprintf(text, "  %s\n", t.standing())
	_, err = io.WriteString(t.stdout, text.String())
	return err
}

func (t *trialOfProcess) publish(text io.Writer, all []process.Publication) error {
	for _, p := range all {
		body := t.world.bodyOf(p.Message)
		t.sent++
		to := "by content"
		if p.SendPort != "" {
			to = "to " + p.SendPort
		}
		shown := verb.OneLine(string(body), verb.BodyWidth)
		if t.out != "" {
			name := fmt.Sprintf("%d%s", t.sent, extensionOf(p.Content))
			var err error
			if shown, err = (folder{t.out, true}).write(name, body); err != nil {
				return err
			}
		}
		fmt.Fprintf(text, "  sends    %s, %s: %s\n", to, verb.OrNone(p.Type), shown)
	}
	return nil
}

// standing says where the instance stands.
func (t *trialOfProcess) standing() string {
	switch s := t.step; {
	case s.Fault != nil:
		return fmt.Sprintf("%s at %s: %s: %s", strings.ToLower(string(s.Status)), s.Fault.Path, s.Fault.Code, verb.OneLine(s.Fault.Message, 0))
	case s.Status == process.Waiting:
		return "waits    at " + strings.Join(s.At, ", ")
	}
	return "finished"
}

func (t *trialOfProcess) end(left []string) (exit int, err error) {
	if t.page != "" {
		facts := [][2]string{{"status", string(t.step.Status)}}
		if t.step.Fault != nil {
			facts = append(facts, [2]string{"fault", t.step.Fault.Message}, [2]string{"remedy", t.step.Fault.Remedy})
		}
		if _, err := (folder{overwrites: true}).write(filepath.ToSlash(t.page), t.program.Page(t.passed, t.step.At, facts)); err != nil {
			return 0, err
		}
	}
	for _, file := range left {
		fmt.Fprintf(t.env.Stderr, "parley: message %s was not taken\nHINT: see its type and correlation, and where the instance stands\n", file)
		exit = exitFailed
	}
	switch {
	case t.step.Status == process.Waiting && exit == 0:
		return exitWaiting, nil
	case t.step.Status == process.Suspended || t.step.Status == process.Terminated:
		if f := t.step.Fault; f != nil && f.Remedy != "" {
			fmt.Fprintf(t.env.Stderr, "HINT: %s\n", f.Remedy)
		}
		return exitFailed, nil
	}
	return exit, nil
}
