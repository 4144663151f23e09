package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/text"
)

// asideOf is the header or the trailer of a message.
type asideOf struct {
	name                     string
	schema                   *flatfile.Schema // nil: there is none
	what, orProperty, remedy string
}

type flatAssembler struct {
	schema          *flatfile.Schema // nil: that of the message's type
	header, trailer asideOf
	demotes         bool
	headerDocument  string
	trailerDocument string
	settings        flatfile.WriteSettings
	mu              sync.Mutex
	byType          map[string]*flatfile.Schema
}

func makeFlatAssembler(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		Document        string `json:"document"`
		Header          string `json:"header"`
		HeaderDocument  string `json:"header_document"`
		Trailer         string `json:"trailer"`
		TrailerDocument string `json:"trailer_document"`
		Demote          bool   `json:"demote"`
		Truncate        bool   `json:"truncate"`
		Charset         string `json:"charset"`
		Mark            bool   `json:"mark"`
	}](c, settings)
	a := &flatAssembler{
		schema: c.flatSchema("document", s.Document, false), demotes: s.Demote,
		header: asideOf{
			s.Header, c.flatSchema("header", s.Header, false), "header", ", nor property " + HeaderProperty,
			"set preserve_header where it is received, or header_document",
		},
		trailer: asideOf{
			s.Trailer, c.flatSchema("trailer", s.Trailer, false), "trailer", "", "publish the message with it, or set trailer_document",
		},
		headerDocument: s.HeaderDocument, trailerDocument: s.TrailerDocument,
		settings: flatfile.WriteSettings{Charset: s.Charset, Mark: s.Mark, Truncate: s.Truncate}, byType: map[string]*flatfile.Schema{},
	}
	if s.Trailer == "" && s.TrailerDocument != "" {
		c.fail("trailer_document", &fault.Fault{Message: "a trailer needs its schema", Remedy: "give trailer"})
	}
	if s.Header == "" && s.HeaderDocument != "" {
		c.fail("header_document", &fault.Fault{Message: "a header needs its schema", Remedy: "give header"})
	}
	for setting, of := range map[string]struct {
		schema   *flatfile.Schema
		document string
	}{"header_document": {a.header.schema, s.HeaderDocument}, "trailer_document": {a.trailer.schema, s.TrailerDocument}} {
		if of.schema == nil || of.document == "" {
			continue
		}
		if err := writeFlat(context.Background(), io.Discard, a.settings, flatDocument{of.schema, strings.NewReader(of.document)}); err != nil {
			c.fail(setting, err)
		}
	}
	return a
}

// result implements [transformer].
func (a *flatAssembler) result(Result, Source) Result {
	charset := a.settings.Charset
	if schema := a.schema; charset == "" && schema != nil {
		charset = schema.Source.Info["codepage"]
	}
	return written(flatType, text.Output{Charset: charsetName(charset)})
}

// charsetName gives the name of a code page.
func charsetName(written string) string {
	if found, err := text.Lookup(written); err == nil {
		return found.Name
	}
	return ""
}

type flatDocument struct {
	schema   *flatfile.Schema
	document io.Reader
}

func writeFlat(ctx context.Context, w io.Writer, settings flatfile.WriteSettings, documents ...flatDocument) error {
	var assembler *flatfile.Assembler
	for _, d := range documents {
		if d.schema == nil {
			continue
		}
		if assembler == nil {
			var err error
			if assembler, err = d.schema.NewAssembler(w, settings); err != nil {
				return err
			}
		}
		if err := assembler.Write(ctx, d.schema, d.document); err != nil {
			return err
		}
	}
	return assembler.Close()
}

// transform implements [transformer].
func (a *flatAssembler) transform(ctx context.Context, body io.Reader, w io.Writer, m outgoing) error {
	schema, err := a.schemaOf(m)
	if err != nil {
		return err
	}
	given := a.headerDocument
	if given == "" {
		given, _ = m.source.Written[HeaderProperty].(string)
	}
	header, err := a.aside(a.header, given, m)
	if err != nil {
		return err
	}
	trailer, err := a.aside(a.trailer, a.trailerDocument, m)
	if err != nil {
		return err
	}
	document, done, err := a.document(body, schema, m)
	if err != nil {
		return err
	}
	defer done()
	return writeFlat(ctx, w, a.settings,
		flatDocument{a.header.schema, header}, flatDocument{schema, document}, flatDocument{a.trailer.schema, trailer})
}

// document gives the message with its properties written into it, in UTF-8.
func (a *flatAssembler) document(body io.Reader, schema *flatfile.Schema, m outgoing) (document io.Reader, done func(), err error) {
	if a.demotes {
		filling, err := m.types.of(schema.MessageType()).filling(m.source)
		if err != nil {
			return nil, nil, err
		}
		if filling != nil {
			document, done = demoted(body, m.Charset, filling)
			return document, done, nil
		}
	}
	document, err = text.Open(body, m.Charset, true)
	return document, func() {}, err
}

func (a *flatAssembler) schemaOf(m outgoing) (*flatfile.Schema, error) {
	if a.schema != nil {
		return a.schema, nil
	}
	kind := m.source.Type
	t := m.types.of(kind)
	if t == nil || t.xsd == nil || !flatfile.IsFlatFile(t.xsd) {
		if kind == "" {
			kind = "none"
		}
		return nil, &fault.Fault{
			Message: fmt.Sprintf("there is no schema of a flat file for message type %s", kind),
			Remedy:  "define the message type with its schema, or set document of the component",
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if schema, ok := a.byType[kind]; ok {
		return schema, nil
	}
	schema, err := flatfile.Compile(t.xsd, flatfile.Settings{Root: rootName(kind).Local})
	if err == nil {
		a.byType[kind] = schema
	}
	return schema, err
}
