package demo

import (
	"crypto/md5" //nolint:gosec // it finds damage, not forgery, and PostgreSQL has it
	"encoding/binary"
	"math/rand/v2"
)

// headerBytes is the length of the header of every body: conversation, sender and sequence, four bytes each, and the MD5 of the rest.
// target.sql and check.sql read it.
const headerBytes = 4 + 4 + 4 + md5.Size

// bodyWriter makes bodies that differ in every part, so that no two can be taken for each other.
type bodyWriter struct {
	random *rand.ChaCha8
	buffer []byte
}

func newBodyWriter(sender int) *bodyWriter {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(sender))
	return &bodyWriter{random: rand.NewChaCha8(seed)}
}

// write makes the body of one message. It is good until the next call.
func (w *bodyWriter) write(conversation, sender, sequence, size int) []byte {
	size = max(size, headerBytes)
	if cap(w.buffer) < size {
		w.buffer = make([]byte, size)
	}
	body := w.buffer[:size]
	_, _ = w.random.Read(body[headerBytes:])
	binary.BigEndian.PutUint32(body[0:], uint32(conversation))
	binary.BigEndian.PutUint32(body[4:], uint32(sender))
	binary.BigEndian.PutUint32(body[8:], uint32(sequence))
	sum := md5.Sum(body[headerBytes:]) //nolint:gosec // as above
	copy(body[12:], sum[:])
	return body
}
