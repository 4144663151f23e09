// Package publish writes a run of the scenario queues into the documentation: tables between marks of the pages, a picture, and the run
// itself, out of which a test makes them again.
package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// The files below the folder of the repository.
const (
	runFile     = "docs/reference/queues.json"
	pictureFile = "docs/pictures/queues.svg"
	readme      = "README.md"
	performance = "docs/reference/performance.md"
)

// The marks around what is written into a page.
const (
	markBegin = "<!-- queues: written by bench queues -->\n"
	markEnd   = "<!-- queues: end -->\n"
)

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
	if err := os.WriteFile(filepath.Join(repository, runFile), append(text, '\n'), 0o644); err != nil {
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

// Files are the files that show the run that a repository keeps, by their names, as they have to be.
func Files(repository string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(repository, runFile))
	if err != nil {
		return nil, fmt.Errorf("read the run: %w", err)
	}
	var run Run
	if err := json.Unmarshal(text, &run); err != nil {
		return nil, fmt.Errorf("read the run: %w", err)
	}
	rows := rowsOf(run)
	files := map[string][]byte{pictureFile: []byte(picture(rows))}
	for page, block := range map[string]string{readme: short(run, rows), performance: full(run, rows)} {
		before, err := os.ReadFile(filepath.Join(repository, page))
		if err != nil {
			return nil, fmt.Errorf("read a page: %w", err)
		}
		if files[page], err = between(before, block); err != nil {
			return nil, fmt.Errorf("%s: %w", page, err)
		}
	}
	return files, nil
}

// between replaces what stands between the marks of a page.
func between(page []byte, block string) ([]byte, error) {
	head, rest, hasBegin := bytes.Cut(page, []byte(markBegin))
	_, tail, hasEnd := bytes.Cut(rest, []byte(markEnd))
	if !hasBegin || !hasEnd {
		return nil, fmt.Errorf("%w: %s and %s", ErrNoMarks, strings.TrimSpace(markBegin), strings.TrimSpace(markEnd))
	}
	return bytes.Join([][]byte{head, []byte(markBegin + "\n" + block + "\n" + markEnd), tail}, nil), nil
}
