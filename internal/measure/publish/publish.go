// Package publish writes runs of scenarios into the documentation: tables between marks of the pages, a picture, and the runs themselves,
// out of which a test makes them again.
package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// The files below the folder of the repository.
const (
	runFolder   = "docs/reference/runs"
	pictureFile = "docs/pictures/queues.svg"
	readme      = "README.md"
	performance = "docs/reference/performance.md"
)

// queues is the scenario with peers: its table is in the README, too, and has a picture.
const queues = "queues"

// Scenarios are those that the page on performance has a table of, in its order.
var Scenarios = []string{"send", "receive", "life", "simple", "decay", "dialog", jobs, queues}

// marks are around what is written into a page.
func marks(scenario string) (begin, end string) {
	return "<!-- " + scenario + ": written by bench " + scenario + " -->\n", "<!-- " + scenario + ": end -->\n"
}

// ErrNoMarks reports a page without the marks.
var ErrNoMarks = errors.New("the page has no marks for what is to be written into it")

// Run is a report with its command, as the repository keeps it.
type Run struct {
	bench.Report
	Command string `json:"command"`
}

// Write writes a run and all that shows it into a repository.
func Write(repository string, run Run) error {
	run.Samples, run.Analysis = nil, nil
	text, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("write the run: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(repository, runFolder), 0o750); err != nil {
		return fmt.Errorf("make the folder of the runs: %w", err)
	}
	if err := os.WriteFile(filepath.Join(repository, runFolder, run.Scenario+".json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the run: %w", err)
	}
	files, err := Files(repository)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(repository, name), content, 0o644); err != nil {
			return fmt.Errorf("show the run: %w", err)
		}
	}
	return nil
}

// Files are the files that show the runs that a repository keeps, by their names, as they have to be.
func Files(repository string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, scenario := range Scenarios {
		run, err := read(repository, scenario)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		blocks := map[string]string{performance: table(run)}
		switch scenario {
		case jobs:
			blocks[performance] = jobsTable(run)
		case queues:
			rows := rowsOf(run)
			files[pictureFile] = []byte(picture(rows))
			blocks = map[string]string{readme: short(run, rows), performance: full(run, rows)}
		}
		for page, block := range blocks {
			before, is := files[page]
			if !is {
				if before, err = os.ReadFile(filepath.Join(repository, page)); err != nil {
					return nil, fmt.Errorf("read a page: %w", err)
				}
			}
			if files[page], err = between(before, scenario, block); err != nil {
				return nil, fmt.Errorf("%s: %w", page, err)
			}
		}
	}
	return files, nil
}

func read(repository, scenario string) (run Run, err error) {
	text, err := os.ReadFile(filepath.Join(repository, runFolder, scenario+".json"))
	if err != nil {
		return run, fmt.Errorf("read the run: %w", err)
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return run, fmt.Errorf("read the run of %s: %w", scenario, err)
	}
	return run, nil
}

// between replaces the text between the marks of a scenario in a page.
func between(page []byte, scenario, block string) ([]byte, error) {
	begin, end := marks(scenario)
	head, rest, hasBegin := bytes.Cut(page, []byte(begin))
	_, tail, hasEnd := bytes.Cut(rest, []byte(end))
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("%w: %s and %s", ErrNoMarks, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return bytes.Join([][]byte{head, []byte(begin + "\n" + block + "\n" + end), tail}, nil), nil
}
