package host

import (
	"context"
	"crypto/sha256"
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
