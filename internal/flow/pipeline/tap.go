package pipeline

import (
	"bytes"
	"io"
)

// tapBytes is up to which size a message is kept for its taps, in bytes. They read a longer one while it is written.
const tapBytes = 256 << 10

// A tap lets somebody read a message that is being written.
type tap struct {
	part part // the validator that reads; none: properties are found
	read func(r io.Reader) error
	buf  []byte
	pipe *io.PipeWriter
	done chan error
}

// Write implements [io.Writer]. It has no error of its own: the one of the reader comes at the end.
func (t *tap) Write(p []byte) (int, error) {
	if t.pipe == nil {
		if len(t.buf)+len(p) <= tapBytes {
			t.buf = append(t.buf, p...)
			return len(p), nil
		}
		t.follow()
		if _, err := t.pipe.Write(t.buf); err != nil {
			return 0, err
		}
		t.buf = nil
	}
	return t.pipe.Write(p)
}

// follow begins to read while the message is written.
func (t *tap) follow() {
	from, to := io.Pipe()
	t.pipe, t.done = to, make(chan error, 1)
	go func() {
		err := t.read(from)
		_, copyErr := io.Copy(io.Discard, from) // whatever the reader leaves, so that nobody waits for it
		if err == nil {
			err = copyErr
		}
		t.done <- err
	}()
}

// end is called when the message is complete, and gives the error of the reader.
func (t *tap) end() error {
	if t.pipe == nil {
		return t.read(bytes.NewReader(t.buf))
	}
	_ = t.pipe.Close() // a pipe has no error of its own
	return <-t.done
}

// stop is called instead when the message is given up.
func (t *tap) stop() {
	if t.pipe != nil {
		_ = t.pipe.CloseWithError(io.ErrUnexpectedEOF) // a pipe has no error of its own
		<-t.done                                       //nolint:errcheck // the message is given up, whatever its reader says of it
	}
}
