package folder

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Box is a folder while it is open.
type Box interface {
	// List gives the files of the folder that are regular, and each folder and link that it passed over, with the reason.
	List(subfolders bool) (files []Found, passed map[string]string, err error)
	// Open opens a file that was found, if it is that one still; otherwise the error is [ErrChanged].
	Open(f Found) (File, error)
	// Remove removes, or moves, a file that was taken, and is open. It leaves alone what has come under its name since.
	Remove(e Entry, file File) error
	// Settle does the same with one that is not open, also where its removal was cut off.
	Settle(e Entry) error
	Close()
}

// File is a file that is open, so that it is known when another one has its name.
type File interface {
	io.ReadCloser
	// Unchanged returns [ErrChanged] when it is not any more what was found.
	Unchanged(f Found) error
}

// ErrChanged is a file that is another one than it was, or is written to.
var ErrChanged = errors.New("the file has changed while it was read; it is read again when it stands still")

// Receiver takes the files of a folder in.
type Receiver struct {
	Settings Settings
	Folder   string // as people know it
	Mask     string
	Logger   *slog.Logger
	// OpenBox opens the folder.
	OpenBox func(ctx context.Context) (Box, error)

	// Pauses are those of files that could not be read, by their paths.
	Pauses map[string]Pause
	// Passed has what was reported as passed over, and why.
	Passed map[string]string
	// Settled is when the ledger was asked last which sources are there still.
	Settled time.Time

	looks looks
}

// Pause is how long a file is left alone that could not be read.
type Pause struct {
	Until  time.Time
	Reason string
	length time.Duration
}

// settleInterval is how often the ledger is asked which sources are there still: those of a node that is gone.
const settleInterval = 30 * time.Second

// Run takes files in until ctx ends.
func (r *Receiver) Run(ctx context.Context, in adapter.Intake) error {
	for ctx.Err() == nil {
		pause, err := r.Poll(ctx, in)
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// Poll takes in what is there, and gives how long the next look can wait.
func (r *Receiver) Poll(ctx context.Context, in adapter.Intake) (time.Duration, error) {
	if err := in.Await(ctx); err != nil {
		return 0, err
	}
	b, err := r.OpenBox(ctx)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	if time.Since(r.Settled) >= settleInterval {
		if err := r.settle(ctx, in, b); err != nil {
			return 0, err
		}
		r.Settled = time.Now()
	}
	files, areOthers, err := r.Ready(b)
	if err != nil {
		return 0, err
	}
	for len(files) > 0 && ctx.Err() == nil {
		if err := in.Await(ctx); err != nil {
			return 0, err
		}
		batch, rest := r.Batch(ctx, b, files)
		if err := r.Take(ctx, in, b, batch); err != nil {
			return 0, err
		}
		files = rest
	}
	wait := time.Duration(r.Settings.PollInterval)
	if areOthers {
		wait = min(wait, time.Duration(r.Settings.StableFor))
	}
	return wait, nil
}

// Ready gives the files that can be taken, in their order, and whether others have to stand still first.
func (r *Receiver) Ready(b Box) (files []Found, areOthers bool, err error) {
	all, passed, err := b.List(r.Settings.Subfolders)
	if err != nil {
		return nil, false, err
	}
	r.report(passed)
	markers := map[string]bool{}
	if r.Settings.Ready == Marker {
		for _, f := range all {
			markers[f.Path] = true
		}
	}
	for _, f := range all {
		isMarker := r.Settings.Ready == Marker && strings.HasSuffix(f.Name(), r.Settings.MarkerSuffix)
		if isMarker || !r.matches(f.Name()) || r.Settings.Ready == Marker && !markers[f.Path+r.Settings.MarkerSuffix] {
			continue
		}
		files = append(files, f)
	}
	if r.Settings.Ready == Stable {
		files, areOthers = r.looks.settled(files, time.Duration(r.Settings.StableFor), time.Now())
	}
	inOrder(files, r.Settings.Order)
	return r.due(files), areOthers, nil
}

// matches reports whether a mask names a file. A mask that begins with no dot names none that does: programs write such files while they
// are not complete.
func (r *Receiver) matches(name string) bool {
	mask := r.Mask
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(mask, ".") {
		return false
	}
	if r.Settings.IgnoreCase {
		name, mask = strings.ToLower(name), strings.ToLower(mask)
	}
	matched, err := path.Match(mask, name)
	return err == nil && matched
}

// due leaves out the files that could not be read a short time ago.
func (r *Receiver) due(files []Found) []Found {
	now := time.Now()
	kept := make(map[string]Pause, len(r.Pauses))
	var due []Found
	for _, f := range files {
		p, isPaused := r.Pauses[f.Path]
		if isPaused {
			kept[f.Path] = p
		}
		if !isPaused || !now.Before(p.Until) {
			due = append(due, f)
		}
	}
	r.Pauses = kept
	return due
}

// The first and the longest pause of a file that could not be read.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// postpone leaves a file alone for some time, and reports why when the reason is new.
func (r *Receiver) postpone(f Found, err error) {
	before := r.Pauses[f.Path]
	next := Pause{length: min(max(2*before.length, firstPause), longestPause), Reason: err.Error()}
	next.Until = time.Now().Add(next.length)
	if r.Pauses == nil {
		r.Pauses = map[string]Pause{}
	}
	r.Pauses[f.Path] = next
	if before.Reason != next.Reason {
		r.Logger.Warn("a file cannot be taken, and is tried again", slog.String("file", path.Join(r.Folder, f.Path)), slog.Any("error", err))
	}
}

// report says once of each folder and link why it is passed over.
func (r *Receiver) report(passed map[string]string) {
	for name, reason := range passed {
		if r.Passed[name] != reason && (r.matches(path.Base(name)) || reason != "it is a link") {
			r.Logger.Warn("a file or folder is passed over", slog.String("file", path.Join(r.Folder, name)), slog.String("reason", reason))
		}
	}
	r.Passed = passed
}
