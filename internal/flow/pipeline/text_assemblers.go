package pipeline

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/csvfile"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

type csvAssembler struct {
	delimiter rune
	columns   []string
	crlf      bool
	output    text.Output
}

func makeCSVAssembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Delimiter string   `json:"delimiter"`
		Columns   []string `json:"columns"`
		CRLF      bool     `json:"crlf"`
		Charset   string   `json:"charset"`
		Mark      bool     `json:"mark"`
	}](c, settings)
	a := &csvAssembler{character(s.Delimiter), s.Columns, s.CRLF, text.Output{Charset: s.Charset, Mark: s.Mark}}
	c.checkOutput(a.output)
	if strings.ContainsAny(s.Delimiter, "\"\r\n\uFFFD") {
		c.fail("delimiter", &fault.Fault{Message: "the delimiter is a quote or a line end", Remedy: "give another character"})
	}
	return a
}

// result implements [transformer].
func (a *csvAssembler) result(Result, Source) Result { return written(csvType, a.output) }

// transform implements [transformer].
func (a *csvAssembler) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	source, err := text.Open(body, m.Charset, !isJSON(m.ContentType))
	if err != nil {
		return err
	}
	out, err := csvfile.NewWriter(w, a.delimiter, a.crlf, a.columns, a.output)
	if err != nil {
		return err
	}
	buffered := bufio.NewReader(source)
	head, err := buffered.Peek(1024)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if head = bytes.TrimLeft(head, " \t\r\n"); len(head) > 0 && (head[0] == '{' || head[0] == '[') {
		err = out.WriteJSON(buffered)
	} else {
		err = out.WriteXML(buffered)
	}
	if err != nil {
		return err
	}
	return out.Close()
}

func isJSON(contentType string) bool {
	return strings.HasPrefix(contentType, jsonType) || strings.Contains(contentType, "+json")
}

type jsonAssembler struct {
	asArray bool
	output  text.Output
}

func makeJSONAssembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		AsArray bool   `json:"as_array"`
		Charset string `json:"charset"`
		Mark    bool   `json:"mark"`
	}](c, settings)
	a := &jsonAssembler{s.AsArray, text.Output{Charset: s.Charset, Mark: s.Mark}}
	c.checkOutput(a.output)
	return a
}

// result implements [transformer].
func (a *jsonAssembler) result(Result, Source) Result { return written(jsonType, a.output) }

// transform implements [transformer]: the bytes are written as they stand, while they are held to be JSON.
func (a *jsonAssembler) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	source, err := text.Open(body, m.Charset, false)
	if err != nil {
		return err
	}
	out, err := a.output.NewWriter(w)
	if err != nil {
		return err
	}
	if err := a.bracket(out, "["); err != nil {
		return err
	}
	if err := oneDocument(io.TeeReader(source, out)); err != nil {
		return err
	}
	if err := a.bracket(out, "]"); err != nil {
		return err
	}
	return out.Close()
}

func (a *jsonAssembler) bracket(w io.Writer, mark string) error {
	if !a.asArray {
		return nil
	}
	_, err := io.WriteString(w, mark)
	return err
}

// oneDocument reads a document of JSON to its end.
func oneDocument(r io.Reader) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	for depth, isFirst := 0, true; ; isFirst = false {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && depth == 0 && !isFirst:
			return nil
		case err == nil && depth == 0 && !isFirst:
			return &fault.Fault{
				Message: "a second document follows the first", Place: fault.Place{Byte: d.InputOffset()}, Remedy: "send one document of JSON",
			}
		case err != nil:
			return noJSON(err, d.InputOffset())
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// noJSON leaves errors of the source as they are.
func noJSON(err error, at int64) error {
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	if !isSyntax && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return &fault.Fault{
		Message: "this is no JSON: " + err.Error(), Err: err, Place: fault.Place{Byte: at}, Remedy: "send a document of JSON",
	}
}
