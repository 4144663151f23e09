package sftp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
)

// sender writes messages into a folder of a server.
type sender struct {
	endpoint  adapter.Endpoint
	settings  sendSettings
	address   address
	name      filename.Template
	temporary string // how the names of files begin that are not complete

	mu      sync.Mutex
	conn    *connection
	cleaned time.Time
	cut     map[int64]cut // of messages whose transfer was cut off
}

// cut is a file that is not complete: this process knows what it has, and goes on with it.
type cut struct {
	name  string
	bytes int64
	sum   string // of those bytes
}

// mostCut is how many files are remembered that are not complete.
const mostCut = 1000

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	if err := checkEndpoint(adapter.Send, e); err != nil {
		return nil, err
	}
	s := &sender{
		endpoint: e, settings: sendDefaults(), cut: map[int64]cut{},
		temporary: filename.Temporary(e.Name),
	}
	adapter.CheckSettings(e.Settings, &s.settings)
	s.address, s.name, _ = targetOf(e.Address, s.settings.Macros)
	_, err := e.Permission.CheckConnect(s.address.host)
	return s, err
}

// Close ends the session.
func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.close()
	}
	return nil
}

// connected gives the session that there is, or a new one.
func (s *sender) connected(ctx context.Context) (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.conn.isEnded() {
		return s.conn, nil
	}
	conn, err := dial(ctx, s.endpoint, s.settings.Server, s.address.host)
	s.conn = conn
	return conn, err
}

// side is how many messages are written side by side over one session.
const side = 4

// Send writes messages, each into its file.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	deliveries := make([]adapter.Delivery, len(messages))
	conn, err := s.connected(ctx)
	if err == nil {
		err = s.clean(ctx, conn)
	}
	if err != nil {
		for n := range deliveries {
			deliveries[n].Err = away(err)
		}
		return deliveries
	}
	var writers sync.WaitGroup
	free := make(chan struct{}, side)
	for n, m := range messages {
		free <- struct{}{}
		writers.Go(func() {
			deliveries[n] = s.write(ctx, conn, m)
			<-free
		})
	}
	writers.Wait()
	return deliveries
}

// away is the failure of a server that cannot be written to at all: the port waits.
func away(err error) error {
	return &adapter.Failure{Code: "send.unreachable", Unreachable: true, Err: err}
}

// write writes a message into a file that gets its name when it is complete.
func (s *sender) write(ctx context.Context, conn *connection, m *adapter.Message) adapter.Delivery {
	name, err := s.name.Name(m)
	if err != nil {
		return adapter.Delivery{Err: err}
	}
	temporary, size, sum, err := s.upload(ctx, conn, m)
	if err == nil {
		err = s.finish(ctx, conn, m, temporary, path.Join(s.address.folder, name), size, sum)
		if err != nil && !conn.isEnded() {
			_ = conn.call(ctx, func() error { return conn.Remove(path.Join(s.address.folder, temporary)) })
		}
	}
	if err != nil {
		return adapter.Delivery{Err: failureOf(conn, err)}
	}
	detail, err := json.Marshal(map[string]any{"file": s.address.shown() + "/" + name, "bytes": size})
	if err != nil { // texts and numbers can be encoded
		panic(err)
	}
	return adapter.Delivery{Detail: detail}
}

// failureOf says what should follow an error: a session that is over is that of all messages.
func failureOf(conn *connection, err error) error {
	_, isFailure := errors.AsType[*adapter.Failure](err)
	isAway := conn.isEnded() || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)
	switch {
	case isFailure || errors.Is(err, context.Canceled):
		return err
	case isAway:
		return away(err)
	default:
		return &adapter.Failure{Code: "send.transport", Err: err}
	}
}

// upload writes a message into a file of a name that no other process has. A transfer that was cut off goes on where it was, when the body
// is still the same.
func (s *sender) upload(ctx context.Context, conn *connection, m *adapter.Message) (temporary string, size int64, sum string, err error) {
	body, err := m.Open(ctx)
	if err != nil {
		return "", 0, "", err
	}
	defer func() { _ = body.Close() }()
	hash := sha256.New()
	begun := s.takeCut(m.ID)
	if begun.bytes > 0 {
		if _, err = io.CopyN(hash, body, begun.bytes); err != nil && !errors.Is(err, io.EOF) {
			return "", 0, "", err
		}
		if err != nil || hex.EncodeToString(hash.Sum(nil)) != begun.sum {
			begun = cut{}
			_ = body.Close()
			if body, err = m.Open(ctx); err != nil {
				return "", 0, "", err
			}
			hash.Reset()
		}
	}
	if begun.bytes == 0 {
		begun = cut{name: s.temporary + rand.Text()}
	}
	file, err := open(ctx, conn, path.Join(s.address.folder, begun.name), begun.bytes)
	if err != nil {
		return "", 0, "", fmt.Errorf("make a file in the folder %s: %w", s.address.shown(), err)
	}
	err = s.copy(ctx, conn, file, body, hash, &begun)
	if err == nil && s.settings.Fsync {
		if _, can := conn.HasExtension("fsync@openssh.com"); can {
			err = conn.call(ctx, file.Sync)
		}
	}
	if closeErr := conn.call(context.WithoutCancel(ctx), file.Close); err == nil {
		err = closeErr
	}
	if err != nil {
		s.keepCut(m.ID, begun)
	}
	return begun.name, begun.bytes, begun.sum, err
}

// open opens the file of a message: a new one, or one that has so many bytes already.
func open(ctx context.Context, conn *connection, name string, from int64) (file *sftp.File, err error) {
	err = conn.call(ctx, func() (err error) {
		flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if from > 0 {
			flags = os.O_WRONLY
		}
		file, err = conn.OpenFile(name, flags)
		return err
	})
	if err != nil || from == 0 {
		return file, err
	}
	err = conn.call(ctx, func() error {
		info, err := file.Stat()
		if err == nil && info.Size() < from {
			err = fmt.Errorf("the file %s has lost %d bytes since it was written", name, from-info.Size())
		}
		if err == nil {
			err = file.Truncate(from)
		}
		if err == nil {
			_, err = file.Seek(from, io.SeekStart)
		}
		return err
	})
	return file, err
}

// piece is how many bytes are written in one call.
const piece = 256 << 10

// copy writes a body, and counts what the server has acknowledged.
func (s *sender) copy(ctx context.Context, conn *connection, file *sftp.File, body io.Reader, hash hash.Hash, begun *cut) error {
	buffer := make([]byte, piece)
	begun.sum = hex.EncodeToString(hash.Sum(nil))
	for {
		n, readErr := io.ReadFull(body, buffer)
		if n > 0 {
			if err := conn.call(ctx, func() error { _, err := file.Write(buffer[:n]); return err }); err != nil {
				return fmt.Errorf("write the file: %w", err)
			}
			hash.Write(buffer[:n])
			begun.bytes += int64(n)
			begun.sum = hex.EncodeToString(hash.Sum(nil))
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			return nil
		}
		if readErr != nil {
			return readErr // of the pipeline, or of the context
		}
	}
}

func (s *sender) takeCut(message int64) cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := s.cut[message]
	delete(s.cut, message)
	return begun
}

func (s *sender) keepCut(message int64, begun cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun.bytes > 0 && len(s.cut) < mostCut {
		s.cut[message] = begun
	}
}

// finish gives a file its name.
func (s *sender) finish(ctx context.Context, conn *connection, m *adapter.Message, temporary, name string, size int64, sum string) error {
	from := path.Join(s.address.folder, temporary)
	if s.settings.Mode == overwrite {
		return conn.call(ctx, func() error { return replace(conn, from, name) })
	}
	err := conn.call(ctx, func() error { return give(conn, from, name) })
	if err == nil {
		return nil
	}
	var there fs.FileInfo
	if statErr := conn.call(ctx, func() (err error) { there, err = conn.Lstat(name); return err }); statErr != nil {
		return fmt.Errorf("give the file its name: %w", err)
	}
	// The message may have become this file before a crash, and nobody recorded it: then the file has the same bytes, and a name that no
	// other message has, or was written since the message came.
	if there.Mode().IsRegular() && there.Size() == size && (s.name.IsUnique || !there.ModTime().Before(m.ReceivedAt.Truncate(time.Second))) {
		has, err := conn.hash(ctx, name)
		if err != nil {
			return err
		}
		if has == sum {
			return conn.call(ctx, func() error { return conn.Remove(from) })
		}
	}
	return &adapter.Failure{Code: "send.refused", Err: fmt.Errorf(
		"there is a file %s already, and it is not overwritten: have it taken away, or %%MessageID%% in the name of files", name)}
}

// give gives a file a name that no other has. Servers differ in whether a rename takes the place of another file; a link never does.
func give(conn *connection, from, name string) error {
	if _, can := conn.HasExtension("hardlink@openssh.com"); can {
		if err := conn.Link(from, name); err == nil {
			return conn.Remove(from)
		}
	}
	if _, err := conn.Lstat(name); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return conn.Rename(from, name)
}

// replace puts a file in the place of another.
func replace(conn *connection, from, name string) error {
	if _, can := conn.HasExtension("posix-rename@openssh.com"); can {
		return conn.PosixRename(from, name)
	}
	if err := conn.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return conn.Rename(from, name)
}

// How often files of processes that have ended are searched, and how old they are.
const (
	cleanInterval = time.Hour
	leftAfter     = 24 * time.Hour
)

// clean removes files that were not completed, since their process has ended. It fails where there is no folder.
func (s *sender) clean(ctx context.Context, conn *connection) error {
	s.mu.Lock()
	isDue := time.Since(s.cleaned) >= cleanInterval
	s.mu.Unlock()
	if !isDue {
		return nil
	}
	var entries []fs.FileInfo
	err := conn.call(ctx, func() (err error) {
		entries, err = conn.ReadDirContext(ctx, s.address.folder)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrPermission): // a folder into which one may write, and not look
		s.endpoint.Logger.Info("the folder cannot be read, so that files which were not completed stay in it", slog.Any("error", err))
	case err != nil:
		return fmt.Errorf("read the folder %s: %w", s.address.shown(), err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), s.temporary) && time.Since(entry.ModTime()) >= leftAfter {
			_ = conn.call(ctx, func() error { return conn.Remove(path.Join(s.address.folder, entry.Name())) })
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleaned = time.Now()
	return nil
}
