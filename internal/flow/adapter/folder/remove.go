package folder

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// removeTaken removes, or moves, files that were taken, and says so to the ledger. A file that stays is tried again when the ledger is
// asked what is there still.
func (r *Receiver) removeTaken(ctx context.Context, in adapter.Intake, b Box, taken []Candidate) {
	var keys []string
	for _, c := range taken {
		if err := b.Remove(c.Entry, c.file); err != nil {
			r.postpone(c.Found, fmt.Errorf("it was taken, and cannot be removed: %w", err))
			continue
		}
		delete(r.looks, c.Path)
		delete(r.Pauses, c.Path)
		keys = append(keys, c.Input.Key)
	}
	if len(keys) == 0 {
		return
	}
	// A ledger that is away now is told when it is asked the next time what is there still.
	if err := in.Removed(ctx, keys); err != nil && ctx.Err() == nil {
		r.Logger.Warn("it could not be recorded that files are removed", slog.Any("error", err))
	}
}

// settle removes what was taken by a node that has ended since, and what could not be removed then.
func (r *Receiver) settle(ctx context.Context, in adapter.Intake, b Box) error {
	entries, err := in.Taken(ctx)
	if err != nil {
		return fmt.Errorf("ask the ledger what is there still: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	if _, _, err := b.List(r.Settings.Subfolders); err != nil {
		return err
	}
	var removed []string
	for _, one := range entries {
		var e Entry
		if err := json.Unmarshal(one.Entry, &e); err != nil || e.SHA256 == "" || !fs.ValidPath(e.File()) {
			r.Logger.Warn("an entry of the ledger is of no file", slog.String("key", one.Key))
			removed = append(removed, one.Key)
			continue
		}
		if err := b.Settle(e); err != nil {
			r.postpone(Found{Path: e.File()}, fmt.Errorf("it was taken, and cannot be removed: %w", err))
			continue
		}
		removed = append(removed, one.Key)
	}
	if err := in.Removed(ctx, removed); err != nil {
		return fmt.Errorf("record that files are removed: %w", err)
	}
	return nil
}
