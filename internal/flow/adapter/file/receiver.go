package file

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// receiver takes the files of a folder in.
type receiver struct {
	settings     receiveSettings
	folder, mask string
	permission   adapter.Permission
	logger       *slog.Logger

	looks   looks
	pauses  map[string]pause  // of files that could not be read
	passed  map[string]string // what was reported as passed over
	settled time.Time         // when the ledger was asked last which sources are there still

	cutOffAfter time.Duration
}

// pause is how long a file is left alone that could not be read.
type pause struct {
	until  time.Time
	length time.Duration
	reason string
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	if err := asError(check(adapter.Receive, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	r := &receiver{
		settings: receiveDefaults(), permission: e.Permission, logger: e.Logger, looks: looks{}, pauses: map[string]pause{},
		passed: map[string]string{}, cutOffAfter: cutOffAfter,
	}
	r.folder, r.mask, _ = place(e.Address)
	adapter.CheckSettings(e.Settings, &r.settings)
	return r, r.permission.CheckFolder(r.folder)
}

// settleInterval is how often the ledger is asked which sources are there still: those of a node that is gone.
const settleInterval = 30 * time.Second

// Run takes files in until ctx ends.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	for ctx.Err() == nil {
		pause, err := r.poll(ctx, in)
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

// poll takes in what is there, and gives how long the next look can wait.
func (r *receiver) poll(ctx context.Context, in adapter.Intake) (time.Duration, error) {
	if err := in.Await(ctx); err != nil {
		return 0, err
	}
	b, err := openBox(r.permission, r.folder, r.settings.MoveTo)
	if err != nil {
		return 0, err
	}
	defer b.close()
	if info, err := b.folder.Lstat(r.mask); err == nil && info.IsDir() && !strings.ContainsAny(r.mask, `*?[\`) {
		address := path.Join(r.folder, r.mask)
		return 0, fmt.Errorf("the address %s is a folder; write %s/* for the files in it", address, address)
	}
	if time.Since(r.settled) >= settleInterval {
		if err := r.settle(ctx, in, b); err != nil {
			return 0, err
		}
		r.settled = time.Now()
	}
	files, areOthers, err := r.ready(b)
	if err != nil {
		return 0, err
	}
	for len(files) > 0 && ctx.Err() == nil {
		if err := in.Await(ctx); err != nil {
			return 0, err
		}
		batch, rest := r.batch(ctx, b, files)
		if err := r.take(ctx, in, b, batch); err != nil {
			return 0, err
		}
		files = rest
	}
	wait := time.Duration(r.settings.PollInterval)
	if areOthers {
		wait = min(wait, time.Duration(r.settings.StableFor))
	}
	return wait, nil
}

// ready gives the files that can be taken, in their order, and whether others have to stand still first.
func (r *receiver) ready(b *box) (files []found, areOthers bool, err error) {
	all, passed, err := b.list(r.settings.Subfolders)
	if err != nil {
		return nil, false, err
	}
	r.report(passed)
	markers := map[string]bool{}
	if r.settings.Ready == marker {
		for _, f := range all {
			markers[f.path] = true
		}
	}
	for _, f := range all {
		isMarker := r.settings.Ready == marker && strings.HasSuffix(f.name(), r.settings.MarkerSuffix)
		if isMarker || !r.matches(f.name()) || r.settings.Ready == marker && !markers[f.path+r.settings.MarkerSuffix] {
			continue
		}
		files = append(files, f)
	}
	if r.settings.Ready == stable {
		files, areOthers = r.looks.settled(files, time.Duration(r.settings.StableFor), time.Now())
	}
	inOrder(files, r.settings.Order)
	return r.due(files), areOthers, nil
}

// matches reports whether a mask names a file. A mask that begins with no dot names none that does: programs write such files while they
// are not complete.
func (r *receiver) matches(name string) bool {
	mask := r.mask
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(mask, ".") {
		return false
	}
	if r.settings.IgnoreCase {
		name, mask = strings.ToLower(name), strings.ToLower(mask)
	}
	matched, err := path.Match(mask, name)
	return err == nil && matched
}

// due leaves out the files that could not be read a short time ago.
func (r *receiver) due(files []found) []found {
	now := time.Now()
	kept := make(map[string]pause, len(r.pauses))
	var due []found
	for _, f := range files {
		p, isPaused := r.pauses[f.path]
		if isPaused {
			kept[f.path] = p
		}
		if !isPaused || !now.Before(p.until) {
			due = append(due, f)
		}
	}
	r.pauses = kept
	return due
}

// The first and the longest pause of a file that could not be read.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// postpone leaves a file alone for some time, and reports why when the reason is new.
func (r *receiver) postpone(f found, err error) {
	before := r.pauses[f.path]
	next := pause{length: min(max(2*before.length, firstPause), longestPause), reason: err.Error()}
	next.until = time.Now().Add(next.length)
	r.pauses[f.path] = next
	if before.reason != next.reason {
		r.logger.Warn("a file cannot be taken, and is tried again", slog.String("file", path.Join(r.folder, f.path)), slog.Any("error", err))
	}
}

// report says once of each folder and link why it is passed over.
func (r *receiver) report(passed map[string]string) {
	for name, reason := range passed {
		if r.passed[name] != reason && (r.matches(path.Base(name)) || reason != "it is a link") {
			r.logger.Warn("a file or folder is passed over", slog.String("file", path.Join(r.folder, name)), slog.String("reason", reason))
		}
	}
	r.passed = passed
}

// entry describes a file in the ledger.
type entry struct {
	Path   string `json:"path"`          // from the folder; printable
	Raw    []byte `json:"raw,omitempty"` // the path where it is no UTF-8
	SHA256 string `json:"sha256"`
	identity
}

func (e entry) file() string {
	if e.Raw != nil {
		return string(e.Raw)
	}
	return e.Path
}

func (e entry) encoded() json.RawMessage {
	encoded, err := json.Marshal(e)
	if err != nil { // texts and numbers can be encoded
		panic(err)
	}
	return encoded
}
