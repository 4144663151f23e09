package file

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter/filename"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// prefix is with which the names begin that the adapter gives to files while it works on them.
const prefix = filename.Reserved

// cutOffAfter is how long ago a removal began that is held to be cut off.
const cutOffAfter = time.Minute

// errRemoving is a removal that another node has begun, and may finish.
var errRemoving = errors.New("another node is removing it; if that has ended, it is removed after a minute")

// Settle removes a file that was taken, also where its removal was cut off, so that it has its other name.
func (b *box) Settle(e folder.Entry) error {
	for _, hidden := range b.hidden[e.Hidden()] {
		info, err := b.folder.Lstat(hidden)
		if err != nil {
			continue // it is finished
		}
		if began := identify(info).Changed; began != 0 && time.Since(time.Unix(0, began)) < b.cutOffAfter {
			return errRemoving
		}
		same, err := b.same(hidden, e, false)
		if err != nil {
			return err
		}
		err = b.finish(e, hidden, same)
		if same != nil {
			_ = same.Close()
		}
		if err != nil {
			return err
		}
	}
	same, err := b.same(e.File(), e, true)
	if err != nil || same == nil {
		return err
	}
	defer func() { _ = same.Close() }()
	return b.remove(e, same)
}

// Remove removes, or moves, a file that was taken, and is open. It leaves alone what has come under its name since, and what was written to
// since.
func (b *box) Remove(e folder.Entry, taken folder.File) error {
	opened, is := taken.(*file)
	if !is {
		return fmt.Errorf("the file %s is no file of the folder", e.Path)
	}
	return b.remove(e, opened.File)
}

func (b *box) remove(e folder.Entry, file *os.File) error {
	named, err := b.folder.Lstat(e.File())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("find the file: %w", err)
	}
	if opened, statErr := file.Stat(); err != nil || statErr != nil || !os.SameFile(named, opened) ||
		named.Size() != e.Size || named.ModTime().UnixNano() != e.Modified {
		return statErr
	}
	hidden := e.Hidden() + "-" + rand.Text()
	if err := b.folder.Rename(e.File(), hidden); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another node was faster
		}
		return fmt.Errorf("rename the file: %w", err)
	}
	return b.finish(e, hidden, file)
}

// finish removes, or moves, a file that was renamed, where it is the one that is open. Another one gets its name again.
func (b *box) finish(e folder.Entry, hidden string, file *os.File) error {
	isSame := false
	if file != nil {
		opened, err := file.Stat()
		named, namedErr := b.folder.Lstat(hidden)
		isSame = err == nil && namedErr == nil && os.SameFile(opened, named)
	}
	if !isSame {
		return b.putBack(hidden, e.File())
	}
	if b.markerSuffix != "" {
		if err := b.folder.Remove(e.File() + b.markerSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the marker: %w", err)
		}
	}
	return b.dispose(e, hidden)
}

// same opens a file if it is the one that was taken; nil where it is not. isNamed: it was not renamed, so that the time of its change
// counts.
func (b *box) same(name string, e folder.Entry, isNamed bool) (same *os.File, err error) {
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
	isOther := now.Inode != e.Inode || now.Size != e.Size || now.Modified != e.Modified || isNamed && now.Changed != e.Changed
	if !info.Mode().IsRegular() || isOther {
		return nil, nil
	}
	if now.IsSame(e.Identity) { // its content needs not be read once more
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
func (b *box) dispose(e folder.Entry, hidden string) error {
	if b.moveTo != "" {
		if err := b.linkFree(b.top, path.Join(b.inTop, hidden), path.Join(b.moveTo, path.Base(e.File())), e.Mark()); err != nil {
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
		room := len(name) - len(path.Base(name)) + filename.LongestName - len(ending) - len(mark) - 1
		wanted = stem[:max(min(len(stem), room), 0)] + "~" + mark + ending
	}
}
