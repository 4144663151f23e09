package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/record"
)

// matrixOf is a matrix of six cells with a state.
func matrixOf(state string) *bench {
	return &bench{
		Config: Config{Repeat: 2, Duration: time.Second, Matrix: MatrixOptions{
			Initiators: []int{1, 2, 3}, Threads: []int{4}, Sizes: []int{100}, Dialogs: []int{1, 150}, State: state,
		}},
		settled: map[string]any{},
	}
}

var errStopped = errors.New("stopped")

// A run that ends in the middle of a cell, between the runs of one or before the first leaves the cells that are done in the state; the
// next one measures the others, each as often as is asked for.
func TestMatrixGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	for stopAt := range 13 { // six cells of two runs; 12 does not stop
		state := filepath.Join(t.TempDir(), "folder", "cells")
		var first, second []string
		if _, err := matrixOf(state).goOn(t.Context(), "15.1", func(_ context.Context, c Cell) (float64, error) {
			if len(first) == stopAt {
				return 0, errStopped
			}
			first = append(first, c.Name())
			return 100, nil
		}); (stopAt < 12) != errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		b := matrixOf(state)
		cells, err := b.goOn(t.Context(), "15.1", func(_ context.Context, c Cell) (float64, error) {
			second = append(second, c.Name())
			return 200, nil
		})
		if err != nil || len(cells) != 6 || b.settled["cells_from_state"] != stopAt/2 {
			t.Fatalf("after %d runs: %d cells, settled %v, with %v", stopAt, len(cells), b.settled, err)
		}
		if len(second) != 2*(6-stopAt/2) {
			t.Errorf("after %d runs %v were measured again", stopAt, second)
		}
		for i, c := range cells {
			want := 200.0
			if i < stopAt/2 {
				want = 100
				if slices.Contains(second, c.Name()) {
					t.Errorf("%s was measured twice", c.Name())
				}
			}
			if c.Rate != want || len(c.Runs) != 2 || c.Version != "15.1" || c.MeasuredAt.IsZero() {
				t.Errorf("after %d runs cell %d is %+v", stopAt, i, c)
			}
		}
	}
}

// Another version or another time of a run is another cell; the page shows those of other versions, too.
func TestCellsOfAnotherVersionAreMeasuredAndShownBeside(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "cells")
	measured := 0
	count := func(context.Context, Cell) (float64, error) { measured++; return float64(measured), nil }
	for _, version := range []string{"15.1", "18.1", "15.1"} {
		b := matrixOf(state)
		if _, err := b.goOn(t.Context(), version, count); err != nil {
			t.Fatal(err)
		}
		if version == "18.1" && (len(b.cells) != 12 || b.cells[6].Version != "15.1") {
			t.Errorf("it shows %+v", b.cells)
		}
	}
	if measured != 24 {
		t.Errorf("%d runs were measured, not 24", measured)
	}
	longer := matrixOf(state)
	longer.Duration = time.Minute
	if _, err := longer.goOn(t.Context(), "15.1", count); err != nil || measured != 36 || len(longer.cells) != 6 {
		t.Errorf("of another time %d runs were measured, and %d cells are shown, with %v", measured-24, len(longer.cells), err)
	}
}

// A line of the state that a kill has cut off, wherever that is, is no cell, and spoils no other one.
func TestLineThatWasCutOffIsNoCell(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	whole := filepath.Join(folder, "whole")
	for i := range 3 {
		if err := addCell(whole, Cell{Initiators: i + 1, Threads: 1, Size: 100, Dialogs: 1, Version: "15.1", Seconds: 1, Rate: 5}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(text) + 1 {
		state := filepath.Join(folder, "cut")
		if err := os.WriteFile(state, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := addCell(state, Cell{Initiators: 9, Rate: 7}); err != nil {
			t.Fatal(err)
		}
		want := bytes.Count(text[:cut], []byte("}")) + 1
		cells, err := readCells(state)
		if err != nil || len(cells) != want || cells[want-1].Initiators != 9 || cells[0].Initiators != 1 && want > 1 {
			t.Fatalf("cut after %d bytes the state has %+v, with %v", cut, cells, err)
		}
	}
}

// The paper has 528 cells: 264 for each of two versions of the server. Reports of two versions are one, in which each figure has a name of
// its own.
func TestTwoVersionsMakeTheWholeMatrixOfThePaper(t *testing.T) {
	t.Parallel()
	reportOf := func(version string) Report {
		b := &bench{Config: Config{Repeat: 1, Duration: time.Second, Matrix: MatrixOptions{All: true}}, settled: map[string]any{}}
		if _, err := b.goOn(t.Context(), version, func(context.Context, Cell) (float64, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		r := Report{Cells: b.cells}
		r.Machine, r.Verdict = machine.Machine{PostgresVersion: version}, &record.Verdict{Grade: record.Pass}
		for _, c := range b.cells {
			r.Results = append(r.Results, Result{System: systemParley, Variant: c.Name(), MessagesPerSecond: 1})
		}
		r.Figures = figures(r.Results)
		return r
	}
	one, other := reportOf("15.20 (Debian 15.20-0+deb12u1)"), reportOf("18.1")
	other.Verdict = &record.Verdict{Grade: record.Warnings, Reasons: []string{"it was loud"}}
	// The state of the second had the cells of the first.
	other.Cells = append(other.Cells, one.Cells...)
	joined := JoinVersions([]Report{one, other})
	names := map[string]bool{}
	for _, f := range joined.Figures {
		names[f.Name] = true
	}
	if len(joined.Cells) != 528 || len(joined.Results) != 528 || len(names) != 528 || !names["3x50, 8192 B, 1 of 150 dialogs, PostgreSQL 18"] {
		t.Errorf("there are %d cells, %d results, and %d names of figures", len(joined.Cells), len(joined.Results), len(names))
	}
	if joined.Verdict.Grade != record.Warnings || !strings.Contains(joined.Verdict.Reasons[0], "PostgreSQL 18: it was loud") ||
		joined.Machine.PostgresVersion != "15.20 (Debian 15.20-0+deb12u1), 18.1" {
		t.Errorf("the verdict is %+v, on %+v", joined.Verdict, joined.Machine)
	}
	if alone := JoinVersions([]Report{one}); len(alone.Figures) != 264 || alone.Figures[0].Name != "1x1, 100 B, 1 dialog" {
		t.Errorf("a report alone is changed: %+v", alone.Figures[0])
	}
}
