package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// identity is by what a file is told from others that have had, or will have, its name. No program can set when a file was changed, so that
// a copy with the times of its original is another file.
type identity struct {
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // nanoseconds since 1970
	Changed  int64  `json:"changed"`  // the same, of its state, 0 where it is not known
	Inode    uint64 `json:"inode"`
	names    uint64
	device   uint64
}

// isSame reports whether two looks saw one file that nobody has written to.
func (i identity) isSame(other identity) bool {
	return i.Size == other.Size && i.Modified == other.Modified && i.Changed == other.Changed && i.Inode == other.Inode
}

// found is a file of a folder.
type found struct {
	path string // from the folder
	identity
}

func (f found) name() string { return path.Base(f.path) }

// box is the folder of a location while it is open. Others may write in it, and can put something else in the place of a name at any
// moment: so every step stays within the folder that was opened, and what was opened is checked before it is read.
type box struct {
	top    *os.Root // the permitted folder that has the folder, and the one to which files are moved
	folder *os.Root
	inTop  string // the path of the folder in it
	moveTo string // the path in it of the folder to which files are moved; empty: they are removed
	// hidden are the files that were being removed when they were listed, by the beginning of their names.
	hidden map[string][]string
}

func (b *box) close() {
	_ = b.top.Close()
	if b.folder != nil {
		_ = b.folder.Close()
	}
}

// openBox opens the folder of a location.
func openBox(p adapter.Permission, folder, moveTo string) (opened *box, err error) {
	top, inTop, err := p.OpenFolder(folder)
	if err != nil {
		return nil, err
	}
	b := &box{top: top, inTop: inTop}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.folder, err = top.OpenRoot(inTop); err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", folder, err)
	}
	if moveTo == "" {
		return b, nil
	}
	if !path.IsAbs(moveTo) {
		moveTo = path.Join(folder, moveTo)
	}
	if err := p.CheckFolder(moveTo); err != nil {
		return nil, err
	}
	rest, isBelow := strings.CutPrefix(path.Clean(moveTo)+"/", strings.TrimSuffix(top.Name(), "/")+"/")
	if !isBelow {
		return nil, fmt.Errorf("files are moved to %s, which is not below %s, as the folder of the location is; "+
			"let move_to name a folder there, or permit one above both with --allow-folder", moveTo, top.Name())
	}
	b.moveTo = path.Clean("./" + rest)
	if b.moveTo == path.Clean(inTop) {
		return nil, fmt.Errorf("files are moved to %s, from where they are taken; let move_to name another folder", moveTo)
	}
	return b, b.checkDevices()
}

// checkDevices returns an error unless files can be moved by renaming them.
func (b *box) checkDevices() error {
	from, err := b.top.Stat(b.inTop)
	if err != nil {
		return fmt.Errorf("find the folder of the location: %w", err)
	}
	to, err := b.top.Stat(b.moveTo)
	if err != nil {
		return fmt.Errorf("find the folder to which files are moved: %w; make it first", err)
	}
	if !to.IsDir() || identify(from).device != identify(to).device {
		return errors.New("files are moved to what is no folder on the same file system; let move_to name one")
	}
	return nil
}

// deepest is how many folders within one another are searched.
const deepest = 32

// list gives the files of the folder that are regular, and each folder and link that it passed over, with the reason. Names that begin with
// a dot are those of files that programs work on.
func (b *box) list(subfolders bool) (files []found, passed map[string]string, err error) {
	passed, b.hidden = map[string]string{}, map[string][]string{}
	var walk func(at string, depth int) error
	walk = func(at string, depth int) error {
		entries, err := b.read(at)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := path.Join(at, entry.Name())
			switch {
			case strings.HasPrefix(entry.Name(), prefix):
				if end := strings.LastIndexByte(name, '-'); entry.Type().IsRegular() {
					b.hidden[name[:end]] = append(b.hidden[name[:end]], name)
				}
			case entry.IsDir():
				if !subfolders || strings.HasPrefix(entry.Name(), ".") || b.moveTo != "" && path.Join(b.inTop, name) == b.moveTo {
					continue
				}
				if depth == deepest {
					passed[name] = "it is too deep"
				} else if err := walk(name, depth+1); err != nil {
					passed[name] = err.Error()
				}
			case entry.Type()&fs.ModeSymlink != 0:
				passed[name] = "it is a link"
			case entry.Type().IsRegular() || entry.Type()&fs.ModeIrregular != 0:
				if info, err := b.folder.Lstat(name); err == nil && info.Mode().IsRegular() {
					files = append(files, found{name, identify(info)})
				}
			}
		}
		return nil
	}
	return files, passed, walk(".", 0)
}

func (b *box) read(folder string) ([]fs.DirEntry, error) {
	opened, err := b.folder.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	defer func() { _ = opened.Close() }()
	entries, err := opened.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	return entries, nil
}

// errChanged is a file that is another one than it was, or is written to.
var errChanged = errors.New("the file has changed while it was read; it is read again when it stands still")

// open opens a file that was found, if it is that one still.
func (b *box) open(f found) (*os.File, error) {
	file, err := b.folder.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("open the file: %w", err)
	case !info.Mode().IsRegular() || !identify(info).isSame(f.identity):
		err = errChanged
	case identify(info).names > 1:
		err = errors.New("the file has another name too, and may be somebody else's; copy it instead of linking it")
	default:
		return file, nil
	}
	_ = file.Close()
	return nil, err
}

// inOrder sorts files by name or by time.
func inOrder(files []found, order string) {
	slices.SortFunc(files, func(a, b found) int {
		if order == byTime {
			if c := cmp.Compare(a.Modified, b.Modified); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.path, b.path)
	})
}

// looks are the files as the last looks saw them, so that one that stands still is known.
type looks map[string]look

type look struct {
	identity
	since time.Time
}

// settled gives those of the files that have stood still for some time, and whether there are others.
func (l *looks) settled(files []found, stableFor time.Duration, now time.Time) (still []found, areOthers bool) {
	seen := make(looks, len(files))
	for _, f := range files {
		before, known := (*l)[f.path]
		if !known || !before.isSame(f.identity) {
			before = look{f.identity, now}
		}
		seen[f.path] = before
		if known && now.Sub(before.since) >= stableFor {
			still = append(still, f)
		} else {
			areOthers = true
		}
	}
	*l = seen
	return still, areOthers
}
