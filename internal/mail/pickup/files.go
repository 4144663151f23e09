package pickup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// files are the files of a folder in which others may write. They can put something else in the place of a name at any moment: so every
// step stays within the folder that was opened, follows no link, and what was opened is checked before it is read.
type files struct{ root *os.Root }

func openFiles(open func() (*os.Root, error)) (files, error) {
	root, err := open()
	if err != nil {
		return files{}, fmt.Errorf("open the folder of messages: %w", err)
	}
	return files{root}, nil
}

func (b files) close() { _ = b.root.Close() }

// names gives the regular files with an ending. Links are passed over: they could lead to what their owner may not read. So are
// files that have other names too, unless they may be of a rename that was cut off: such a name may be a link to somebody else's file.
func (b files) names(ending string, alsoLinked bool) (names []string, err error) {
	folder, err := b.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("read the folder of messages: %w", err)
	}
	defer func() { _ = folder.Close() }()
	entries, err := folder.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("read the folder of messages: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.EqualFold(filepath.Ext(entry.Name()), ending) {
			continue
		}
		info, err := b.root.Lstat(entry.Name())
		if err == nil && info.Mode().IsRegular() && (alsoLinked || !hasOtherNames(info)) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// open opens a file for reading, if it is a regular one with this name alone. A link, a pipe or a device is none, and keeps nobody waiting.
func (b files) open(name string) (file *os.File, info fs.FileInfo, err error) {
	file, err = b.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if linked, linkErr := b.root.Lstat(name); linkErr == nil && !linked.Mode().IsRegular() {
			return nil, nil, &fileError{errors.New("it is no regular file")}
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) { // what is this file's keeps no other waiting
			return nil, nil, &fileError{fmt.Errorf("open a message file: %w", err)}
		}
		return nil, nil, fmt.Errorf("open a message file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	named, err := b.root.Lstat(name)
	if err != nil {
		return nil, nil, fmt.Errorf("open a message file: %w", err)
	}
	info, err = file.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("open a message file: %w", err)
	case !info.Mode().IsRegular() || !os.SameFile(info, named):
		return nil, nil, &fileError{errors.New("it is no regular file")}
	case hasOtherNames(info):
		return nil, nil, &fileError{errors.New("it has another name too, and may be somebody else's")}
	}
	return file, info, nil
}

// clash is the text that rename puts behind a name that is taken.
var clash = regexp.MustCompile(`(~[0-9]{19,20})+$`)

// rename gives a file another ending, and a time where there is such a file.
func (b files) rename(name, ending string) (renamed string, err error) {
	stem := mark.ReplaceAllString(strings.TrimSuffix(name, filepath.Ext(name)), "")
	renamed = stem + ending
	for { // unlike a rename, a link takes the place of no file
		err := b.root.Link(name, renamed)
		isTaken := errors.Is(err, os.ErrExist)
		if err != nil && !isTaken {
			return "", fmt.Errorf("rename a message file: %w", err)
		}
		// The other file may be this one, where a process ended before it took the old name away.
		if !isTaken || b.isSame(name, renamed) {
			break
		}
		renamed = clash.ReplaceAllString(stem, "") + "~" + strconv.FormatInt(time.Now().UnixNano(), 10) + ending
	}
	if err := b.root.Remove(name); err != nil {
		return "", fmt.Errorf("rename a message file: %w", err)
	}
	return renamed, nil
}

func (b files) isSame(one, other string) bool {
	first, errFirst := b.root.Lstat(one)
	second, errSecond := b.root.Lstat(other)
	return errFirst == nil && errSecond == nil && os.SameFile(first, second)
}

// mark is the text that begin puts behind the name of a file: it is of this file alone, whatever others have its name, its text and its
// time.
var mark = regexp.MustCompile(`~[A-Z2-7]{26}$`)

// longestName is how many bytes the name of a file may have.
const longestName = 255

// begin gives a file a name that says that somebody has begun with it. Files that programs call .tmp have no mark, and are never ours.
func (b files) begin(name string) (begun string, err error) {
	behind := "~" + rand.Text() + working
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	begun = stem[:min(len(stem), longestName-len(behind))] + behind
	// No process knows the new name before, so that no other file has it.
	if err := b.root.Rename(name, begun); err != nil {
		return "", fmt.Errorf("rename a message file: %w", err)
	}
	return begun, nil
}

// begun gives the files that somebody has begun with.
func (b files) begun() (names []string, err error) {
	names, err = b.names(working, true)
	return slices.DeleteFunc(names, func(name string) bool { return markOf(name) == "" }), err
}

// markOf gives the mark in a name, or "".
func markOf(name string) string { return mark.FindString(strings.TrimSuffix(name, filepath.Ext(name))) }

// hold opens a file that was begun, and keeps every other process from it until it is closed or this process ends. It gives none where
// another process holds the file, or has finished it.
func (b files) hold(name string) (file *os.File, info fs.FileInfo, err error) {
	file, info, err = b.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	// The process that held it until now may have finished it since it was opened.
	if lock(file) {
		if named, err := b.root.Lstat(name); err == nil && os.SameFile(info, named) {
			return file, info, nil
		}
	}
	_ = file.Close()
	return nil, nil, nil
}
