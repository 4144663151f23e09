package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// inlineBytes is the size up to which a body stays in memory until its message is published. A larger one is written in chunks meanwhile.
const inlineBytes = 256 << 10

// bodyWriter takes the body of a message that comes in.
type bodyWriter struct {
	ctx     context.Context //nolint:containedctx // a writer has no other way to one
	host    *Host
	size    int64
	memory  []byte
	content int64 // of the database; 0 while all of it is in memory
	chunk   int
	number  int
	sum     hash.Hash
}

var _ io.Writer = (*bodyWriter)(nil)

// Write implements [io.Writer].
func (w *bodyWriter) Write(p []byte) (int, error) {
	w.size += int64(len(p))
	w.memory = append(w.memory, p...)
	if w.content == 0 {
		if len(w.memory) <= inlineBytes {
			return len(p), nil
		}
		if err := w.begin(); err != nil {
			return 0, err
		}
	}
	for len(w.memory) >= w.chunk {
		if err := w.append(w.memory[:w.chunk]); err != nil {
			return 0, err
		}
		w.memory = append(w.memory[:0], w.memory[w.chunk:]...)
	}
	return len(p), nil
}

func (w *bodyWriter) begin() (err error) {
	ctx, cancel := context.WithTimeout(w.ctx, statementTimeout)
	defer cancel()
	w.sum = sha256.New()
	w.content, w.chunk, err = flowstore.BeginBody(ctx, w.host.pool, w.host.name)
	return err
}

func (w *bodyWriter) append(chunk []byte) error {
	ctx, cancel := context.WithTimeout(w.ctx, statementTimeout)
	defer cancel()
	w.sum.Write(chunk)
	err := flowstore.AppendBody(ctx, w.host.pool, w.host.name, w.content, w.number, chunk)
	w.number++
	return err
}

// finish gives a draft its body.
func (w *bodyWriter) finish(d *draft) error {
	d.size = w.size
	if w.content == 0 {
		d.body = w.memory
		if d.body == nil {
			d.body = []byte{}
		}
		return nil
	}
	if len(w.memory) > 0 {
		if err := w.append(w.memory); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(w.ctx, statementTimeout)
	defer cancel()
	d.content = w.content
	return flowstore.FinishBody(ctx, w.host.pool, w.host.name, w.content, w.size, w.sum.Sum(nil))
}

// chunksAtOnce is how many chunks of a body are read at once.
const chunksAtOnce = 4

// storedBody reads a body of a claimed message from the database.
type storedBody struct {
	ctx              context.Context //nolint:containedctx // a reader has no other way to one
	host             *Host
	message, content int64
	request          int64 // that the message answers; 0 for one that was claimed
	buffer           []flowstore.Chunk
	number, chunks   int // chunks is -1 before the first was read
	read, bytes      int64
	isClosed         bool
}

var _ io.ReadCloser = (*storedBody)(nil)

// errShortBody says that a body has not as many bytes as it should.
var errShortBody = errors.New("the body in the database has another length than it should")

// Read implements [io.Reader]. That no chunk is left is the end of the body only where as many came as it has.
func (r *storedBody) Read(p []byte) (int, error) {
	if r.isClosed {
		return 0, io.ErrClosedPipe
	}
	for len(r.buffer) == 0 || len(r.buffer[0].Body) == 0 {
		if len(r.buffer) > 0 {
			r.buffer = r.buffer[1:]
			continue
		}
		if r.chunks >= 0 && r.number >= r.chunks {
			if r.read != r.bytes {
				return 0, fmt.Errorf("%w: %d of %d bytes", errShortBody, r.read, r.bytes)
			}
			return 0, io.EOF
		}
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buffer[0].Body)
	r.buffer[0].Body = r.buffer[0].Body[n:]
	r.read += int64(n)
	return n, nil
}

func (r *storedBody) fetch() error {
	ctx, cancel := context.WithTimeout(r.ctx, statementTimeout)
	defer cancel()
	found, err := flowstore.ReadBody(ctx, r.host.pool, r.host.name, r.message, r.content, r.request, r.number, r.number+chunksAtOnce-1)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%w: chunk %d is missing", errShortBody, r.number)
	}
	for _, chunk := range found {
		if chunk.Number != r.number {
			return fmt.Errorf("%w: chunk %d came instead of %d", errShortBody, chunk.Number, r.number)
		}
		r.number++
	}
	r.chunks, r.bytes, r.buffer = found[0].Chunks, found[0].Bytes, found
	return nil
}

// Close implements [io.Closer].
func (r *storedBody) Close() error {
	r.isClosed, r.buffer = true, nil
	return nil
}
