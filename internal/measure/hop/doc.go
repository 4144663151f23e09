// Package hop is the two ends of one hop through an engine of integration, as the wizard of the seed measures it: a generator that sends
// bodies over TCP and waits for their acknowledgements, and a back end that takes them over TCP, acknowledges and counts them.
package hop

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// Frames is how an engine writes bodies and acknowledgements on a connection.
type Frames interface {
	// WriteBody writes a body to an engine.
	WriteBody(w io.Writer, body []byte) error
	// ReadAcknowledgement reads what the engine answers; an error where it refuses.
	ReadAcknowledgement(r io.Reader) error
	// ReadBody reads what an engine sends to a back end, and gives its number of bytes and what it has to be answered with.
	ReadBody(r io.Reader, buffer []byte) (body []byte, answer []byte, err error)
}

// longest is the size of a frame, in bytes, that is taken for a mistake.
const longest = 1 << 24

// Lengths are frames of a length in four bytes, the highest first, and the body. Any frame that comes back is the acknowledgement.
type Lengths struct{}

// WriteBody writes a body in one call.
func (Lengths) WriteBody(w io.Writer, body []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err := w.Write(append(frame, body...))
	return err
}

// ReadAcknowledgement reads a frame.
func (l Lengths) ReadAcknowledgement(r io.Reader) error {
	_, _, err := l.ReadBody(r, nil)
	return err
}

// ReadBody reads a frame, into buffer where it has room.
func (Lengths) ReadBody(r io.Reader, buffer []byte) (body []byte, answer []byte, err error) {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, nil, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > longest {
		return nil, nil, fmt.Errorf("a frame of %d bytes is no frame", size)
	}
	if int(size) > cap(buffer) {
		buffer = make([]byte, size)
	}
	body = buffer[:size]
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, nil, err
	}
	return body, acknowledged, nil
}

// acknowledged is a frame of one byte.
var acknowledged = []byte{0, 0, 0, 1, '+'}

// Lines are bodies that end with a newline. Neither side acknowledges: the engine promises nothing.
type Lines struct{}

// WriteBody writes a body and a newline.
func (Lines) WriteBody(w io.Writer, body []byte) error {
	_, err := w.Write(append(slices.Clip(body), '\n'))
	return err
}

// ReadAcknowledgement waits for nothing.
func (Lines) ReadAcknowledgement(io.Reader) error { return nil }

// ReadBody reads up to a newline. r has to be an [io.ByteReader].
func (Lines) ReadBody(r io.Reader, buffer []byte) (body []byte, answer []byte, err error) {
	bytes := r.(io.ByteReader) //nolint:forcetypeassert // the back end gives a bufio.Reader
	body = buffer[:0]
	for {
		b, err := bytes.ReadByte()
		if err != nil {
			return nil, nil, err
		}
		if b == '\n' {
			return body, nil, nil
		}
		body = append(body, b)
	}
}
