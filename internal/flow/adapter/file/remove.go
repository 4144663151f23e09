package file

import (
	"context"
	"crypto/rand"
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

// hidden is how the name begins under which a file is removed, in its folder. No process knows the rest of it before, so that between the
// check whether a file is the one that was taken and its removal no other can come in its place.
func (e entry) hidden() string { return path.Join(path.Dir(e.file()), prefix+"taken-"+e.mark()) }

// mark is that of the file among others of its name.
func (e entry) mark() string {
	sum := sha256.Sum256([]byte(e.key()))
	return hex.EncodeToString(sum[:16])
}

// removeTaken removes, or moves, files that were taken, and says so to the ledger. A file that stays is tried again when the ledger is
// asked what is there still.
func (r *receiver) removeTaken(ctx context.Context, in adapter.Intake, b *box, taken []candidate) {
	var keys []string
	for _, c := range taken {
		if err := r.remove(b, c.entry, c.file); err != nil {
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
	if len(entries) == 0 {
		return nil
	}
	if _, _, err := b.list(r.settings.Subfolders); err != nil {
		return err
	}
	var removed []string
	for _, one := range entries {
		var e entry
		if err := json.Unmarshal(one.Entry, &e); err != nil || e.SHA256 == "" || !fs.ValidPath(e.file()) {
			r.logger.Warn("an entry of the ledger is of no file", slog.String("key", one.Key))
			removed = append(removed, one.Key)
			continue
		}
		if err := r.removeAll(b, e); err != nil {
			r.postpone(found{path: e.file()}, fmt.Errorf("it was taken, and cannot be removed: %w", err))
			continue
		}
		removed = append(removed, one.Key)
	}
	if err := in.Removed(ctx, removed); err != nil {
		return fmt.Errorf("record that files are removed: %w", err)
	}
	return nil
}

// cutOffAfter is how long ago a removal began that is held to be cut off.
const cutOffAfter = time.Minute

// errRemoving is a removal that another node has begun, and may finish.
var errRemoving = errors.New("another node is removing it; if that has ended, it is removed after a minute")

// removeAll removes a file that was taken, also where its removal was cut off, so that it has its other name.
func (r *receiver) removeAll(b *box, e entry) error {
	for _, hidden := range b.hidden[e.hidden()] {
		info, err := b.folder.Lstat(hidden)
		if err != nil {
			continue // it is finished
		}
		if began := identify(info).Changed; began != 0 && time.Since(time.Unix(0, began)) < r.cutOffAfter {
			return errRemoving
		}
		file, err := b.same(hidden, e, false)
		if err != nil {
			return err
		}
		err = r.finish(b, e, hidden, file)
		if file != nil {
			_ = file.Close()
		}
		if err != nil {
			return err
		}
	}
	file, err := b.same(e.file(), e, true)
	if err != nil || file == nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return r.remove(b, e, file)
}

// remove removes, or moves, a file that was taken, and is open. It leaves alone what has come under its name since, and what was written to
// since.
func (r *receiver) remove(b *box, e entry, file *os.File) error {
	named, err := b.folder.Lstat(e.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find the file: %w", err)
	}
	if opened, statErr := file.Stat(); err != nil || statErr != nil || !os.SameFile(named, opened) ||
		named.Size() != e.Size || named.ModTime().UnixNano() != e.Modified {
		return statErr
	}
	hidden := e.hidden() + "-" + rand.Text()
	if err := b.folder.Rename(e.file(), hidden); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another node was faster
		}
		return fmt.Errorf("rename the file: %w", err)
	}
	return r.finish(b, e, hidden, file)
}

// finish removes, or moves, a file that was renamed, where it is the one that is open. Another one gets its name again.
func (r *receiver) finish(b *box, e entry, hidden string, file *os.File) error {
	isSame := false
	if file != nil {
		opened, err := file.Stat()
		named, namedErr := b.folder.Lstat(hidden)
		isSame = err == nil && namedErr == nil && os.SameFile(opened, named)
	}
	if !isSame {
		return b.putBack(hidden, e.file())
	}
	if r.settings.Ready == marker {
		if err := b.folder.Remove(e.file() + r.settings.MarkerSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the marker: %w", err)
		}
	}
	return b.dispose(e, hidden)
}

// same opens a file if it is the one that was taken; nil where it is not. isNamed: it was not renamed, so that the time of its change
// counts.
func (b *box) same(name string, e entry, isNamed bool) (same *os.File, err error) {
	file, err := b.folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if linked, linkErr := b.folder.Lstat(name); errors.Is(linkErr, fs.ErrNotExist) || linkErr == nil && !linked.Mode().IsRegular() {
			return nil, nil
		}
		return nil, fmt.Errorf("open the file: %w", err)
	}
	defer func() {
		if same == nil {
			_ = file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	now := identify(info)
	if !info.Mode().IsRegular() || now.Size != e.Size || now.Modified != e.Modified || isNamed && now.Changed != e.Changed {
		return nil, nil
	}
	if now.isSame(e.identity) { // its content needs not be read once more
		return file, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return nil, nil
	}
	return file, nil
}

// putBack gives a file its name again, or one beside it where the name is taken.
func (b *box) putBack(from, name string) error {
	if err := b.linkFree(b.folder, from, name, strconv.FormatInt(time.Now().UnixNano(), 10)); err != nil {
		return fmt.Errorf("give a file its name again that is not the one that was taken: %w", err)
	}
	return b.unlink(from)
}

// dispose removes or moves a file under its other name.
func (b *box) dispose(e entry, hidden string) error {
	if b.moveTo != "" {
		if err := b.linkFree(b.top, path.Join(b.inTop, hidden), path.Join(b.moveTo, path.Base(e.file())), e.mark()); err != nil {
			return fmt.Errorf("move the file: %w", err)
		}
	}
	return b.unlink(hidden)
}

func (b *box) unlink(name string) error {
	if err := b.folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the file: %w", err)
	}
	return nil
}

// linkFree gives a file one more name, with a mark behind it where there is another file of that name: unlike a rename, a link takes the
// place of none. A file system without links renames, when nothing is there.
func (b *box) linkFree(root *os.Root, from, name, mark string) error {
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
		if wanted != name {
			mark += "~"
		}
		stem := strings.TrimSuffix(name, ending)
		wanted = stem[:max(min(len(stem), len(name)-len(path.Base(name))+longestName-len(ending)-len(mark)-1), 0)] + "~" + mark + ending
	}
}
