// Package spool keeps a body while it arrives: in memory up to a limit, then in a file that has no name, so that a crash leaves nothing.
package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
)

// Spool says where bodies are kept. Its limits hold for all bodies that are open at a time.
type Spool struct {
	Folder     string // for files; nothing means that of the system
	BodyMemory int64  // how much of one body stays in memory
	Memory     int64  // how much of all bodies does; beyond, a body goes to a file at once

	inMemory atomic.Int64
}

// New gives a spool with limits in bytes.
func New(folder string, bodyMemory, memory int64) *Spool {
	return &Spool{Folder: folder, BodyMemory: bodyMemory, Memory: memory}
}

// InMemory gives how many bytes of all open bodies are in memory.
func (s *Spool) InMemory() int64 { return s.inMemory.Load() }

// Body is the content of a message: a head, which may be changed to the end, and what was written. It is used by one goroutine at a time.
// Close gives back what it holds.
type Body struct {
	spool    *Spool
	head     []byte
	tail     [][]byte // what is in memory, in pieces, so that nothing is copied when it grows
	kept     int64    // bytes of tail
	reserved int64
	file     *os.File // what came after tail
	written  int64
	isClosed bool
}

// ErrClosed is returned for a body that was closed.
var ErrClosed = errors.New("the body was closed")

// Path gives the folder of files.
func (s *Spool) Path() string {
	if s.Folder == "" {
		return os.TempDir()
	}
	return s.Folder
}

// Open gives an empty body.
func (s *Spool) Open() *Body { return &Body{spool: s} }

// SetHead replaces what stands before everything that was written: the header block. The body keeps head.
func (b *Body) SetHead(head []byte) { b.head = head }

// Head gives the header of SetHead.
func (b *Body) Head() []byte { return b.head }

// Write appends to the body.
func (b *Body) Write(p []byte) (int, error) {
	if b.isClosed {
		return 0, ErrClosed
	}
	if b.file == nil && b.reserve(int64(len(p))) {
		b.keep(p)
		b.written += int64(len(p))
		return len(p), nil
	}
	if b.file == nil {
		if err := b.openFile(); err != nil {
			return 0, err
		}
	}
	n, err := b.file.Write(p)
	b.written += int64(n)
	if err != nil {
		return n, fmt.Errorf("write the spool file in %s: %w", b.spool.folder(), err)
	}
	return n, nil
}

// The sizes of pieces: they double.
const (
	pieceLeast = 4 << 10
	pieceMost  = 512 << 10
)

// keep appends to what is in memory.
func (b *Body) keep(p []byte) {
	for len(p) > 0 {
		last := len(b.tail) - 1
		if last < 0 || len(b.tail[last]) == cap(b.tail[last]) {
			b.tail = append(b.tail, make([]byte, 0, min(max(b.kept, pieceLeast), pieceMost)))
			last++
		}
		piece := b.tail[last]
		n := min(len(p), cap(piece)-len(piece))
		b.tail[last] = append(piece, p[:n]...)
		b.kept += int64(n)
		p = p[n:]
	}
}

// reserve takes room in memory for so many more bytes, or none.
func (b *Body) reserve(more int64) bool {
	if b.kept+more > b.spool.BodyMemory {
		return false
	}
	if b.spool.inMemory.Add(more) > b.spool.Memory {
		b.spool.inMemory.Add(-more)
		return false
	}
	b.reserved += more
	return true
}

func (s *Spool) folder() string {
	if s.Folder == "" {
		return os.TempDir()
	}
	return s.Folder
}

// openFile makes a file for the rest of the body, and takes its name away.
func (b *Body) openFile() error {
	file, err := os.CreateTemp(b.spool.folder(), "parley-mail-*")
	if err != nil {
		return fmt.Errorf("make a spool file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(fmt.Errorf("take the name of the spool file: %w", err), file.Close())
	}
	b.file = file
	return nil
}

// Size gives the size of head and body in bytes.
func (b *Body) Size() int64 { return int64(len(b.head)) + b.written }

// Reader reads head and body from their beginning. Several readers may be used in turn or together, while nothing is written.
func (b *Body) Reader() io.Reader { return io.MultiReader(bytes.NewReader(b.head), b.Tail()) }

// Tail reads what was written, without the head.
func (b *Body) Tail() io.Reader {
	readers := make([]io.Reader, 0, len(b.tail)+1)
	for _, piece := range b.tail {
		readers = append(readers, bytes.NewReader(piece))
	}
	if b.file != nil {
		left := b.written - b.kept
		readers = append(readers, &wholeFile{from: io.NewSectionReader(b.file, 0, left), left: left})
	}
	return io.MultiReader(readers...)
}

// errShort means that a spool file has less than was written.
var errShort = errors.New("the spool file has lost a part of what was written")

// wholeFile reads a file that has so many bytes left, and fails where it ends before.
type wholeFile struct {
	from io.Reader
	left int64
}

// Read gives the next bytes.
func (w *wholeFile) Read(into []byte) (int, error) {
	n, err := w.from.Read(into)
	w.left -= int64(n)
	if errors.Is(err, io.EOF) && w.left > 0 {
		err = errShort
	}
	return n, err
}

// Pieces gives head and body as they are in memory, or false where part of it is in a file. The caller may keep them, and changes nothing.
func (b *Body) Pieces() (Pieces, bool) {
	if b.file != nil {
		return nil, false
	}
	return append(Pieces{b.head}, b.tail...), true
}

// Pieces are the bytes of a message, in their order.
type Pieces [][]byte

// Size is how many bytes they are.
func (p Pieces) Size() (size int64) {
	for _, piece := range p {
		size += int64(len(piece))
	}
	return size
}

// Whole gives them in one piece.
func (p Pieces) Whole() []byte {
	if len(p) == 1 {
		return p[0]
	}
	return slices.Concat(p...)
}

// Reader reads them from the beginning, without a copy for who takes them by WriteTo.
func (p Pieces) Reader() io.Reader {
	buffers := net.Buffers(slices.Clone(p))
	return &buffers
}

// Truncate drops all that was written, not the head.
func (b *Body) Truncate() error {
	b.spool.inMemory.Add(-b.reserved)
	b.tail, b.kept, b.reserved, b.written = nil, 0, 0, 0
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	return err
}

// Close gives back memory and file. It may be called twice.
func (b *Body) Close() error {
	if b.isClosed {
		return nil
	}
	err := b.Truncate()
	b.isClosed = true
	return err
}
