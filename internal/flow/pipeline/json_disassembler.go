package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/text"
)

type jsonDisassembler struct{ settings jsonbody.Settings }

func makeJSONDisassembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Type         string `json:"type"`
		Split        bool   `json:"split"`
		Path         string `json:"path"`
		Validate     bool   `json:"validate"`
		AssertFormat bool   `json:"assert_format"`
		MaxBytes     int    `json:"max_bytes"`
		Recoverable  bool   `json:"recoverable"`
		Charset      string `json:"charset"`
	}](c, settings)
	d := &jsonDisassembler{jsonbody.Settings{
		Type: s.Type, Split: s.Split || s.Path != "", Path: s.Path, Charset: s.Charset, MostBytes: s.MaxBytes, Recover: recovery(s.Recoverable),
	}}
	if s.Path != "" {
		if f := jsonbody.CheckPath(s.Path); f != nil {
			c.fail("path", f)
		}
	}
	if s.Type == "" {
		return d
	}
	if schema := c.jsonSchema("type", s.Type, s.AssertFormat); s.Validate {
		d.settings.Schema = schema
	}
	return d
}

// refuses implements [disassembler]: a body is JSON that begins with a value.
func (d *jsonDisassembler) refuses(_ context.Context, head []byte, isWhole bool, source Source) string {
	charset := d.settings.Charset
	if charset == "" {
		charset = source.Charset
	}
	opened, err := text.Open(bytes.NewReader(head), charset, false)
	if err != nil {
		return err.Error()
	}
	decoder := json.NewDecoder(opened)
	for range 4 { // as many as show a document that only begins like JSON
		switch _, err := decoder.Token(); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil && !isWhole && errors.Is(err, io.ErrUnexpectedEOF):
			return ""
		case err != nil:
			return "this is no JSON: " + err.Error()
		}
	}
	return ""
}

// disassemble implements [disassembler].
func (d *jsonDisassembler) disassemble(ctx context.Context, body io.Reader, run *running) error {
	run.kind, run.contentType, run.isJSON, run.isText = d.settings.Type, jsonType, true, true
	run.recovers = d.settings.Recover != interchange.Nothing
	if run.kind == "" {
		run.kind = run.source.Type
	}
	settings := d.settings
	settings.Type, settings.Charset, settings.Opened = run.kind, run.charsetOf(d.settings.Charset), run.opened
	if run.isPart {
		settings.Path = "" // a part stood in the array, and has none itself
	}
	_, err := jsonbody.Split(ctx, body, settings, run)
	return err
}
