package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// prefix is with which the names begin that the adapter gives to files while it works on them.
const prefix = ".parley-"

// hidden is the name under which a file is removed. Others know it not, so that between the check whether a file is the one that was taken
// and its removal no program can put another in its place.
func (e entry) hidden() string {
	sum := sha256.Sum256([]byte(e.key()))
	return path.Join(path.Dir(e.file()), prefix+"taken-"+hex.EncodeToString(sum[:16]))
}

// removeTaken removes, or moves, files that were taken, and says so to the ledger. A file that stays is tried again when the ledger is
// asked what is there still.
func (r *receiver) removeTaken(ctx context.Context, in adapter.Intake, b *box, taken []candidate) {
	var keys []string
	for _, c := range taken {
		if err := r.remove(b, c.entry); err != nil {
			r.postpone(c.found, fmt.Errorf("it was taken, and cannot be removed: %w", err))
			continue
		}
		delete(r.looks, c.path)
		delete(r.pauses, c.path)
		keys = append(keys, c.input.Key)
	}
	if len(keys) == 0 {
		return
	}
	// A ledger that is away now is told when it is asked the next time what is there still.
	if err := in.Removed(ctx, keys); err != nil && ctx.Err() == nil {
		r.logger.Warn("it could not be recorded that files are removed", slog.Any("error", err))
	}
}

// settle removes what was taken by a node that has ended since, and what could not be removed then.
func (r *receiver) settle(ctx context.Context, in adapter.Intake, b *box) error {
	entries, err := in.Taken(ctx)
	if err != nil {
		return fmt.Errorf("ask the ledger what is there still: %w", err)
	}
	var removed []string
	for _, one := range entries {
		var e entry
		if err := json.Unmarshal(one.Entry, &e); err != nil || e.SHA256 == "" || !fs.ValidPath(e.file()) {
			r.logger.Warn("an entry of the ledger is of no file", slog.String("key", one.Key))
			removed = append(removed, one.Key)
			continue
		}
		if err := r.remove(b, e); err != nil {
			r.postpone(found{path: e.file()}, fmt.Errorf("it was taken, and cannot be removed: %w", err))
			continue
		}
		removed = append(removed, one.Key)
	}
	if len(removed) == 0 {
		return nil
	}
	if err := in.Removed(ctx, removed); err != nil {
		return fmt.Errorf("record that files are removed: %w", err)
	}
	return nil
}

// remove removes, or moves, a file that was taken. It leaves alone what has come under its name since.
func (r *receiver) remove(b *box, e entry) error {
	// A removal that was cut off has left the file under its other name.
	if _, err := b.folder.Lstat(e.hidden()); errors.Is(err, fs.ErrNotExist) {
		is, err := b.is(e.file(), e, true)
		if err != nil || !is {
			return err
		}
		if err := b.folder.Rename(e.file(), e.hidden()); errors.Is(err, fs.ErrNotExist) {
			return nil // another node was faster
		} else if err != nil {
			return fmt.Errorf("rename the file: %w", err)
		}
	}
	is, err := b.is(e.hidden(), e, false)
	if err != nil {
		return err
	}
	if !is {
		return b.putBack(e.hidden(), e.file())
	}
	if r.settings.Ready == marker {
		if err := b.folder.Remove(e.file() + r.settings.MarkerSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the marker: %w", err)
		}
	}
	return b.dispose(e)
}

// is reports whether a name is that of the file that was taken. isNamed: the file was not renamed, so that the time of its change counts,
// unless it has kept its inode, as when its permissions were changed.
func (b *box) is(name string, e entry, isNamed bool) (bool, error) {
	file, err := b.folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if linked, linkErr := b.folder.Lstat(name); errors.Is(linkErr, fs.ErrNotExist) || linkErr == nil && !linked.Mode().IsRegular() {
			return false, nil
		}
		return false, fmt.Errorf("open the file: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("open the file: %w", err)
	}
	now := identify(info)
	if !info.Mode().IsRegular() || now.Size != e.Size || now.Modified != e.Modified ||
		isNamed && now.Changed != e.Changed && now.Inode != e.Inode {
		return false, nil
	}
	// One that has kept its inode as well, and was renamed by us alone, needs not be read once more.
	if now.isSame(e.identity) || !isNamed && now.Inode == e.Inode {
		return true, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false, fmt.Errorf("read the file: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == e.SHA256, nil
}

// putBack gives a file its name again, or one beside it where the name is taken.
func (b *box) putBack(from, name string) error {
	if err := b.linkFree(b.folder, from, name); err != nil {
		return fmt.Errorf("give a file its name again that is not the one that was taken: %w", err)
	}
	return b.unlink(from)
}

// dispose removes or moves a file under its other name.
func (b *box) dispose(e entry) error {
	if b.moveTo != "" {
		if err := b.linkFree(b.top, path.Join(b.inTop, e.hidden()), path.Join(b.moveTo, path.Base(e.file()))); err != nil {
			return fmt.Errorf("move the file: %w", err)
		}
	}
	return b.unlink(e.hidden())
}

func (b *box) unlink(name string) error {
	if err := b.folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the file: %w", err)
	}
	return nil
}

// linkFree gives a file one more name, and a time behind it where there is another file of that name: unlike a rename, a link takes the
// place of none. A file system without links renames, when nothing is there.
func (b *box) linkFree(root *os.Root, from, name string) error {
	ending := path.Ext(name)
	wanted := name
	for {
		err := root.Link(from, wanted)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist):
			if _, lstatErr := root.Lstat(from); errors.Is(lstatErr, fs.ErrNotExist) {
				return nil // another node was faster
			}
			return err
		case errors.Is(err, fs.ErrExist):
			first, firstErr := root.Lstat(from)
			second, secondErr := root.Lstat(wanted)
			if firstErr == nil && secondErr == nil && os.SameFile(first, second) {
				return nil
			}
		case errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported):
			if _, lstatErr := root.Lstat(wanted); errors.Is(lstatErr, fs.ErrNotExist) {
				return root.Rename(from, wanted)
			}
		default:
			return err
		}
		wanted = strings.TrimSuffix(name, ending) + "~" + strconv.FormatInt(time.Now().UnixNano(), 10) + ending
	}
}
