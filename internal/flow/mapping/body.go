package mapping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// memoryBytes is the size up to which a body stays in memory. A larger one is in a file without a name.
const memoryBytes = 1 << 20

// A Body is a body that is complete before somebody reads it.
type Body struct {
	memory []byte
	file   *os.File
	size   int64
}

// Write implements [io.Writer].
func (b *Body) Write(p []byte) (int, error) {
	if b.file == nil && len(b.memory)+len(p) > memoryBytes {
		file, err := os.CreateTemp("", "parley-map-")
		if err != nil {
			return 0, fmt.Errorf("write a large body to a file: %w", err)
		}
		b.file = file
		if err := os.Remove(file.Name()); err != nil {
			return 0, fmt.Errorf("write a large body to a file: %w", err)
		}
		if _, err := file.Write(b.memory); err != nil {
			return 0, fmt.Errorf("write a large body to a file: %w", err)
		}
		b.memory = nil
	}
	b.size += int64(len(p))
	if b.file == nil {
		b.memory = append(b.memory, p...)
		return len(p), nil
	}
	n, err := b.file.Write(p)
	if err != nil {
		return n, fmt.Errorf("write a large body to a file: %w", err)
	}
	return n, nil
}

// Size gives its bytes.
func (b *Body) Size() int64 { return b.size }

// Reader reads it from its beginning.
func (b *Body) Reader() io.Reader {
	if b.file == nil {
		return bytes.NewReader(b.memory)
	}
	return io.NewSectionReader(b.file, 0, math.MaxInt64)
}

// Open reads it from its beginning, as often as wanted, until Close.
func (b *Body) Open(context.Context) (io.ReadCloser, error) { return io.NopCloser(b.Reader()), nil }

// Bytes gives all of it.
func (b *Body) Bytes() ([]byte, error) {
	if b.file == nil {
		return b.memory, nil
	}
	return io.ReadAll(b.Reader())
}

// Close implements [io.Closer].
func (b *Body) Close() error {
	if b == nil || b.file == nil {
		return nil
	}
	file := b.file
	b.file = nil
	return file.Close()
}

// isLarge says that the body is in a file.
func (b *Body) isLarge() bool { return b.file != nil }

// gather takes in a body, so that a process does not wait for its source.
func (in Input) gather(ctx context.Context) (b *Body, err error) {
	source, err := in.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the message: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	b = &Body{}
	if in.Size > 0 && in.Size <= memoryBytes {
		b.memory = make([]byte, 0, in.Size+bytes.MinRead)
	}
	if _, err := io.Copy(b, source); err != nil {
		return nil, errors.Join(fmt.Errorf("read the message: %w", err), b.Close())
	}
	if in.Size >= 0 && b.size != in.Size {
		return nil, errors.Join(fmt.Errorf("read the message: it has %d bytes, and should have %d", b.size, in.Size), b.Close())
	}
	return b, nil
}
