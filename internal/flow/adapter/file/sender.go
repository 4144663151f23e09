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
	"sync"
	"syscall"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// sender writes messages into a folder.
type sender struct {
	name       string
	settings   sendSettings
	target     target
	mode       fs.FileMode
	permission adapter.Permission
	logger     *slog.Logger
	temporary  string // how the names of files begin that are not complete

	mu       sync.Mutex
	cleaned  time.Time           // when files of processes that have ended were removed last
	journals map[string]*journal // of files that are appended to
}

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	if err := asError(check(adapter.Send, e.Address, e.Settings, nil)); err != nil {
		return nil, err
	}
	s := &sender{
		name: e.Name, settings: sendDefaults(), permission: e.Permission, logger: e.Logger, journals: map[string]*journal{},
		temporary: filename.Temporary(e.Name),
	}
	adapter.CheckSettings(e.Settings, &s.settings)
	s.target, _ = targetOf(e.Address, s.settings)
	s.mode, _ = fileMode(s.settings.Permissions)
	return s, s.permission.CheckFolder(s.target.folder)
}

// fileMode reads the permissions of files.
func fileMode(permissions string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(permissions, 8, 32)
	if err != nil || mode > 0o777 || mode&0o200 == 0 {
		return 0, fmt.Errorf("%q are no permissions with which a file can be written", permissions)
	}
	return fs.FileMode(mode), nil
}

// Close gives back nothing: files are closed when they are written.
func (s *sender) Close() error { return nil }

// side is how many messages are written side by side: most of the time goes to waiting for the disk.
const side = 8

// Send writes messages, each into its file.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	folder, err := s.open()
	if err != nil {
		return failed(deliveries, away(err))
	}
	defer func() { _ = folder.Close() }()
	s.clean(folder)
	if s.settings.Mode == appendMode {
		s.appendAll(ctx, folder, messages, deliveries)
	} else {
		var writers sync.WaitGroup
		free := make(chan struct{}, side)
		for n, m := range messages {
			free <- struct{}{}
			writers.Go(func() {
				deliveries[n] = s.write(ctx, folder, m)
				<-free
			})
		}
		writers.Wait()
	}
	if s.settings.Fsync {
		if err := syncFolder(folder); err != nil {
			return failed(deliveries, away(err))
		}
	}
	return deliveries
}

func failed(deliveries []adapter.Delivery, err error) []adapter.Delivery {
	for n := range deliveries {
		deliveries[n] = adapter.Delivery{Err: err}
	}
	return deliveries
}

// away is the failure of a folder that cannot be written to at all: the port waits.
func away(err error) error {
	return &adapter.Failure{Code: "send.unreachable", Unreachable: true, Err: err}
}

// writeFailure is the failure of a file: that of the folder, where no other file could be written either.
func writeFailure(err error) error {
	for _, ofAll := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EIO, syscall.ESTALE} {
		if errors.Is(err, ofAll) {
			return away(err)
		}
	}
	return &adapter.Failure{Code: "send.transport", Err: err}
}

func (s *sender) open() (*os.Root, error) {
	top, rest, err := s.permission.OpenFolder(s.target.folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = top.Close() }()
	folder, err := top.OpenRoot(rest)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w; make it first", s.target.folder, err)
	}
	return folder, nil
}

func syncFolder(folder *os.Root) error {
	opened, err := folder.Open(".")
	if err != nil {
		return fmt.Errorf("write the folder to the disk: %w", err)
	}
	defer func() { _ = opened.Close() }()
	// File systems that cannot do this say so, and do it by themselves.
	if err := opened.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("write the folder to the disk: %w", err)
	}
	return nil
}

// write writes a message into a file that gets its name when it is complete.
func (s *sender) write(ctx context.Context, folder *os.Root, m *adapter.Message) adapter.Delivery {
	name, err := s.target.Name(m)
	if err != nil {
		return adapter.Delivery{Err: err}
	}
	temporary, size, err := s.spool(ctx, folder, m)
	if temporary != "" {
		defer func() { _ = folder.Remove(temporary) }()
	}
	if err != nil {
		return adapter.Delivery{Err: err}
	}
	if s.settings.Mode == overwrite {
		err = folder.Rename(temporary, name)
	} else {
		err = s.link(folder, m, temporary, name)
	}
	if err != nil {
		if _, isFailure := errors.AsType[*adapter.Failure](err); !isFailure {
			err = writeFailure(fmt.Errorf("give the file its name: %w", err))
		}
		return adapter.Delivery{Err: err}
	}
	return adapter.Delivery{Detail: detail(path.Join(s.target.folder, name), size)}
}

func detail(file string, size int64) json.RawMessage {
	encoded, err := json.Marshal(map[string]any{"file": file, "bytes": size})
	if err != nil { // texts and numbers can be encoded
		panic(err)
	}
	return encoded
}

// spool writes a message into a file of a name that no other process has.
func (s *sender) spool(ctx context.Context, folder *os.Root, m *adapter.Message) (temporary string, size int64, err error) {
	body, err := m.Open(ctx)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = body.Close() }()
	temporary = s.temporary + rand.Text()
	file, err := folder.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, s.mode)
	if err != nil {
		return "", 0, writeFailure(fmt.Errorf("make a file in the folder %s: %w", s.target.folder, err))
	}
	in := &source{ctx: ctx, in: body}
	size, err = io.Copy(file, in)
	switch {
	case in.err != nil:
		err = in.err // of the pipeline, or of the context
	case err != nil:
		err = writeFailure(fmt.Errorf("write the file: %w", err))
	default:
		if err = file.Chmod(s.mode); err == nil && s.settings.Fsync {
			err = file.Sync()
		}
		if err != nil {
			err = writeFailure(fmt.Errorf("write the file: %w", err))
		}
	}
	if closeErr := file.Close(); err == nil && closeErr != nil {
		err = writeFailure(fmt.Errorf("write the file: %w", closeErr))
	}
	return temporary, size, err
}

// source is a body that knows whether an error was one of reading it.
type source struct {
	ctx context.Context //nolint:containedctx // it is that of the one who reads
	in  io.Reader
	err error
}

func (b *source) Read(p []byte) (n int, err error) {
	if err = b.ctx.Err(); err == nil {
		n, err = b.in.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// link gives a file its name, where there is none of that name, or the one that this message has become before.
func (s *sender) link(folder *os.Root, m *adapter.Message, temporary, name string) error {
	err := folder.Link(temporary, name)
	switch {
	case errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported):
		return filename.Refused("the file system of %s has no links, so that files cannot be created without overwriting others: "+
			"set mode to overwrite, and have %%MessageID%% in the name: %w", s.target.folder, err)
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	isOurs, err := s.isOurs(folder, m, temporary, name)
	if err == nil && !isOurs {
		return &adapter.Failure{Code: "send.refused", Err: fmt.Errorf(
			"there is a file %s already, and it is not overwritten: have it taken away, or %%MessageID%% in the name of files",
			path.Join(s.target.folder, name))}
	}
	return err
}

// isOurs reports whether a file is what this message became when it was sent before, and nobody recorded it: it has the same bytes, and a
// name that no other message has, or it was written since the message came.
func (s *sender) isOurs(folder *os.Root, m *adapter.Message, temporary, name string) (bool, error) {
	there, err := folder.Lstat(name)
	if err != nil {
		return false, err
	}
	ours, err := folder.Lstat(temporary)
	if err != nil {
		return false, err
	}
	if !there.Mode().IsRegular() || there.Size() != ours.Size() || !s.target.IsUnique && there.ModTime().Before(m.ReceivedAt) {
		return false, nil
	}
	first, err := hashOf(folder, name)
	if err != nil {
		return false, err
	}
	second, err := hashOf(folder, temporary)
	return first == second, err
}

func hashOf(folder *os.Root, name string) (string, error) {
	file, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", fmt.Errorf("open a file: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// How often files of processes that have ended are searched, and how old they are.
const (
	cleanInterval = time.Hour
	leftAfter     = 24 * time.Hour
)

// clean removes files that were not completed, since their process has ended.
func (s *sender) clean(folder *os.Root) {
	s.mu.Lock()
	isDue := time.Since(s.cleaned) >= cleanInterval
	if isDue {
		s.cleaned = time.Now()
	}
	s.mu.Unlock()
	if !isDue {
		return
	}
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		s.logger.Warn("files that were not completed could not be searched", slog.String("port", s.name), slog.Any("error", err))
		return
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), s.temporary) {
			continue
		}
		if info, err := folder.Lstat(entry.Name()); err == nil && time.Since(info.ModTime()) >= leftAfter {
			_ = folder.Remove(entry.Name())
		}
	}
}
