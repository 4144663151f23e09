package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

type xmlDisassembler struct {
	envelopes   []envelope.Envelope
	documents   []string // nil: all
	isRecovered bool
	validates   bool
	charset     string
}

func makeXMLDisassembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Envelopes         *[]string `json:"envelopes"`
		Documents         []string  `json:"documents"`
		AllowUnrecognized bool      `json:"allow_unrecognized"`
		Recoverable       bool      `json:"recoverable"`
		Validate          bool      `json:"validate"`
		Charset           string    `json:"charset"`
	}](c, settings)
	d := &xmlDisassembler{documents: s.Documents, isRecovered: s.Recoverable, validates: s.Validate, charset: s.Charset}
	for _, name := range s.Documents {
		if s.Validate {
			c.validator("documents", name)
		} else {
			c.typeOf("documents", name)
		}
	}
	if s.AllowUnrecognized {
		d.documents = nil
	}
	if s.Envelopes == nil {
		d.envelopes = c.types.envelopes()
		return d
	}
	for _, name := range *s.Envelopes {
		t := c.typeOf("envelopes", name)
		if t == nil {
			continue
		}
		e, err := t.envelope()
		if err != nil {
			c.fail("envelopes", err)
			continue
		}
		d.envelopes = append(d.envelopes, *e)
	}
	return d
}

// refuses implements [disassembler].
func (d *xmlDisassembler) refuses(_ context.Context, head []byte, isWhole bool, source Source) string {
	charset := d.charset
	if charset == "" {
		charset = source.Charset
	}
	opened, err := text.Open(bytes.NewReader(head), charset, true)
	if err != nil {
		return err.Error()
	}
	s := xmlscan.New(opened, xmlscan.Limits{})
	for {
		kind, err := s.Next()
		switch {
		case err != nil && !isWhole && s.End() > 0:
			return "" // the root stands behind what was seen
		case errors.Is(err, io.EOF):
			return "no element"
		case err != nil:
			return err.Error()
		case kind == xmlscan.StartElement:
			return d.refusesRoot(s.Name())
		}
	}
}

func (d *xmlDisassembler) refusesRoot(name xmlscan.Name) string {
	root := typing.TypeOf(name.Space, name.Local)
	if len(d.documents) == 0 || slices.Contains(d.documents, root) ||
		slices.ContainsFunc(d.envelopes, func(e envelope.Envelope) bool { return e.Type == root }) {
		return ""
	}
	return fmt.Sprintf("message type %s is not known here", root)
}

// disassemble implements [disassembler].
func (d *xmlDisassembler) disassemble(ctx context.Context, body io.Reader, run *running) error {
	run.contentType, run.isWatched, run.isText, run.recovers = xmlType, true, true, d.isRecovered
	run.validators = run.xmlValidators(d.validates)
	settings := envelope.Settings{
		Envelopes: d.envelopes, Charset: run.charsetOf(d.charset), Recover: recovery(d.isRecovered), Opened: run.opened, Watcher: run,
	}
	if d.isRecovered {
		run.documents = d.documents // a message of another type is written, and given as a bad one with all it says
	} else {
		settings.Documents = d.documents
	}
	_, err := envelope.Split(ctx, body, settings, run)
	return err
}
