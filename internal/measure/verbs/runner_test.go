package verbs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/verb"
)

// ran runs a scenario of a test as a command of bench beside another one, and gives what it prints.
func ran(t *testing.T, s *model, f *frame) (printed string, err error) {
	t.Helper()
	var out bytes.Buffer
	a := &measuring{App: &verb.App{Stderr: io.Discard, DSN: "postgres://nobody@127.0.0.1:1/nothing"}, flags: f}
	all, cmd := &cobra.Command{Use: "bench"}, &cobra.Command{Use: "model"}
	all.AddCommand(cmd, &cobra.Command{Use: "other"})
	cmd.SetOut(&out)
	cmd.SetContext(t.Context())
	m := s.measurement()
	m.check = func() error { return nil }
	m.needsNoServer = true
	m.numbers = func(out io.Writer, _ outcome) error { _, err := fmt.Fprintln(out, "the numbers"); return err }
	err = a.run(cmd, m)
	return out.String(), err
}

// A mistake that can be seen before is said before, and no run takes its time: a folder that is not there, a run of another scenario.
func TestMistakesAreSaidBeforeARun(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"scenario": "other", "figures": [{"name": "rate", "unit": "messages/s", "value": 1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere", "x")
	for want, f := range map[string]*frame{
		"there is no folder":                      {csv: nowhere},
		"--html " + nowhere:                       {html: nowhere},
		"is a run of other, this one is of model": {compare: other},
	} {
		s := &model{config: bench.Config{Rows: 10}, knee: 1000}
		if _, err := ran(t, s, f); err == nil || !strings.Contains(err.Error(), want) || len(s.runs) > 0 {
			t.Errorf("%+v: %v after %d runs", f, err, len(s.runs))
		}
	}
}

// Figures that cannot be written, or compared, are printed all the same.
func TestFiguresArePrintedAlsoWhereAFileCannotBeWritten(t *testing.T) {
	t.Parallel()
	unlike := filepath.Join(t.TempDir(), "unlike.json")
	if err := os.WriteFile(unlike, []byte(`{"scenario": "model", "figures": [{"name": "else", "unit": "ms", "value": 1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]*frame{"is a directory": {csv: t.TempDir()}, "none of the figures": {compare: unlike}} {
		printed, err := ran(t, &model{config: bench.Config{Rows: 10}, knee: 1000}, f)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(printed, "the numbers") {
			t.Errorf("%+v: %v, printed is\n%s", f, err, printed)
		}
	}
}

// Only an error that is nothing but the end of its context is that of an interruption.
func TestAnInterruptionIsToldFromAnErrorOfCleaningUp(t *testing.T) {
	t.Parallel()
	ended := fmt.Errorf("measure: %w", context.Canceled)
	if !isCancellation(ended) || !isCancellation(errors.Join(ended, ended)) {
		t.Error("an interruption is not seen")
	}
	if isCancellation(errors.Join(ended, errors.New("drop the database"))) || isCancellation(errors.New("refused")) {
		t.Error("an error is taken for an interruption")
	}
}
