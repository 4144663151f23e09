package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// chunksAtOnce is how many chunks of a body are read at once.
const chunksAtOnce = 4

// storedBody reads a body from the database.
type storedBody struct {
	ctx            context.Context //nolint:containedctx // a reader has no other way to one
	fetch          func(ctx context.Context, from, to int) ([]Chunk, error)
	buffer         []Chunk
	number, chunks int // chunks is -1 before the first was read
	read, bytes    int64
	isClosed       bool
}

// OpenBody gives a body whose chunks fetch gives, both ends included.
func OpenBody(ctx context.Context, fetch func(ctx context.Context, from, to int) ([]Chunk, error)) io.ReadCloser {
	return &storedBody{ctx: ctx, fetch: fetch, chunks: -1}
}

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
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buffer[0].Body)
	r.buffer[0].Body = r.buffer[0].Body[n:]
	r.read += int64(n)
	return n, nil
}

func (r *storedBody) next() error {
	found, err := r.fetch(r.ctx, r.number, r.number+chunksAtOnce-1)
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
