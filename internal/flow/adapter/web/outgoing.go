package web

import (
	"errors"
	"io"
	"sync"
)

// outgoing is the body of a message on its way out. The client may read it from its beginning again, after a redirect or on another
// connection.
type outgoing struct {
	open func() (io.ReadCloser, error)
	size int64 // -1 where it is not known

	mu    sync.Mutex
	err   error // of reading it, which is no error of the connection
	spool *spool
}

// keep reads the body once and for all.
func (o *outgoing) keep() error {
	reader, err := o.open()
	if err != nil {
		return err
	}
	spool, filled := fill(reader)
	o.spool = spool
	if err := errors.Join(filled, reader.Close()); err != nil {
		return err
	}
	o.open, o.size = o.spool.open, o.spool.size
	return nil
}

// read gives the body from its beginning.
func (o *outgoing) read() (io.ReadCloser, error) {
	reader, err := o.open()
	if err != nil {
		o.note(err)
		return nil, err
	}
	return &reading{ReadCloser: reader, of: o}, nil
}

func (o *outgoing) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// failure gives why the body could not be read.
func (o *outgoing) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *outgoing) close() {
	if o != nil && o.spool != nil {
		o.spool.close()
	}
}

// reading is one reading of a body.
type reading struct {
	io.ReadCloser

	of *outgoing
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.of.note(err)
	}
	return n, err
}
