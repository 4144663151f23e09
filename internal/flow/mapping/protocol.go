package mapping

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Requests and answers of workers. Numbers are big-endian; a text is its length in four bytes and its bytes.
//
//	C key[32] documents:4 (name text)... memory:8 seconds:4       compile a program from its files, the first one first
//	R key[32] memory:8 operations:8 output:8 seconds:4 utf8:4 inputs:4 (chunks)...
//
// An input is chunks, each a text, and ends with an empty one. An answer is any number of D text, parts of the result, and then
// E status:1 text: fields that zero bytes separate.
const (
	opCompile = 'C'
	opRun     = 'R'
	partData  = 'D'
	partEnd   = 'E'
)

// Statuses of answers.
const (
	statusDone = iota
	statusMap
	statusUnknown
	statusDocument
	statusOutput
	statusOperations
	statusStopped
)

// keyBytes is the length of the key of a program: the hash of its files.
const keyBytes = 32

// chunkBytes is the length of the chunks of an input.
const chunkBytes = 64 << 10

// errProtocol says that a worker answers in a way that it should not.
var errProtocol = errors.New("the worker gives an answer that is none")

// limits bound a run.
type limits struct {
	memory     uint64 // bytes
	operations uint64
	output     uint64 // bytes
	seconds    uint32 // of the processor
}

func appendText(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}

// compileRequest is a request to compile a program.
func compileRequest(p *program, l limits) []byte {
	request := append([]byte{opCompile}, p.key[:]...)
	request = binary.BigEndian.AppendUint32(request, uint32(len(p.files)))
	for _, f := range p.files {
		request = appendText(appendText(request, f.name), f.text)
	}
	request = binary.BigEndian.AppendUint64(request, l.memory)
	return binary.BigEndian.AppendUint32(request, l.seconds)
}

// runRequest is the head of a request to run a program.
func runRequest(p *program, l limits, isUTF8 bool, inputs int) []byte {
	request := append([]byte{opRun}, p.key[:]...)
	for _, n := range []uint64{l.memory, l.operations, l.output} {
		request = binary.BigEndian.AppendUint64(request, n)
	}
	utf8 := uint32(0)
	if isUTF8 {
		utf8 = 1
	}
	for _, n := range []uint32{l.seconds, utf8, uint32(inputs)} {
		request = binary.BigEndian.AppendUint32(request, n)
	}
	return request
}

// writeInput writes a body as chunks.
func writeInput(w io.Writer, b *Body) error {
	if !b.isLarge() {
		chunks := make([]byte, 0, len(b.memory)+8)
		if len(b.memory) > 0 {
			chunks = append(binary.BigEndian.AppendUint32(chunks, uint32(len(b.memory))), b.memory...)
		}
		_, err := w.Write(binary.BigEndian.AppendUint32(chunks, 0))
		return err
	}
	source := b.Reader()
	chunk := make([]byte, 4+chunkBytes)
	for {
		n, err := io.ReadFull(source, chunk[4:])
		binary.BigEndian.PutUint32(chunk, uint32(n))
		if n > 0 {
			if _, err := w.Write(chunk[:4+n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			_, err := w.Write([]byte{0, 0, 0, 0})
			return err
		case err != nil:
			return err
		}
	}
}

// answer is how a request has ended.
type answer struct {
	status byte
	fields string // separated by zero bytes
}

// endMost bounds the fields of an answer in bytes.
const endMost = 64 << 10

// readAnswer reads an answer; what there is of the result goes to w.
func readAnswer(r *bufio.Reader, w io.Writer) (answer, error) {
	for {
		var head [5]byte
		part, err := r.ReadByte()
		if err != nil {
			return answer{}, err
		}
		status := byte(0)
		if part == partEnd {
			if status, err = r.ReadByte(); err != nil {
				return answer{}, err
			}
		}
		if _, err := io.ReadFull(r, head[:4]); err != nil {
			return answer{}, err
		}
		length := binary.BigEndian.Uint32(head[:4])
		switch part {
		case partData:
			if _, err := io.CopyN(w, r, int64(length)); err != nil {
				return answer{}, err
			}
		case partEnd:
			if length > endMost {
				return answer{}, fmt.Errorf("%w: an end of %d bytes", errProtocol, length)
			}
			fields := make([]byte, length)
			_, err := io.ReadFull(r, fields)
			return answer{status, string(fields)}, err
		default:
			return answer{}, fmt.Errorf("%w: part %q", errProtocol, part)
		}
	}
}
