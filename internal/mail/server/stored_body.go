package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/pgdb"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// chunksAtOnce is how many chunks of a body are read by one statement.
const chunksAtOnce = 2

// storedBody reads a body from the database, some chunks at a time. It ends when it has given as many chunks and bytes as the body has:
// a statement that gives fewer is no end.
type storedBody struct {
	ctx             context.Context //nolint:containedctx // A reader has no other way to end with the delivery.
	pool            *pgxpool.Pool
	cache           *bodyCache // which counts
	content, holder int64
	next, of        int   // chunks; of is 0 before the first statement
	bytes, read     int64 // of the body, and those of them that statements gave
	chunks          [][]byte
}

// Read gives the next bytes.
//
// Errors: [io.ErrUnexpectedEOF] where chunks or bytes are missing.
func (b *storedBody) Read(into []byte) (int, error) {
	for len(b.chunks) == 0 || len(b.chunks[0]) == 0 {
		if len(b.chunks) > 0 {
			b.chunks = b.chunks[1:]
			continue
		}
		if b.of > 0 && b.next >= b.of {
			if b.read != b.bytes {
				return 0, shortBody(b.read, b.bytes)
			}
			return 0, io.EOF
		}
		if err := b.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(into, b.chunks[0])
	b.chunks[0] = b.chunks[0][n:]
	return n, nil
}

// fetch reads the next chunks.
func (b *storedBody) fetch() error {
	piece, err := mailstore.ReadBody(b.ctx, b.pool, b.content, b.holder, b.next, chunksAtOnce)
	if err != nil {
		return fmt.Errorf("read a body: %w", err)
	}
	if b.of == 0 {
		b.of, b.bytes = piece.Of, piece.Bytes
	}
	if wanted := min(chunksAtOnce, b.of-b.next); wanted == 0 || len(piece.Chunks) != wanted || piece.Of != b.of || piece.Bytes != b.bytes {
		return fmt.Errorf("read a body: %d of %d chunks from %d on: %w", len(piece.Chunks), b.of, b.next, io.ErrUnexpectedEOF)
	}
	b.cache.reads.Add(1)
	for _, chunk := range piece.Chunks {
		b.cache.bytesRead.Add(int64(len(chunk)))
		b.read += int64(len(chunk))
	}
	b.chunks = piece.Chunks
	b.next += len(piece.Chunks)
	return nil
}

// Close does nothing.
func (b *storedBody) Close() error { return nil }

// sizedBody is a body that ends where its message does: with fewer or more bytes than that has, reading fails.
type sizedBody struct {
	io.ReadCloser
	size, read int64
}

// Read gives the next bytes.
//
// Errors: [io.ErrUnexpectedEOF].
func (w *sizedBody) Read(into []byte) (int, error) {
	n, err := w.ReadCloser.Read(into)
	w.read += int64(n)
	if w.read > w.size || errors.Is(err, io.EOF) && w.read != w.size {
		return n, shortBody(w.read, w.size)
	}
	return n, err
}

// WriteTo gives the rest to a writer, without a copy where the body is in memory.
func (w *sizedBody) WriteTo(to io.Writer) (int64, error) {
	from, can := w.ReadCloser.(io.WriterTo)
	if !can {
		return io.CopyBuffer(to, struct{ io.Reader }{w}, make([]byte, 64<<10))
	}
	n, err := from.WriteTo(to)
	w.read += n
	if err == nil && w.read != w.size {
		err = shortBody(w.read, w.size)
	}
	return n, err
}

func shortBody(read, size int64) error {
	return fmt.Errorf("%d bytes of a body of %d: %w", read, size, io.ErrUnexpectedEOF)
}

// notReferred is the SQLSTATE of a body that is gone, and incomplete that of one of which a part is missing.
const notReferred, incomplete = "PS003", "PS010"

// isGone is whether a body cannot be read because its message is there no more.
func isGone(err error) bool {
	code := pgdb.SQLState(err)
	return strings.HasPrefix(code, "PS") && code != incomplete
}

// isIncomplete is whether a part of a body is missing.
func isIncomplete(err error) bool {
	return pgdb.SQLState(err) == incomplete || errors.Is(err, io.ErrUnexpectedEOF)
}
