package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// identity is that of a file, with what its file system says besides.
type identity struct {
	folder.Identity
	names, device uint64
}

// box is the folder of a location while it is open. Others may write in it, and can put something else in the place of a name at any
// moment: so every step stays within the folder that was opened, and what was opened is checked before it is read.
type box struct {
	top          *os.Root // the permitted folder that has the folder, and the one to which files are moved
	folder       *os.Root
	inTop        string // the path of the folder in it
	moveTo       string // the path in it of the folder to which files are moved; empty: they are removed
	markerSuffix string // of markers that are removed with their files; empty: there are none
	cutOffAfter  time.Duration
	// hidden are the files that were being removed when they were listed, by the beginning of their names.
	hidden map[string][]string
}

// Close closes the folder.
func (b *box) Close() {
	_ = b.top.Close()
	if b.folder != nil {
		_ = b.folder.Close()
	}
}

// openBox opens the folder of a location.
func openBox(p adapter.Permission, address, moveTo string) (opened *box, err error) {
	top, inTop, err := p.OpenFolder(address)
	if err != nil {
		return nil, err
	}
	b := &box{top: top, inTop: inTop, cutOffAfter: cutOffAfter}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.folder, err = top.OpenRoot(inTop); err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", address, err)
	}
	if moveTo == "" {
		return b, nil
	}
	if !path.IsAbs(moveTo) {
		moveTo = path.Join(address, moveTo)
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

// List gives the files of the folder that are regular, and each folder and link that it passed over, with the reason. Names that begin with
// a dot are those of files that programs work on.
func (b *box) List(subfolders bool) (files []folder.Found, passed map[string]string, err error) {
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
					files = append(files, folder.Found{Path: name, Identity: identify(info).Identity})
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

// Open opens a file that was found, if it is that one still.
func (b *box) Open(f folder.Found) (folder.File, error) {
	opened, err := b.folder.OpenFile(f.Path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	info, err := opened.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("open the file: %w", err)
	case !info.Mode().IsRegular() || !identify(info).IsSame(f.Identity):
		err = folder.ErrChanged
	case identify(info).names > 1:
		err = errors.New("the file has another name too, and may be somebody else's; copy it instead of linking it")
	default:
		return &file{opened}, nil
	}
	_ = opened.Close()
	return nil, err
}

// file is a file of the folder that is open.
type file struct{ *os.File }

// Unchanged returns an error when a file is not any more what was found.
func (f *file) Unchanged(found folder.Found) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if !identify(info).IsSame(found.Identity) {
		return folder.ErrChanged
	}
	return nil
}
