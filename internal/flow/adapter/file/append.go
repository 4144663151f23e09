package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// inMemory is up to which size a message is appended from memory.
const inMemory = 1 << 20

// appending is a message that is appended to a file.
type appending struct {
	n       int // in the batch
	message string
	body    []byte // where it is small
	spooled string // the file that has it otherwise
	size    int64
	sum     string
}

// appendAll appends messages to their files, those of one file in their order.
func (s *sender) appendAll(ctx context.Context, folder *os.Root, messages []*adapter.Message, deliveries []adapter.Delivery) {
	byName := map[string][]*appending{}
	var names, spooled []string
	defer func() {
		for _, name := range spooled {
			_ = folder.Remove(name)
		}
	}()
	for n, m := range messages {
		name, err := s.target.Name(m)
		if err != nil {
			deliveries[n].Err = err
			continue
		}
		a, err := s.prepare(ctx, folder, m)
		if a.spooled != "" {
			spooled = append(spooled, a.spooled)
		}
		if err != nil {
			deliveries[n].Err = err
			continue
		}
		if a.n = n; byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], a)
	}
	for _, name := range names {
		all := byName[name]
		err := s.appendTo(ctx, folder, name, all)
		for _, a := range all {
			if err != nil {
				deliveries[a.n].Err = err
			} else {
				deliveries[a.n].Detail = detail(path.Join(s.target.folder, name), a.size)
			}
		}
	}
}

// prepare reads a message, so that its size and hash are known before the first byte is appended.
func (s *sender) prepare(ctx context.Context, folder *os.Root, m *adapter.Message) (*appending, error) {
	a := &appending{message: strings.TrimPrefix(s.temporary, prefix+"out-") + strconv.FormatInt(m.ID, 10)}
	if m.Size < 0 || m.Size > inMemory {
		var err error
		if a.spooled, a.size, err = s.spool(ctx, folder, m); err == nil {
			a.sum, err = hashOf(folder, a.spooled)
		}
		return a, err
	}
	body, err := m.Open(ctx)
	if err != nil {
		return a, err
	}
	defer func() { _ = body.Close() }()
	if a.body, err = io.ReadAll(body); err != nil {
		return a, err
	}
	sum := sha256.Sum256(a.body)
	a.size, a.sum = int64(len(a.body)), hex.EncodeToString(sum[:])
	return a, nil
}

// appendTo appends messages to a file, and leaves out those that were appended before.
func (s *sender) appendTo(ctx context.Context, folder *os.Root, name string, all []*appending) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journals[name]
	if j == nil {
		j = &journal{name: journalName(name)}
		if len(s.journals) >= filename.LongestName { // names may be without number
			clear(s.journals)
		}
		s.journals[name] = j
	}
	if err := j.lock(ctx, folder, s.mode); err != nil {
		return writeFailure(err)
	}
	defer j.unlock()
	file, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, s.mode)
	if err != nil {
		return writeFailure(fmt.Errorf("open the file: %w", err))
	}
	defer func() {
		if closeErr := file.Close(); err == nil && closeErr != nil {
			err = writeFailure(fmt.Errorf("write the file: %w", closeErr))
		}
	}()
	if err := requireOwn(file); err != nil {
		return writeFailure(err)
	}
	if err := s.settle(j, file); err != nil {
		return writeFailure(err)
	}
	if err := s.appendNew(j, folder, file, all); err != nil {
		// The part that was written is cut off at once, or by whoever appends next.
		if settleErr := s.settle(j, file); settleErr != nil {
			s.logger.Warn("an append that failed could not be undone, and is by the next", slog.String("port", s.name),
				slog.String("file", name), slog.Any("error", settleErr))
		}
		return writeFailure(err)
	}
	return nil
}

// requireOwn returns an error unless a file is a regular one with one name. Others may write in the folder: with a second name the file may
// be somebody else's, of which a name was put there.
func requireOwn(file *os.File) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("open the file: %w", err)
	case !info.Mode().IsRegular():
		return errors.New("messages can be appended to regular files only")
	case identify(info).names > 1:
		return fmt.Errorf("the file %s has another name too, and may be somebody else's; copy it instead of linking it", file.Name())
	}
	return nil
}

func (s *sender) appendNew(j *journal, folder *os.Root, file *os.File, all []*appending) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	offset := info.Size()
	var lines, done strings.Builder
	var news []*appending
	for _, a := range all {
		if j.done[a.message] {
			continue
		}
		b := begun{a.message, offset, a.size, a.sum, identify(info).Inode}
		fmt.Fprintf(&lines, "begin %s %d %d %s %d\n", b.message, b.offset, b.size, b.sum, b.inode)
		fmt.Fprintf(&done, "done %s\n", a.message)
		j.begun = append(j.begun, b)
		offset += a.size
		news = append(news, a)
	}
	if err := j.write(lines.String(), s.settings.Fsync); err != nil {
		return err
	}
	if _, err := file.Seek(info.Size(), io.SeekStart); err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	for _, a := range news {
		if err := a.writeTo(folder, file); err != nil {
			return err
		}
	}
	if s.settings.Fsync && len(news) > 0 {
		if err := file.Sync(); err != nil {
			return fmt.Errorf("write the file to the disk: %w", err)
		}
	}
	for _, a := range news {
		j.finish(a.message)
	}
	// A line that is lost here is made up for by comparing the file.
	if err := j.write(done.String(), false); err != nil {
		return err
	}
	return j.shorten(folder, s.mode)
}

func (a *appending) writeTo(folder *os.Root, file *os.File) error {
	in := io.Reader(bytes.NewReader(a.body))
	if a.spooled != "" {
		spooled, err := folder.Open(a.spooled)
		if err != nil {
			return fmt.Errorf("read what is to be appended: %w", err)
		}
		defer func() { _ = spooled.Close() }()
		in = spooled
	}
	if n, err := io.Copy(file, in); err != nil || n != a.size {
		return errors.Join(fmt.Errorf("append to the file: %d of %d bytes are written", n, a.size), err)
	}
	return nil
}

// settle finishes what a process has begun that has ended since: what is there whole was appended, what is not is cut off.
func (s *sender) settle(j *journal, file *os.File) error {
	if len(j.begun) == 0 {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("compare the file with its journal: %w", err)
	}
	size, inode := info.Size(), identify(info).Inode
	last := j.begun[len(j.begun)-1]
	var lines strings.Builder
	for _, b := range append([]begun{}, j.begun...) {
		is, err := b.isIn(file, size, inode)
		if err != nil {
			return err
		}
		if is {
			j.finish(b.message)
			lines.WriteString("done " + b.message + "\n")
			continue
		}
		// Nothing is cut off that others have appended.
		if b.inode == inode && size > b.offset && size <= last.offset+last.size {
			if err := file.Truncate(b.offset); err != nil {
				return fmt.Errorf("cut off what was appended in part: %w", err)
			}
			size = b.offset
		}
		j.drop(b.message)
		lines.WriteString("undo " + b.message + "\n")
	}
	return j.write(lines.String(), s.settings.Fsync)
}

// isIn reports whether an append is in a file whole.
func (b begun) isIn(file *os.File, size int64, inode uint64) (bool, error) {
	if b.inode != inode || size < b.offset+b.size {
		return false, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, b.offset, b.size)); err != nil {
		return false, fmt.Errorf("compare the file with its journal: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == b.sum, nil
}
