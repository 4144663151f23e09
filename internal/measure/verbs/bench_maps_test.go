package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/flow/mapping/mappingtest"
	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/maprate"
	"github.com/parley-broker/parley/internal/verb"
)

// runBench runs a command of the benchmark, and gives its standard output.
func runBench(t *testing.T, arguments ...string) (out string, err error) {
	t.Helper()
	var written bytes.Buffer
	app := &verb.App{Stderr: new(bytes.Buffer), JSON: true}
	cmd := NewBench(app, bench.Peers{})
	cmd.SetArgs(append(arguments, "--history", ""))
	cmd.SetOut(&written)
	cmd.SetErr(new(bytes.Buffer))
	cmd.SilenceUsage = true
	err = cmd.ExecuteContext(t.Context())
	return written.String(), err
}

func TestMapsAreMeasuredInTheFrameOfAllScenarios(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("xsltproc"); err != nil {
		t.Skip("xsltproc is not installed")
	}
	csv := filepath.Join(t.TempDir(), "maps.csv")
	out, err := runBench(t, "maps", "--worker", mappingtest.Worker(t), "--documents", "40", "--processes", "2", "--repeat", "3",
		"--large-mb", "0", "--csv", csv)
	if err != nil && !errors.Is(err, errFailed) { // so few documents say nothing about the goals
		t.Fatal(err)
	}
	var report mapsReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if report.Scenario != "maps" || report.Bytes < 2048 || report.Worker <= 0 || report.Once <= 0 || report.Each <= 0 || len(report.Setup) == 0 {
		t.Errorf("the report is %s", out)
	}
	var isJudged bool
	for _, f := range report.Figures {
		isJudged = isJudged || f.Name == maprate.ToOnce && f.AtLeast == leastToOnce && len(f.Runs) == 3
	}
	if !isJudged {
		t.Errorf("the figures are %+v", report.Figures)
	}
	if text, err := os.ReadFile(csv); err != nil || !strings.Contains(string(text), maprate.EachRate) {
		t.Errorf("the file of figures is %s, %v", text, err)
	}
}

func TestSmallDocumentsAreMeasuredBesideALargeOne(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("xsltproc"); err != nil {
		t.Skip("xsltproc is not installed")
	}
	report, err := maprate.Measure(t.Context(), maprate.Config{
		Documents: 10, Processes: 1, Repeat: 1, LargeMB: 4, Worker: mappingtest.Worker(t), Alone: 100 * time.Millisecond,
		Progress: func(string) {},
	})
	if err != nil || report.BesideLarge <= 0 || report.BesideLargeTo <= 0 || report.LargeSeconds <= 0 || report.LargeMegabytes != 4 {
		t.Errorf("the report is %+v, %v", report, err)
	}
}

// Nodes without the worker run xsltproc. Measured instead of it, that would be compared with itself.
func TestMapsAreNotMeasuredWithoutTheWorker(t *testing.T) {
	folder := t.TempDir()
	if program, err := exec.LookPath("xsltproc"); err == nil {
		if err := os.Symlink(program, filepath.Join(folder, "xsltproc")); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder)
	if _, err := mapping.FindWorker(); err == nil {
		t.Skip("the worker is installed as a package")
	}
	out, err := runBench(t, "maps", "--documents", "1", "--processes", "1", "--repeat", "1", "--large-mb", "0")
	if !errors.Is(err, mapping.ErrNoWorker) || !strings.Contains(err.Error(), "parley flow map-worker install") || out != "" {
		t.Errorf("it gives %q, %v", out, err)
	}
}
