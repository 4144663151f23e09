// Package envelope takes messages of XML out of the envelopes that schemas describe, and puts messages into them. The bytes of a message
// are those of the body; a start tag gets the declarations of namespaces that the envelope made for it.
package envelope

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// An Envelope is a root element and where its messages are: the children of the element that Body names.
type Envelope struct {
	Root xsd.Name
	Body *typing.Path
	Type string

	element *xsd.Element // nil where the envelope is known by its path alone
}

// FromSchema gives the envelopes that a schema describes: its roots with a body_xpath.
func FromSchema(schema *xsd.Schema) ([]Envelope, error) {
	if !schema.IsEnvelope() {
		return nil, &fault.Fault{
			Message: "the schema describes no envelope", File: schema.File(),
			Remedy: `set is_envelope="yes" in its schemaInfo, and body_xpath in the recordInfo of its root`,
		}
	}
	var all []Envelope
	for _, name := range schema.Elements {
		root, err := schema.Element(name)
		if err != nil {
			return nil, err
		}
		written, ok := root.Record["body_xpath"]
		if !ok {
			continue
		}
		path, err := typing.ParsePath(written)
		if err != nil {
			if f, isFault := fault.Of(err); isFault {
				f.File, f.Place = schema.File(), root.Place
			}
			return nil, err
		}
		if path.IsAttribute || path.Steps[0] != root.Name {
			return nil, &fault.Fault{
				Message: fmt.Sprintf("body_xpath of root %s does not lead to an element in it", name.Local), File: schema.File(), Place: root.Place,
				Remedy: "begin the path with the root",
			}
		}
		all = append(all, Envelope{Root: root.Name, Body: path, Type: typing.TypeOf(root.Name.Space, root.Name.Local), element: root})
	}
	if len(all) == 0 {
		return nil, &fault.Fault{
			Message: "no root of the envelope schema has a body_xpath", File: schema.File(), Remedy: "set it in the recordInfo of the root",
		}
	}
	return all, nil
}

// Settings are for the taking apart of a body.
type Settings struct {
	Envelopes []Envelope
	Documents []string // message types that are taken; none: all
	Charset   string   // of the body; a byte-order mark and a declaration override it
	Limits    xmlscan.Limits
	Recover   interchange.Recovery
	Progress  func(bytes int64)
	Opened    func(*text.Source) // once, before the first token
	Watcher   Watcher
}

// A Watcher follows the messages of a body while they are read.
type Watcher interface {
	// Root is called before a message begins, with its type and the byte of the text at which it stands.
	Root(messageType string, from int64)
	// Token is called for each token of the message that the scanner has read.
	Token(s *xmlscan.Scanner, kind xmlscan.Kind)
}

// A Summary is what a body held.
type Summary struct {
	Messages, Bad int64
	Bytes         int64
	Disagreement  string
	Envelope      string // type of the outer envelope, or empty
}

// splitter is one body on its way.
type splitter struct {
	settings Settings
	scanner  *xmlscan.Scanner
	sink     interchange.Sink
	summary  Summary
}

// scanners have the default limits. Their memory is more than most bodies.
var scanners = sync.Pool{New: func() any { return xmlscan.New(nil, xmlscan.Limits{}) }}

// scannerOf gives a scanner until it is released.
func scannerOf(source io.Reader) (s *xmlscan.Scanner, release func()) {
	s, _ = scanners.Get().(*xmlscan.Scanner) // the pool holds nothing else
	s.Reset(source)
	return s, func() {
		s.Reset(nil)
		scanners.Put(s)
	}
}

// Split reads a body of XML into its messages. A body without an envelope is one message.
func Split(ctx context.Context, r io.Reader, settings Settings, sink interchange.Sink) (Summary, error) {
	source, err := text.Open(r, settings.Charset, true)
	if err != nil {
		return Summary{}, err
	}
	defer source.Release()
	if settings.Opened != nil {
		settings.Opened(source)
	}
	s := &splitter{settings: settings, sink: sink, summary: Summary{Disagreement: source.Disagreement}}
	if settings.Limits == (xmlscan.Limits{}) {
		var release func()
		s.scanner, release = scannerOf(source)
		defer release()
	} else {
		s.scanner = xmlscan.New(source, settings.Limits)
	}
	err = s.document(ctx)
	s.summary.Bytes = s.scanner.End()
	return s.summary, err
}

func (s *splitter) document(ctx context.Context) error {
	for {
		kind, err := s.scanner.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != xmlscan.StartElement {
			continue
		}
		if e := s.envelopeHere(); e != nil {
			s.summary.Envelope = e.Type
			err = s.open(ctx, e)
		} else {
			err = s.message(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (s *splitter) envelopeHere() *Envelope {
	name := s.scanner.Name()
	for i := range s.settings.Envelopes {
		if e := &s.settings.Envelopes[i]; name.Is(e.Root.Space, e.Root.Local) {
			return e
		}
	}
	return nil
}

// open reads an envelope, whose start tag was read, to its end.
func (s *splitter) open(ctx context.Context, e *Envelope) error {
	outer := s.scanner.Depth()
	matched := 1 // steps of the path that the open elements are
	hasBody := len(e.Body.Steps) == 1
	for {
		kind, err := s.scanner.Next()
		if err != nil {
			return err
		}
		depth := s.scanner.Depth() - outer // of the element, from 0 for the envelope
		switch kind {
		case xmlscan.StartElement:
			switch {
			case depth != matched:
			case matched == len(e.Body.Steps):
				if err := s.inBody(ctx); err != nil {
					return err
				}
			case s.scanner.Name().Is(e.Body.Steps[matched].Space, e.Body.Steps[matched].Local):
				matched++
				hasBody = hasBody || matched == len(e.Body.Steps)
			}
		case xmlscan.EndElement:
			if depth == 0 {
				if !hasBody {
					return &fault.Fault{
						Message: fmt.Sprintf("the envelope %s has no element at its body_xpath %s", e.Root.Local, e.Body), Place: s.scanner.Place(),
						Remedy: "send the envelope with its body, or correct body_xpath in the schema",
					}
				}
				return nil
			}
			if depth == matched-1 {
				matched--
			}
		case xmlscan.Text, xmlscan.CDATA, xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

// inBody reads a child of the body of an envelope, whose start tag was read: a message, or another envelope.
func (s *splitter) inBody(ctx context.Context) error {
	if inner := s.envelopeHere(); inner != nil {
		return s.open(ctx, inner)
	}
	return s.message(ctx)
}

// message gives out the element whose start tag was read as a message.
func (s *splitter) message(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := s.scanner.Name()
	kind := typing.TypeOf(name.Space, name.Local)
	place, from := s.scanner.Place(), s.scanner.Offset()
	number := s.summary.Messages + 1
	if f := s.unrecognized(kind); f != nil {
		f.Place, f.Number = place, number
		if s.settings.Recover == interchange.Nothing {
			return f
		}
		if err := s.copyElement(io.Discard); err != nil {
			return err
		}
		f.End = s.scanner.End()
		s.summary.Bad++
		return s.sink.Bad(interchange.Bad{Fault: f, From: from, To: f.End})
	}
	if s.settings.Watcher != nil {
		s.settings.Watcher.Root(kind, from)
	}
	w, err := s.sink.Begin(number)
	if err != nil {
		return err
	}
	if err := s.copyElement(w); err != nil {
		if abortErr := s.sink.Abort(number); abortErr != nil {
			return errors.Join(err, abortErr)
		}
		return err
	}
	s.summary.Messages++
	if s.settings.Progress != nil {
		s.settings.Progress(s.scanner.End())
	}
	return s.sink.End(interchange.Message{Number: number, Type: kind})
}

func (s *splitter) unrecognized(kind string) *fault.Fault {
	if len(s.settings.Documents) == 0 || slices.Contains(s.settings.Documents, kind) {
		return nil
	}
	return &fault.Fault{
		Message: fmt.Sprintf("message type %s is not known here", kind),
		Remedy:  "add its schema to the pipeline, or let it take messages of any type",
	}
}

// copyElement writes the element that begins, with the bytes that it has, and the declarations around it that it does not make itself.
func (s *splitter) copyElement(w io.Writer) error {
	depth := s.scanner.Depth()
	if err := s.writeStart(w); err != nil {
		return err
	}
	if s.settings.Watcher != nil {
		s.settings.Watcher.Token(s.scanner, xmlscan.StartElement)
	}
	for {
		kind, err := s.scanner.Next()
		if err != nil {
			return err
		}
		if _, err := w.Write(s.scanner.Raw()); err != nil {
			return err
		}
		if s.settings.Watcher != nil {
			s.settings.Watcher.Token(s.scanner, kind)
		}
		if kind == xmlscan.EndElement && s.scanner.Depth() == depth {
			return nil
		}
	}
}

func (s *splitter) writeStart(w io.Writer) error {
	raw := s.scanner.Raw()
	spaces := map[string]string{}
	var prefixes []string
	for prefix, space := range s.scanner.Bindings {
		if _, has := spaces[prefix]; !has {
			prefixes = append(prefixes, prefix)
		}
		spaces[prefix] = space
	}
	for _, a := range s.scanner.Attrs() {
		if a.Name.Space != xmlscan.XMLNSSpace {
			continue
		}
		if a.Name.Prefix == "" {
			delete(spaces, "")
		} else {
			delete(spaces, a.Name.Local)
		}
	}
	name := s.scanner.Name()
	at := 1 + len(name.Local)
	if name.Prefix != "" {
		at += len(name.Prefix) + 1
	}
	out := append([]byte(nil), raw[:at]...)
	for _, prefix := range prefixes {
		space, has := spaces[prefix]
		switch {
		case !has, prefix == "" && space == "":
			continue
		case prefix == "":
			out = append(out, " xmlns="...)
		default:
			out = append(out, " xmlns:"+prefix+"="...)
		}
		out = append(out, '"')
		out = append(out, typing.EscapeValue(space)...)
		out = append(out, '"')
	}
	_, err := w.Write(append(out, raw[at:]...))
	return err
}
