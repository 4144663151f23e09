package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// History is a file with a line for each run.
type History struct{ Path string }

// longest is the length of a line, in bytes, that is still read.
const longest = 16 << 20

// Add appends a run. Samples are left out: they are in the report of the run.
func (h History) Add(head *Head) error {
	kept := *head
	kept.Samples = nil
	line, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("write the run: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o700); err != nil {
		return fmt.Errorf("make the folder of the history of runs: %w", err)
	}
	file, err := os.OpenFile(h.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the history of runs: %w", err)
	}
	// A line that was cut off is ended first.
	_, err = file.Write(append([]byte{'\n'}, append(line, '\n')...))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("add to the history of runs: %w", err)
	}
	return nil
}

// Runs gives the runs, the latest last. A line that was cut off, as by a full disk, is left out.
func (h History) Runs() ([]Head, error) {
	file, err := os.Open(h.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the history of runs: %w", err)
	}
	defer func() { _ = file.Close() }()
	var runs []Head
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var head Head
		if json.Unmarshal(lines.Bytes(), &head) == nil && head.Scenario != "" {
			runs = append(runs, head)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the history of runs: %w", err)
	}
	return runs, nil
}
