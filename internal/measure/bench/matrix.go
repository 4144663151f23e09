package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/measure/statistics"
)

// MatrixOptions choose cells of the paper's matrix.
type MatrixOptions struct {
	// Initiators, Threads (of each initiator), Sizes in bytes and Dialogs (begun for each that is used) make the cells; without any of them
	// there are twenty, with All the paper's 264 for one version of the server: with a second version they are its 528.
	Initiators, Threads, Sizes, Dialogs []int
	All                                 bool
	// Versions are major versions of PostgreSQL, each of which has private servers of its own measured, one after another; none: the one of
	// DialogOptions.
	Versions []string
	// State is a file with a line for each cell that is done; a run goes on where an earlier one ended. Empty for none.
	State string
}

// The paper's axes.
var (
	matrixInitiators = []int{1, 2, 3}
	matrixThreads    = []int{1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50}
	matrixSizes      = []int{100, 1024, 4096, 8192}
	matrixDialogs    = []int{1, 150}
)

// Cell is one test of the matrix. As JSON it is part of a stable format.
type Cell struct {
	Initiators int `json:"initiators"`
	Threads    int `json:"threads"` // of each initiator
	Size       int `json:"size"`
	Dialogs    int `json:"dialogs"` // that are begun for each that is used
	// Version is the server's, and Seconds the time of a run: both make it another cell.
	Version string    `json:"version"`
	Seconds float64   `json:"seconds"`
	Rate    float64   `json:"messages_per_second"` // the median of Runs
	Runs    []float64 `json:"runs"`
	// MeasuredAt is when the last run ended: cells of a state may be of several days.
	MeasuredAt time.Time `json:"measured_at,omitzero"`
}

// Name distinguishes the cell, as the paper writes it: 3x50 are three initiators with 50 threads each.
func (c Cell) Name() string {
	dialogs := "1 dialog"
	if c.Dialogs > 1 {
		dialogs = fmt.Sprintf("1 of %d dialogs", c.Dialogs)
	}
	return fmt.Sprintf("%dx%d, %d B, %s", c.Initiators, c.Threads, c.Size, dialogs)
}

// cells are the tests that are asked for.
func (m MatrixOptions) cells() []Cell {
	isChosen := len(m.Initiators)+len(m.Threads)+len(m.Sizes)+len(m.Dialogs) > 0
	if !isChosen && !m.All {
		cells := product([]int{1, 2, 3}, []int{1, 15, 50}, []int{100}, matrixDialogs)
		return append(cells, product([]int{3}, []int{50}, []int{4096, 8192}, []int{150})...)
	}
	return product(orSteps(m.Initiators, matrixInitiators), orSteps(m.Threads, matrixThreads), orSteps(m.Sizes, matrixSizes),
		orSteps(m.Dialogs, matrixDialogs))
}

func product(initiators, threads, sizes, dialogs []int) (cells []Cell) {
	for _, i := range initiators {
		for _, t := range threads {
			for _, s := range sizes {
				for _, d := range dialogs {
					cells = append(cells, Cell{Initiators: i, Threads: t, Size: s, Dialogs: d})
				}
			}
		}
	}
	return cells
}

func matrixScenario() Scenario {
	return Scenario{
		Name: "matrix", Short: "the paper's matrix: initiators, threads, sizes, one dialog or every 150th, from SEND to the reader's row",
		Variants: []Variant{{"cells", "20 cells, or those that the flags choose"}},
		Takes:    TakesMatrix, hasSize: true,
		servers: func(Config) map[string]string { return dialogSettings },
		Paper: "almost 5,000 messages/s with one initiator, almost 12,000 with two, over 18,000 with three; +315% by every 150th " +
			"dialog at most",
		measure: func(ctx context.Context, b *bench) ([]Result, error) { return b.measureMatrix(ctx) },
	}
}

// measureMatrix measures the cells that are not done.
func (b *bench) measureMatrix(ctx context.Context) ([]Result, error) {
	var version string
	if err := b.cluster.admin.QueryRow(ctx, "show server_version").Scan(&version); err != nil {
		return nil, fmt.Errorf("ask for the version of the server: %w", err)
	}
	cells, err := b.goOn(ctx, strings.Fields(version)[0], b.measureCell)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, c := range cells {
		results = append(results, Result{
			System: systemParley, Variant: c.Name(), Sessions: c.Initiators * c.Threads, Conversations: c.Initiators * c.Threads * c.Dialogs,
			Size:  c.Size,
			Batch: 1, MessagesPerSecond: c.Rate, Spread: statistics.Spread(c.Runs), Runs: c.Runs,
		})
	}
	return results, nil
}

// goOn gives the cells that are asked for: those that the state has, and the others measured. A cell is in the state when all of its runs
// are done, so that an interruption leaves none with a part of them.
func (b *bench) goOn(ctx context.Context, version string, measure func(context.Context, Cell) (float64, error)) ([]Cell, error) {
	done, err := readCells(b.Matrix.State)
	if err != nil {
		return nil, err
	}
	cells := b.Matrix.cells()
	var missing []int
	for i := range cells {
		cells[i].Version, cells[i].Seconds = version, b.Duration.Seconds()
		if j := slices.IndexFunc(done, func(c Cell) bool { return sameTest(c, cells[i]) }); j >= 0 {
			cells[i] = done[j]
			continue
		}
		missing = append(missing, i)
	}
	b.settled["cells"], b.settled["cells_from_state"] = len(cells), len(cells)-len(missing)
	err = inTurns(ctx, &b.Frame, missing, 1, func(i int) string { return cells[i].Name() }, func(_ int, i int) error {
		for range b.Repeat {
			rate, err := measure(ctx, cells[i])
			if err != nil {
				return err
			}
			cells[i].Runs = append(cells[i].Runs, rate)
		}
		cells[i].Rate, cells[i].MeasuredAt = statistics.Median(cells[i].Runs), time.Now().UTC().Truncate(time.Second)
		return addCell(b.Matrix.State, cells[i])
	})
	if err != nil {
		return nil, err
	}
	b.cells = slices.Concat(cells, ofOtherVersions(cells, done))
	return cells, nil
}

func sameTest(a, b Cell) bool { return a.Version == b.Version && sameShape(a, b) }

// sameShape reports whether cells differ in the version of the server alone.
func sameShape(a, b Cell) bool {
	return a.Initiators == b.Initiators && a.Threads == b.Threads && a.Size == b.Size && a.Dialogs == b.Dialogs && a.Seconds == b.Seconds
}

// ofOtherVersions are the same tests that earlier runs have done on other versions of the server.
func ofOtherVersions(cells, done []Cell) (others []Cell) {
	for _, d := range done {
		asSame := func(c Cell) bool { return sameShape(c, d) && c.Version != d.Version }
		if slices.ContainsFunc(cells, asSame) && !slices.ContainsFunc(others, func(o Cell) bool { return sameTest(o, d) }) {
			others = append(others, d)
		}
	}
	return others
}

// measureCell sends on one dialog a thread, and counts what the readers have committed. All dialogs are begun, and have sent a first
// message.
func (b *bench) measureCell(ctx context.Context, c Cell) (rate float64, err error) {
	sessions := c.Initiators * c.Threads
	t := traffic{
		initiators: c.Initiators, targets: 1, sessions: sessions, readers: or(b.Dialog.Readers,
			usualReaders()), conversations: sessions * c.Dialogs,
		size: c.Size, batch: 1, in: explicit, every: c.Dialogs,
	}
	made, err := b.newDeployment(ctx, t, dialogQueue, dialogReader)
	if err != nil {
		return 0, err
	}
	rate, err = b.driveThrough(ctx, made, t)
	return rate, closeDeployment(ctx, made, err)
}

// readCells reads what is done. A line that was cut off is not.
func readCells(path string) (cells []Cell, err error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the state of the matrix: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var c Cell
		if json.Unmarshal(lines.Bytes(), &c) == nil && c.Rate > 0 {
			cells = append(cells, c)
		}
	}
	return cells, lines.Err()
}

func addCell(path string, c Cell) error {
	if path == "" {
		return nil
	}
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write a cell: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of the state of the matrix: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the state of the matrix: %w", err)
	}
	// A line that an interruption cut off is ended first.
	_, err = file.Write(append([]byte{'\n'}, append(line, '\n')...))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("add to the state of the matrix: %w", err)
	}
	return nil
}
