package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// spooledInMemory is how many bytes of a body stay in memory; a larger one goes to a file without a name.
const spooledInMemory = 256 << 10

// spool is a body that can be read again and again.
type spool struct {
	memory []byte
	file   *os.File
	size   int64
}

// fill reads a body to its end.
func fill(body io.Reader) (*spool, error) {
	var memory bytes.Buffer
	if _, err := io.CopyN(&memory, body, spooledInMemory+1); err != nil {
		if errors.Is(err, io.EOF) {
			return &spool{memory: memory.Bytes(), size: int64(memory.Len())}, nil
		}
		return nil, err
	}
	file, err := os.CreateTemp("", "parley-body-*")
	if err != nil {
		return nil, fmt.Errorf("make a file for a large body: %w", err)
	}
	// The file goes with the process, whatever ends it.
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("hide the file of a large body: %w", err), file.Close())
	}
	size, err := io.Copy(file, io.MultiReader(&memory, body))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &spool{file: file, size: size}, nil
}

// open gives the body from its beginning.
func (s *spool) open() (io.ReadCloser, error) {
	if s.file == nil {
		return io.NopCloser(bytes.NewReader(s.memory)), nil
	}
	return io.NopCloser(io.NewSectionReader(s.file, 0, s.size)), nil
}

// close gives back what the body takes.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
