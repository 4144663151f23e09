// Package pickup submits messages that programs put into a folder as files, and those that an administrator puts into the replay folder
// with their envelopes.
package pickup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// Accepter stores messages. One whose idempotency key it has seen is not stored again: its first number is returned.
type Accepter interface {
	Accept(envelope message.Envelope, body *spool.Body) (id int64, err error)
}

// Folder is a folder of files to submit. Zero numbers are the defaults.
type Folder struct {
	Path     string                   // for the log
	Open     func() (*os.Root, error) // the folder
	IsReplay bool                     // envelopes stand in the files
	FQDN     string                   // our name in Received and Message-Id
	Names    []string                 // all of ours, which nobody else may use in Authentication-Results
	Accepter Accepter
	Spool    *spool.Spool
	Log      *slog.Logger
	// Bad learns of files that were set aside, and why; nothing means that nobody does.
	Bad func(name string, reason error)
	// IsRejected reports whether pressure keeps files waiting (section 14.3); nothing means never.
	IsRejected func() bool
	// IsRefusal reports whether an error of Accepter is of the message, and stays; nothing means never.
	IsRefusal func(error) bool

	Poll         time.Duration // 5 s
	PerMinute    int           // files: 100
	HeaderBytes  int           // 64 KB
	Recipients   int           // 100, without a limit for replay
	MessageBytes int64         // 36 MB

	minute time.Time
	taken  int
	isHeld bool // by pressure, at the poll before
}

// Endings of the names of files.
const (
	ready   = ".eml"
	working = ".tmp"
	bad     = ".bad"
)

// Run polls the folder until the context is cancelled.
func (f *Folder) Run(ctx context.Context) error {
	f.setDefaults()
	ticker := time.NewTicker(f.Poll)
	defer ticker.Stop()
	hasFailed := false
	for {
		err := f.once(ctx)
		if err != nil && !hasFailed {
			f.Log.Error("the folder of messages cannot be read", "folder", f.Path, "error", err)
		}
		hasFailed = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (f *Folder) setDefaults() {
	if f.Poll == 0 {
		f.Poll = 5 * time.Second
	}
	if f.PerMinute == 0 {
		f.PerMinute = 100
	}
	if f.HeaderBytes == 0 {
		f.HeaderBytes = 64 << 10
	}
	if f.Recipients == 0 && !f.IsReplay {
		f.Recipients = 100
	}
	if f.MessageBytes == 0 {
		f.MessageBytes = 36 << 20
	}
}

// once submits what is ready.
func (f *Folder) once(ctx context.Context) error {
	isHeld := f.IsRejected != nil && f.IsRejected()
	switch {
	case isHeld && !f.isHeld:
		f.Log.Warn("files wait in a folder of messages: resources are short", "folder", f.Path)
	case f.isHeld && !isHeld:
		f.Log.Info("files are taken from a folder of messages again", "folder", f.Path)
	}
	if f.isHeld = isHeld; isHeld {
		return nil
	}
	box, err := openFiles(f.Open)
	if err != nil {
		return err
	}
	defer box.close()
	// Those first that a process had begun with.
	begun, err := box.begun()
	if err != nil {
		return err
	}
	names, err := box.names(ready, false)
	if err != nil {
		return err
	}
	for _, name := range append(begun, names...) {
		if ctx.Err() != nil || !f.mayTake(time.Now()) {
			return nil
		}
		if isDone := f.take(box, name); !isDone {
			return nil // the store is away: the others wait too
		}
	}
	return nil
}

// mayTake counts a file of this minute.
func (f *Folder) mayTake(now time.Time) bool {
	if now.Sub(f.minute) >= time.Minute {
		f.minute, f.taken = now, 0
	}
	if f.taken >= f.PerMinute {
		return false
	}
	f.taken++
	return true
}

// take submits a file: it is renamed, submitted and deleted. A file that cannot be a message is set aside under another ending; one that is
// a message, but more than is taken, is submitted for a report to its sender alone. A file that another process works on is left to it.
func (f *Folder) take(box files, name string) (isDone bool) {
	log := f.Log.With("folder", f.Path, "file", name)
	begun := name
	if markOf(name) == "" || !strings.EqualFold(filepath.Ext(name), working) {
		var err error
		if begun, err = box.begin(name); errors.Is(err, fs.ErrNotExist) {
			return true // another process was first
		} else if err != nil {
			log.Error("a message file could not be renamed", "error", err)
			return true
		}
	}
	file, info, err := box.hold(begun)
	if err == nil && file == nil {
		return true
	}
	if err == nil {
		defer func() { _ = file.Close() }() // and no earlier: nobody else submits it before it is gone
		err = f.submit(file, info, begun)
	}
	var wrong *fileError
	switch {
	case err == nil:
		if err := box.root.Remove(begun); err != nil {
			log.Error("a message file that was submitted could not be deleted", "error", err)
		}
		return true
	case errors.As(err, &wrong):
		renamed, renameErr := box.rename(begun, bad)
		if f.Bad != nil {
			f.Bad(renamed, wrong)
		}
		log.Error("a message file is no message that can be submitted", "renamed", renamed, "error", errors.Join(err, renameErr))
		return true
	default:
		// Under the name that it has, by which the store may know it already.
		log.Error("a message file could not be submitted, and stays", "renamed", begun, "error", err)
		return false
	}
}

// fileError is a fault of a file that stays.
type fileError struct{ err error }

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// submit reads a file that was begun under a name, and has it stored.
func (f *Folder) submit(file *os.File, info fs.FileInfo, name string) error {
	content, isTooLarge := io.Reader(file), info.Size() > f.MessageBytes
	if isTooLarge {
		content = io.LimitReader(file, int64(f.HeaderBytes)+1)
	}
	body := f.Spool.Open()
	defer func() { _ = body.Close() }()
	hash := sha256.New()
	// The mark is kept by what a process had begun with, and had by no other file, though its name, text and time be the same.
	fmt.Fprintf(hash, "%s\x00", markOf(name))
	header, lines, err := f.read(io.TeeReader(content, hash), body)
	if err != nil {
		return err
	}
	envelope, header, err := f.envelope(header)
	if err != nil {
		return &fileError{err}
	}
	if inHeader := message.LinesOf(header.Bytes()); inHeader.AreTooLong() {
		return &fileError{fmt.Errorf("a line of the header has %d bytes, and may have %d", inHeader.Longest, message.MaximumLine)}
	}
	if lines.IsEightBit && envelope.BodyType == "" {
		envelope.BodyType = "8BITMIME"
	}
	switch {
	case isTooLarge:
		envelope.Refusal = message.Refusal{
			Status: "5.3.4", Text: fmt.Sprintf("the message has %d bytes, at most %d are taken", info.Size(), f.MessageBytes),
		}
	case lines.AreTooLong():
		envelope.Refusal = message.Refusal{
			Status: "5.6.0", Text: fmt.Sprintf("a line of the message has %d bytes, and may have %d", lines.Longest, message.MaximumLine),
		}
	}
	if isTooLarge || lines.AreTooLong() {
		// Of what is not taken the header alone is kept, for the report.
		envelope.Return = "HDRS"
		_ = body.Close()
		body = f.Spool.Open()
	}
	if envelope.Refusal.Status != "" && envelope.Sender == "" {
		return &fileError{errors.New(envelope.Refusal.Text)}
	}
	envelope.IdempotencyKey = "file:" + hex.EncodeToString(hash.Sum(nil))
	body.SetHead(header.Bytes())
	if _, err = f.Accepter.Accept(envelope, body); err != nil && f.IsRefusal != nil && f.IsRefusal(err) {
		return &fileError{err}
	}
	if err == nil && envelope.Refusal.Status != "" {
		f.Log.Warn("a message file cannot be delivered, and is reported to its sender", "folder", f.Path, "file", name, "reason",
			envelope.Refusal.Text)
	}
	return err
}

// read reads a file with line ends of any kind: its header, and its body into the spool.
func (f *Folder) read(r io.Reader, body *spool.Body) (header message.Header, lines message.Lines, err error) {
	var block []byte
	var writeErr error
	isBody := false
	ends := message.LineEnds{Write: func(p []byte) {
		lines.Add(p)
		if isBody && writeErr == nil {
			_, writeErr = body.Write(p)
			return
		}
		block = append(block, p...)
	}}
	piece := make([]byte, 32<<10)
	for {
		n, readErr := r.Read(piece)
		if bytes.IndexByte(piece[:n], 0) >= 0 {
			return nil, message.Lines{}, &fileError{errors.New("it has a NUL byte")}
		}
		ends.Add(piece[:n])
		isEnd := errors.Is(readErr, io.EOF)
		if isEnd && len(block) > 0 && !isBody && block[len(block)-1] != '\n' {
			block = append(block, '\r', '\n')
		}
		if !isBody {
			parsed, length, isComplete := message.ParseHeader(block)
			if length > f.HeaderBytes {
				return nil, lines, &fileError{fmt.Errorf("the header has more than %d bytes", f.HeaderBytes)}
			}
			if isComplete || isEnd {
				header, isBody = parsed, true
				if _, err := body.Write(block[length:]); err != nil {
					return nil, lines, err
				}
			}
		}
		switch {
		case writeErr != nil:
			return nil, lines, writeErr
		case isEnd:
			return header, lines, nil
		case readErr != nil:
			return nil, lines, fmt.Errorf("read a message file: %w", readErr)
		}
	}
}
