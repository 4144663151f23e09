package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/report"
	"github.com/parley-broker/parley/internal/measure/setup"
	"github.com/parley-broker/parley/internal/verb"
)

// frame holds the flags that all measurements have.
type frame struct {
	csv, html, compare, history, preset, presets string
	try                                          bool
	sync, atMost                                 time.Duration
	// checks are those that the wizard has made before it asked for a scenario.
	checks []record.Check
}

func (f *frame) add(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.csv, "csv", "", "write the figures to this file")
	flags.StringVar(&f.html, "html", "", "write one self-contained page to this file")
	flags.StringVar(&f.compare, "compare", "", "compare with a run that --json wrote; the exit code is 1 on a regression beyond the noise")
	flags.StringVar(&f.history, "history", defaultHistory(), "file with a line for each run; empty for none")
	flags.BoolVar(&f.try, "try", false, "make the one change that the analysis suggests, where it is a setting of the run, and measure again")
	flags.DurationVar(&f.sync, "sync", setup.DefaultSync, "how long the storage is measured before; 0 for not at all")
	flags.DurationVar(&f.atMost, "at-most", 0, "give up, and leave nothing, after this time; 0 for never")
	flags.StringVar(&f.preset, "preset", "", "settings and limits under a name; parley bench presets lists them")
	flags.StringVar(&f.presets, "presets", "", "a file of presets beside those that come with the program")
}

func defaultHistory() string {
	folder := os.Getenv("XDG_DATA_HOME")
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(folder, "parley-bench", "history.jsonl")
}

// outcome is the report of a measurement.
type outcome interface{ Lead() *record.Head }

// measurement is a scenario with its settings, in the form that the runner needs.
type measurement struct {
	frame *bench.Frame
	// check finds mistakes of the command line, before a server is started.
	check func() error
	// makesServers reports that it makes private servers unless a database is named.
	makesServers bool
	// needsNoServer reports that it measures without any database.
	needsNoServer bool
	measure       func(ctx context.Context) (outcome, error)
	// parts, where there are any, are measured one after another: each is called before its measurement; join puts the outcomes together.
	parts func() []func()
	join  func(all []outcome) outcome
	// numbers writes the table of the scenario, sections are its own charts.
	numbers  func(out io.Writer, o outcome) error
	sections func(o outcome) []report.Section
	// changes are the settings that change may change; it says from what to what.
	changes []string
	change  func(setting string) string
	// hint, if set, is called after all.
	hint func(o outcome)
}

// Errors that end the program with exit code 1 after everything has been printed.
var (
	errRegression = errors.New("a figure got worse beyond the noise that was measured")
	errFailed     = errors.New("the run did not do what it has to do")
)

// run measures: it is the one frame around all scenarios.
func (a *measuring) run(cmd *cobra.Command, m measurement) error {
	f := a.flags
	var err error
	if m.frame.Limits, err = f.applyPreset(cmd); err != nil {
		return verb.AsUsage(err)
	}
	if err := m.check(); err != nil {
		return verb.AsUsage(err)
	}
	var before *record.Head
	if f.compare != "" {
		if before, err = record.Read(f.compare); err != nil {
			return verb.AsUsage(err)
		}
		if err := isOfAnother(cmd, before, f.compare); err != nil {
			return err
		}
	}
	for flag, path := range map[string]string{"csv": f.csv, "html": f.html} {
		if place, err := os.Stat(filepath.Dir(path)); path != "" && (err != nil || !place.IsDir()) {
			return verb.Usagef("--%s %s: there is no folder %s", flag, path, filepath.Dir(path))
		}
	}
	ctx := cmd.Context()
	if f.atMost > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, f.atMost, fmt.Errorf("it was not done after %s (--at-most)", f.atMost))
		defer cancel()
	}
	if !m.needsNoServer && (!m.makesServers || a.NamesDatabase()) {
		if m.frame.DSN, err = a.ResolveDSN(ctx); err != nil {
			return err
		}
	}
	found, err := a.whole(ctx, m)
	if err != nil {
		return err
	}
	head := found.Lead()
	if f.try && head.Analysis != nil {
		if err := a.try(ctx, m, head); err != nil {
			return err
		}
	}
	var notCompared error
	if before != nil {
		head.Compared, notCompared = record.Compare(before, head, f.compare)
	}
	// The figures are given first, whatever could not be done with them.
	if err := errors.Join(a.give(cmd, m, found), notCompared); err != nil {
		return err
	}
	if m.hint != nil {
		m.hint(found)
	}
	switch {
	case head.Compared != nil && len(head.Compared.Regressions()) > 0:
		return errRegression
	case head.Verdict != nil && !head.Verdict.Passed():
		return errFailed
	}
	return nil
}

// isOfAnother refuses to compare with a run of another scenario, before a run of this one takes its time.
func isOfAnother(cmd *cobra.Command, before *record.Head, file string) error {
	if cmd.Parent() == nil || cmd.Parent().Name() != "bench" || cmd.Name() == before.Scenario {
		return nil
	}
	for _, other := range cmd.Parent().Commands() {
		if other.Name() == before.Scenario {
			return verb.Usagef("%s is a run of %s, this one is of %s", file, before.Scenario, cmd.Name())
		}
	}
	return nil
}

// whole measures all parts.
func (a *measuring) whole(ctx context.Context, m measurement) (outcome, error) {
	var parts []func()
	if m.parts != nil {
		parts = m.parts()
	}
	if len(parts) == 0 {
		return a.once(ctx, m)
	}
	all := make([]outcome, 0, len(parts))
	for _, begin := range parts {
		begin()
		found, err := a.once(ctx, m)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return m.join(all), nil
}

// once measures once, with a live display.
func (a *measuring) once(ctx context.Context, m measurement) (outcome, error) {
	m.frame.Watch, m.frame.Checks, m.frame.Sync = &observe.Watch{}, a.flags.checks, a.flags.sync
	display := newDisplay(a.Stderr, m.frame.Watch)
	m.frame.Progress = display.Line
	stop := display.start()
	found, err := m.measure(ctx)
	stop()
	if err == nil {
		keepChanges(found.Lead().Analysis, m.changes)
	}
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil:
	case !errors.Is(cause, context.Canceled):
		err = errors.Join(cause, err)
	case isCancellation(err):
		err = errInterrupted
	default:
		err = errors.Join(errInterrupted, err)
	}
	return found, err
}

// errInterrupted is the error of a benchmark that a signal has ended. An error of cleaning up follows it.
var errInterrupted = errors.New("interrupted, and no figures were kept")

// isCancellation reports whether an error, and each that is joined in it, is the end of its context.
func isCancellation(err error) bool {
	switch all := err.(type) { //nolint:errorlint // it walks down by itself
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(all.Unwrap(), func(one error) bool { return !isCancellation(one) })
	case interface{ Unwrap() error }:
		return errors.Is(err, context.Canceled) && isCancellation(all.Unwrap())
	}
	return errors.Is(err, context.Canceled)
}

// give writes the result in all forms that were asked for. One that cannot be written is no reason to lose the others.
func (a *measuring) give(cmd *cobra.Command, m measurement, found outcome) error {
	f, head := a.flags, found.Lead()
	var failed error
	if f.csv != "" {
		failed = writeFile(f.csv, head.WriteCSV)
	}
	if f.html != "" {
		var own []report.Section
		if m.sections != nil {
			own = m.sections(found)
		}
		path, err := WriteDemoPage(f.html, func(out io.Writer) error { return present.Page(out, head, a.commandLine(cmd), own) })
		if err == nil {
			fmt.Fprintf(a.Stderr, "The result page is %s\n", path)
		}
		failed = errors.Join(failed, err)
	}
	if f.history != "" {
		if err := (record.History{Path: f.history}).Add(head); err != nil {
			// The figures are worth more than their line in the history.
			fmt.Fprintf(a.Stderr, "The run is not in the history: %v\n", err)
		}
	}
	if a.JSON {
		return errors.Join(failed, verb.EncodeJSON(cmd.OutOrStdout(), found))
	}
	return errors.Join(failed, present.Text(cmd.OutOrStdout(), head, func(out io.Writer) error { return m.numbers(out, found) }))
}

// commandLine is the command that repeats a run, but for where its database is: a DSN may hold a password.
func (a *measuring) commandLine(cmd *cobra.Command) string {
	words := append([]string{cmd.CommandPath()}, flagsGiven(cmd)...)
	if !cmd.Flags().Changed("preset") && a.flags.preset != "" {
		words = append(words, "--preset="+a.flags.preset)
	}
	return strings.Join(words, " ")
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
