package mapping

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// programsMost is how many programs a worker keeps.
const programsMost = 64

// jqWorker answers requests.
type jqWorker struct {
	in       *bufio.Reader
	out      *bufio.Writer
	programs map[[keyBytes]byte]*gojq.Code
	memory   uint64 // the limit that is set
}

// RunJQ is a worker for programs of jq: it answers requests until its input ends.
func RunJQ(in io.Reader, out io.Writer) error {
	confine()
	w := &jqWorker{in: bufio.NewReaderSize(in, chunkBytes), out: bufio.NewWriter(out), programs: map[[keyBytes]byte]*gojq.Code{}}
	for {
		op, err := w.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			switch op {
			case opCompile:
				err = w.compile()
			case opRun:
				err = w.run()
			default:
				err = errProtocol
			}
		}
		if err == nil {
			err = w.out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func (w *jqWorker) number(bytes int) (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(w.in, b[8-bytes:])
	return binary.BigEndian.Uint64(b[:]), err
}

func (w *jqWorker) text() (string, error) {
	length, err := w.number(4)
	if err != nil || length > 2*BytesMost {
		return "", errors.Join(errProtocol, err)
	}
	text := make([]byte, length)
	_, err = io.ReadFull(w.in, text)
	return string(text), err
}

// end ends an answer: with the file, the line, the name and the message of a fault.
func (w *jqWorker) end(status byte, fields ...string) error {
	text := strings.Join(fields, "\x00")
	if len(text) > endMost/2 {
		text = strings.ToValidUTF8(text[:endMost/2], "")
	}
	_, err := w.out.Write(appendText([]byte{partEnd, status}, text))
	return err
}

// refuse ends an answer with a fault.
func (w *jqWorker) refuse(status byte, err error) error {
	file, line, message := "", int64(0), err.Error()
	if f, is := fault.Of(err); is {
		file, line, message = f.File, f.Place.Line, f.Message
	}
	return w.end(status, file, fmt.Sprint(line), "", "", "0", message)
}

func (w *jqWorker) compile() error {
	var key [keyBytes]byte
	if _, err := io.ReadFull(w.in, key[:]); err != nil {
		return err
	}
	count, err := w.number(4)
	if err != nil || count == 0 || count > 256 {
		return errors.Join(errProtocol, err)
	}
	files := make([]file, count)
	for i := range files {
		if files[i].name, err = w.text(); err != nil {
			return err
		}
		if files[i].text, err = w.text(); err != nil {
			return err
		}
	}
	if _, err := w.number(8); err != nil {
		return err
	}
	if _, err := w.number(4); err != nil {
		return err
	}
	code, err := codeOf(files)
	if err != nil {
		return w.refuse(statusMap, err)
	}
	if len(w.programs) >= programsMost {
		clear(w.programs)
	}
	w.programs[key] = code
	return w.end(statusDone)
}

// inputReader reads the chunks of an input.
type inputReader struct {
	w      *jqWorker
	left   uint64
	isOver bool
}

func (r *inputReader) Read(p []byte) (int, error) {
	if r.isOver {
		return 0, io.EOF
	}
	if r.left == 0 {
		length, err := r.w.number(4)
		if err != nil {
			return 0, err
		}
		if r.left = length; length == 0 {
			r.isOver = true
			return 0, io.EOF
		}
	}
	n, err := r.w.in.Read(p[:min(uint64(len(p)), r.left)])
	r.left -= uint64(n)
	return n, err
}

func (w *jqWorker) run() error {
	var key [keyBytes]byte
	if _, err := io.ReadFull(w.in, key[:]); err != nil {
		return err
	}
	var numbers [6]uint64 // memory, operations, output, seconds, utf8, inputs
	for i, bytes := range []int{8, 8, 8, 4, 4, 4} {
		var err error
		if numbers[i], err = w.number(bytes); err != nil {
			return err
		}
	}
	code := w.programs[key]
	if code != nil && w.memory != numbers[0] {
		w.memory = numbers[0]
		confineMemory(w.memory)
	}
	confineTime(numbers[3])
	inputs := make([]any, numbers[5])
	var wrong error
	for i := range inputs {
		in := &inputReader{w: w}
		if wrong == nil && code != nil {
			if inputs[i], wrong = readJSON(in); wrong != nil && len(inputs) > 1 {
				wrong = fmt.Errorf("input %d: %w", i, wrong)
			}
		}
		if _, err := io.Copy(io.Discard, in); err != nil {
			return err
		}
	}
	switch {
	case code == nil:
		return w.end(statusUnknown)
	case wrong != nil:
		return w.refuse(statusDocument, wrong)
	}
	var input any = inputs
	if len(inputs) == 1 {
		input = inputs[0]
	}
	return w.query(code, input, numbers[2])
}

// readJSON reads a document of JSON. Numbers keep their digits.
func readJSON(r io.Reader) (any, error) {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something stands behind the JSON, at byte %d", decoder.InputOffset())
	}
	return value, nil
}

// query runs a program, which has to make one value.
func (w *jqWorker) query(code *gojq.Code, input any, most uint64) error {
	results := code.Run(input)
	value, has := results.Next()
	if !has {
		return w.refuse(statusMap, errors.New("the program makes no value, and a map has to make one"))
	}
	if err, is := value.(error); is {
		halted, isHalt := errors.AsType[*gojq.HaltError](err)
		if isHalt {
			return w.refuse(statusStopped, fmt.Errorf("%v", halted.Value()))
		}
		return w.refuse(statusMap, err)
	}
	if _, another := results.Next(); another {
		return w.refuse(statusMap, errors.New("the program makes several values, and a map has to make one: put them into an array, as [...]"))
	}
	written, err := gojq.Marshal(value)
	if err != nil {
		return w.refuse(statusMap, err)
	}
	if uint64(len(written)) > most {
		return w.end(statusOutput)
	}
	for len(written) > 0 {
		part := written[:min(len(written), chunkBytes)]
		written = written[len(part):]
		if _, err := w.out.Write(appendText([]byte{partData}, string(part))); err != nil {
			return err
		}
	}
	return w.end(statusDone, "json")
}

// exitFor ends the process with a code that says why.
func exitFor(code int) { os.Exit(code) } //nolint:forbidigo // The signal comes when nobody reads errors.
