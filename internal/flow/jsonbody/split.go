package jsonbody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Settings are for the taking apart of a body.
type Settings struct {
	Schema *Schema // nil: messages are only held to be JSON
	Type   string  // of the messages, before the schema's $id
	Split  bool    // the members of an array are messages each; documents behind each other always are
	// Path is a JSON Pointer to the array whose members are messages, in a body of one document. It needs Split.
	Path      string
	Charset   string // default UTF-8
	MostBytes int    // of a message, 16 MiB by default
	Recover   interchange.Recovery
	Opened    func(*text.Source) // once, before the first message
}

// MostBytes bounds a message unless settings say otherwise.
const MostBytes = 16 << 20

// A Summary is what a body held.
type Summary struct {
	Messages, Bad int64
	Disagreement  string
}

type splitter struct {
	Settings
	sink    interchange.Sink
	summary Summary
	counted *counted
	decoder *json.Decoder
}

// counted bounds what the decoder may hold of one message.
type counted struct {
	r             io.Reader
	read, allowed int64
}

// ErrTooLong is in the chain of the fault of a message that has too many bytes.
var ErrTooLong = errors.New("the message is too long")

func (c *counted) Read(p []byte) (int, error) {
	if c.read >= c.allowed {
		return 0, ErrTooLong
	}
	n, err := c.r.Read(p[:min(int64(len(p)), max(4, c.allowed-c.read))])
	c.read += int64(n)
	return n, err
}

// Split reads a body of one or several documents.
func Split(ctx context.Context, body io.Reader, settings Settings, sink interchange.Sink) (Summary, error) {
	source, err := text.Open(body, settings.Charset, false)
	if err != nil {
		return Summary{}, err
	}
	if settings.MostBytes <= 0 {
		settings.MostBytes = MostBytes
	}
	if settings.Opened != nil {
		settings.Opened(source)
	}
	s := &splitter{Settings: settings, sink: sink, counted: &counted{r: source}}
	s.summary.Disagreement = source.Disagreement
	s.counted.allowed = int64(settings.MostBytes)
	s.decoder = json.NewDecoder(s.counted)
	err = s.documents(ctx)
	return s.summary, err
}

func (s *splitter) documents(ctx context.Context) error {
	if s.Path != "" {
		return s.below(ctx, strings.Split(s.Path[1:], "/"))
	}
	isArray, err := s.opensArray()
	if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if isArray && !s.decoder.More() {
			if _, err := s.decoder.Token(); err != nil {
				return s.broken(err)
			}
			if _, err := s.decoder.Token(); !errors.Is(err, io.EOF) {
				return &fault.Fault{
					Message: "something follows the array", Place: fault.Place{Byte: s.decoder.InputOffset()},
					Remedy: "send one array, or documents behind each other",
				}
			}
			return nil
		}
		var raw json.RawMessage
		if err := s.decoder.Decode(&raw); err != nil {
			if errors.Is(err, io.EOF) && !isArray && s.summary.Messages+s.summary.Bad > 0 {
				return nil
			}
			return s.broken(err)
		}
		if err := s.message(raw); err != nil {
			return err
		}
		s.counted.allowed = s.counted.read + int64(s.MostBytes)
	}
}

// opensArray passes over the bracket of an array whose members are messages.
func (s *splitter) opensArray() (bool, error) {
	if !s.Split {
		return false, nil
	}
	buffered := make([]byte, 0, 64)
	for {
		one := make([]byte, 64)
		n, err := s.counted.Read(one)
		buffered = append(buffered, one[:n]...)
		trimmed := bytes.TrimLeft(buffered, " \t\r\n")
		if len(trimmed) == 0 && err == nil {
			continue
		}
		s.decoder = json.NewDecoder(io.MultiReader(bytes.NewReader(buffered), s.counted))
		if len(trimmed) == 0 || trimmed[0] != '[' {
			return false, nil
		}
		_, err = s.decoder.Token()
		return true, err
	}
}

func (s *splitter) broken(err error) error {
	f := &fault.Fault{
		Message: "this is no JSON: " + err.Error(), Err: err, Place: fault.Place{Byte: s.decoder.InputOffset()},
		Remedy: "send JSON; behind this place nothing can be read",
	}
	if errors.Is(err, ErrTooLong) {
		f.Message = fmt.Sprintf("a message has more than %d bytes", s.MostBytes)
		f.Remedy = "raise the limit, or split an array into its members"
	}
	if errors.Is(err, io.EOF) && s.summary.Messages == 0 {
		f.Message, f.Remedy = "the body is empty", "send a JSON document"
	}
	if inner, ok := fault.Of(err); ok {
		return inner
	}
	return f
}

func (s *splitter) message(raw []byte) error {
	to := s.decoder.InputOffset()
	from := to - int64(len(raw))
	number := s.summary.Messages + 1
	if s.Schema != nil {
		if f := s.Schema.Check(raw); f != nil {
			f.Number, f.End = number, to
			f.Place.Byte += from
			if from > 0 {
				f.Place.Line, f.Place.Column = 0, 0 // of the message, and not of the body
			}
			if s.Recover == interchange.Nothing {
				return f
			}
			s.summary.Bad++
			return s.sink.Bad(interchange.Bad{Fault: f, From: from, To: to, Raw: raw})
		}
	}
	w, err := s.sink.Begin(number)
	if err != nil {
		return err
	}
	if _, err := w.Write(raw); err != nil {
		return err
	}
	s.summary.Messages++
	m := interchange.Message{Number: number, Type: s.Type}
	if m.Type == "" && s.Schema != nil {
		m.Type = s.Schema.Type
	}
	return s.sink.End(m)
}

// Join writes messages as one array of JSON, each as it stands.
func Join(w io.Writer, messages [][]byte, output text.Output) error {
	out, err := output.NewWriter(w)
	if err != nil {
		return err
	}
	for i, m := range messages {
		if !json.Valid(m) {
			return &fault.Fault{Message: fmt.Sprintf("message %d is no JSON", i+1), Number: int64(i + 1), Remedy: "send JSON"}
		}
		mark := ","
		if i == 0 {
			mark = "["
		}
		if _, err := io.WriteString(out, mark); err != nil {
			return err
		}
		if _, err := out.Write(bytes.TrimSpace(m)); err != nil {
			return err
		}
	}
	if len(messages) == 0 {
		if _, err := io.WriteString(out, "["); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(out, "]"); err != nil {
		return err
	}
	return out.Close()
}
