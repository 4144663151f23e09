package sftp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/parley-broker/parley/internal/flow/adapter/filename"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// box is the folder of a location on a server. A file has no number there by which it is known again, so that it is known by its content.
type box struct {
	ctx          context.Context //nolint:containedctx // it is that of the poll for which the folder is open
	conn         *connection
	folder       string
	moveTo       string // empty: files are removed
	markerSuffix string // of markers that are removed with their files; empty: there are none
	// hidden are the files that were being removed when they were listed, by the beginning of their names.
	hidden map[string][]string
}

// Close leaves the session open for the next poll.
func (b *box) Close() {}

func (b *box) path(name string) string { return path.Join(b.folder, name) }

func identify(info fs.FileInfo) folder.Identity {
	return folder.Identity{Size: info.Size(), Modified: info.ModTime().UnixNano()}
}

// deepest is how many folders within one another are searched.
const deepest = 32

// List gives the files of the folder that are regular, and each folder and link that it passed over, with the reason.
func (b *box) List(subfolders bool) (files []folder.Found, passed map[string]string, err error) {
	passed, b.hidden = map[string]string{}, map[string][]string{}
	var walk func(at string, depth int) error
	walk = func(at string, depth int) error {
		var entries []fs.FileInfo
		err := b.conn.call(b.ctx, func() (err error) {
			entries, err = b.conn.ReadDirContext(b.ctx, b.path(at))
			return err
		})
		if err != nil {
			return fmt.Errorf("read the folder %s: %w", b.path(at), err)
		}
		for _, entry := range entries {
			name := path.Join(at, entry.Name())
			isRegular := entry.Mode().IsRegular()
			switch {
			case strings.ContainsAny(entry.Name(), "/\x00") || entry.Name() == "." || entry.Name() == "..":
			case strings.HasPrefix(entry.Name(), filename.Reserved):
				if end := strings.LastIndexByte(name, '-'); isRegular {
					b.hidden[name[:end]] = append(b.hidden[name[:end]], name)
				}
			case entry.IsDir():
				if !subfolders || strings.HasPrefix(entry.Name(), ".") || b.path(name) == b.moveTo {
					continue
				}
				if depth == deepest {
					passed[name] = "it is too deep"
				} else if err := walk(name, depth+1); err != nil {
					passed[name] = err.Error()
				}
			case entry.Mode()&fs.ModeSymlink != 0:
				passed[name] = "it is a link"
			case isRegular:
				files = append(files, folder.Found{Path: name, Identity: identify(entry)})
			}
		}
		return nil
	}
	return files, passed, walk(".", 0)
}

// lstat gives what the server says of a file; nil where there is none.
func (b *box) lstat(name string) (info fs.FileInfo, err error) {
	err = b.conn.call(b.ctx, func() (err error) {
		info, err = b.conn.Lstat(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the file %s: %w", name, err)
	}
	return info, nil
}

// file is a file of the folder that is open.
type file struct {
	box    *box
	ctx    context.Context //nolint:containedctx // it is that of the one who reads
	opened *sftp.File
}

// Open opens a file that was found, if it is that one still.
func (b *box) Open(f folder.Found) (folder.File, error) {
	info, err := b.lstat(b.path(f.Path))
	if err != nil {
		return nil, err
	}
	if info == nil || !info.Mode().IsRegular() || !identify(info).IsSame(f.Identity) {
		return nil, folder.ErrChanged
	}
	opened := &file{box: b, ctx: b.ctx}
	err = b.conn.call(b.ctx, func() (err error) {
		opened.opened, err = b.conn.Open(b.path(f.Path))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	if err := opened.Unchanged(f); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// Read reads a part, within the time of a call.
func (f *file) Read(p []byte) (n int, err error) {
	var readErr error
	err = f.box.conn.call(f.ctx, func() error {
		n, readErr = f.opened.Read(p)
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		return readErr
	})
	if err != nil {
		return n, fmt.Errorf("read the file: %w", err)
	}
	return n, readErr
}

// Close gives the file back to the server.
func (f *file) Close() error {
	return f.box.conn.call(context.WithoutCancel(f.ctx), f.opened.Close)
}

// Unchanged returns an error when the file is not any more what was found.
func (f *file) Unchanged(found folder.Found) error {
	var info fs.FileInfo
	err := f.box.conn.call(f.ctx, func() (err error) {
		info, err = f.opened.Stat()
		return err
	})
	if err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if !identify(info).IsSame(found.Identity) {
		return folder.ErrChanged
	}
	return nil
}

// Remove removes, or moves, a file that was taken. It leaves alone what has come under its name since, and what was written to since.
func (b *box) Remove(e folder.Entry, _ folder.File) error {
	if isSame, err := b.looksSame(b.path(e.File()), e); err != nil || !isSame {
		return err
	}
	hidden := e.Hidden() + "-" + rand.Text()
	err := b.conn.call(b.ctx, func() error { return b.conn.Rename(b.path(e.File()), b.path(hidden)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another node was faster
	}
	if err != nil {
		return fmt.Errorf("rename the file: %w", err)
	}
	return b.finish(e, hidden)
}

// Settle removes a file that was taken, also where its removal was cut off, so that it has its other name.
func (b *box) Settle(e folder.Entry) error {
	for _, hidden := range b.hidden[e.Hidden()] {
		if err := b.finish(e, hidden); err != nil {
			return err
		}
	}
	return b.Remove(e, nil)
}

// looksSame reports whether a file has size and time of the one that was taken.
func (b *box) looksSame(name string, e folder.Entry) (bool, error) {
	info, err := b.lstat(name)
	return err == nil && info != nil && info.Mode().IsRegular() && identify(info).IsSame(e.Identity), err
}

// finish removes, or moves, a file that was renamed, where its content is what was taken. Another one gets its name again. Two nodes may do
// this with one file.
func (b *box) finish(e folder.Entry, hidden string) error {
	isSame, err := b.looksSame(b.path(hidden), e)
	if err == nil && isSame {
		var sum string
		sum, err = b.conn.hash(b.ctx, b.path(hidden))
		isSame = sum == e.SHA256
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another node was faster
	}
	if err != nil {
		return err
	}
	if !isSame {
		return b.rename(b.path(hidden), b.path(e.File()), fmt.Sprint(time.Now().UnixNano()))
	}
	if b.markerSuffix != "" {
		if err := b.remove(b.path(e.File() + b.markerSuffix)); err != nil {
			return err
		}
	}
	if b.moveTo == "" {
		return b.remove(b.path(hidden))
	}
	return b.rename(b.path(hidden), path.Join(b.moveTo, path.Base(e.File())), e.Mark())
}

func (b *box) remove(name string) error {
	err := b.conn.call(b.ctx, func() error { return b.conn.Remove(name) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the file %s: %w", name, err)
	}
	return nil
}

// rename gives a file another name, with a mark in it where there is another file of that name.
func (b *box) rename(from, name, mark string) error {
	ending := path.Ext(name)
	wanted := name
	for {
		there, err := b.lstat(wanted)
		if err != nil {
			return err
		}
		if there == nil {
			err := b.conn.call(b.ctx, func() error { return b.conn.Rename(from, wanted) })
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				return nil // it has its name, or another node was faster
			}
			if there, statErr := b.lstat(wanted); statErr != nil || there == nil {
				return fmt.Errorf("rename the file to %s: %w", wanted, err)
			}
		}
		if wanted != name {
			mark += "~"
		}
		stem := strings.TrimSuffix(name, ending)
		room := len(name) - len(path.Base(name)) + filename.LongestName - len(ending) - len(mark) - 1
		wanted = stem[:max(min(len(stem), room), 0)] + "~" + mark + ending
	}
}

// hash gives the hash of a file of the server.
func (c *connection) hash(ctx context.Context, name string) (string, error) {
	var opened *sftp.File
	err := c.call(ctx, func() (err error) {
		opened, err = c.OpenFile(name, os.O_RDONLY)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("open the file %s: %w", name, err)
	}
	f := &file{box: &box{conn: c}, ctx: ctx, opened: opened}
	sum := sha256.New()
	_, err = io.CopyBuffer(sum, f, make([]byte, 256<<10))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
