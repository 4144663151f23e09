package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// journal says what was appended to a file. It is a file beside it, with a line for each step: begin, before a message is appended, with
// where, how many bytes of which hash, and to which file; done, behind it. Its lock is that of the file. A process that ends in between
// leaves a begin: the next one compares the file, and counts the message as appended or cuts its part off again.
type journal struct {
	name string // of the file of the journal
	file *os.File
	size int64
	seen os.FileInfo

	done  map[string]bool // messages that were appended
	order []string        // the same, the oldest first
	begun []begun
	lines int
}

// begun is an append that was begun and not finished.
type begun struct {
	message string
	offset  int64
	size    int64
	sum     string
	inode   uint64
}

// remembered is how many messages a journal remembers: one is appended twice only when more than that many others were appended between a
// crash and its repeat.
const remembered = 10_000

// journalName gives the name of the journal of a file.
func journalName(name string) string {
	if full := prefix + "appended-" + name; len(full) <= filename.LongestName {
		return full
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + "appended-" + hex.EncodeToString(sum[:])
}

// lock opens the journal, waits until no other process has it, and reads what is new in it.
func (j *journal) lock(ctx context.Context, folder *os.Root, mode fs.FileMode) error {
	for {
		file, err := folder.OpenFile(j.name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
		if err != nil {
			return fmt.Errorf("open the journal of the file: %w", err)
		}
		if err := requireOwn(file); err != nil {
			_ = file.Close()
			return err
		}
		if err := waitForLock(ctx, file); err != nil {
			_ = file.Close()
			return err
		}
		info, err := file.Stat()
		if err != nil {
			_ = file.Close()
			return fmt.Errorf("open the journal of the file: %w", err)
		}
		// Another process may have put a shorter journal in its place since.
		if named, err := folder.Lstat(j.name); err != nil || !os.SameFile(named, info) {
			_ = file.Close()
			continue
		}
		j.file = file
		if j.seen != nil && os.SameFile(j.seen, info) && info.Size() == j.size {
			return nil
		}
		if err := j.read(info); err != nil {
			j.seen = nil
			j.unlock()
			return err
		}
		return nil
	}
}

func waitForLock(ctx context.Context, file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			if err != nil {
				return fmt.Errorf("lock the journal of the file: %w", err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (j *journal) unlock() {
	_ = j.file.Close()
	j.file = nil
}

// read reads the whole journal.
func (j *journal) read(info os.FileInfo) error {
	text, err := io.ReadAll(io.NewSectionReader(j.file, 0, info.Size()))
	if err != nil {
		return fmt.Errorf("read the journal of the file: %w", err)
	}
	// A line that was cut off belongs to a step that did not happen.
	whole := int64(bytes.LastIndexByte(text, '\n') + 1)
	if whole < int64(len(text)) {
		if err := j.file.Truncate(whole); err != nil {
			return fmt.Errorf("cut off the journal of the file: %w", err)
		}
	}
	j.seen, j.size, j.done, j.order, j.begun, j.lines = info, whole, map[string]bool{}, nil, nil, 0
	for line := range strings.Lines(string(text[:whole])) {
		j.lines++
		fields := strings.Fields(line)
		switch {
		case len(fields) == 6 && fields[0] == "begin":
			b := begun{message: fields[1], sum: fields[4]}
			var errs [3]error
			b.offset, errs[0] = strconv.ParseInt(fields[2], 10, 64)
			b.size, errs[1] = strconv.ParseInt(fields[3], 10, 64)
			b.inode, errs[2] = strconv.ParseUint(fields[5], 10, 64)
			if errors.Join(errs[:]...) == nil {
				j.begun = append(j.begun, b)
			}
		case len(fields) == 2 && fields[0] == "done":
			j.finish(fields[1])
		case len(fields) == 2 && fields[0] == "undo":
			j.drop(fields[1])
		}
	}
	return nil
}

func (j *journal) finish(message string) {
	j.drop(message)
	if !j.done[message] {
		j.done[message] = true
		j.order = append(j.order, message)
	}
}

func (j *journal) drop(message string) {
	j.begun = slices.DeleteFunc(j.begun, func(b begun) bool { return b.message == message })
}

// write appends lines to the journal.
func (j *journal) write(lines string, isSynced bool) error {
	if lines == "" {
		return nil
	}
	if _, err := j.file.WriteAt([]byte(lines), j.size); err != nil {
		return fmt.Errorf("write the journal of the file: %w", err)
	}
	j.size += int64(len(lines))
	j.lines += strings.Count(lines, "\n")
	if isSynced {
		if err := j.file.Sync(); err != nil {
			return fmt.Errorf("write the journal of the file to the disk: %w", err)
		}
	}
	return nil
}

// shorten puts a journal of what has to be remembered in the place of a long one.
func (j *journal) shorten(folder *os.Root, mode fs.FileMode) error {
	if j.lines < 4*remembered {
		return nil
	}
	for len(j.order) > remembered {
		delete(j.done, j.order[0])
		j.order = j.order[1:]
	}
	var text strings.Builder
	for _, message := range j.order {
		text.WriteString("done " + message + "\n")
	}
	shorter := j.name + "~"
	if err := folder.Remove(shorter); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("shorten the journal of the file: %w", err)
	}
	file, err := folder.OpenFile(shorter, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("shorten the journal of the file: %w", err)
	}
	_, err = file.WriteString(text.String())
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = folder.Rename(shorter, j.name)
	}
	if err != nil {
		return fmt.Errorf("shorten the journal of the file: %w", err)
	}
	j.seen = nil // it is read anew
	return nil
}
