package flatfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// WriteSettings are for the writing of a file.
type WriteSettings struct {
	Charset  string // beside the schema's code page, which it overrides
	Mark     bool   // a byte-order mark stands first
	Truncate bool   // a value that is too long for its positions is cut, as BizTalk does, and not refused
}

// An Assembler writes one flat file of documents.
type Assembler struct {
	settings WriteSettings
	out      io.WriteCloser
	charset  *text.Charset
	schema   *Schema
	buf      []byte // written and not given out yet
	last     *Schema
}

// NewAssembler begins a flat file on w, in the code page of the schema unless the settings name a charset.
func (s *Schema) NewAssembler(w io.Writer, settings WriteSettings) (*Assembler, error) {
	name := settings.Charset
	if name == "" {
		name = s.codePage
	}
	if name == "" {
		name = text.UTF8.Name
	}
	charset, err := text.Lookup(name)
	if err != nil {
		return nil, &fault.Fault{Message: err.Error(), Remedy: "name a charset of the Internet's registry or the number of a code page"}
	}
	out, err := text.Output{Charset: name, Mark: settings.Mark}.NewWriter(w)
	if err != nil {
		return nil, err
	}
	return &Assembler{settings: settings, out: out, charset: charset}, nil
}

// Close writes what is left.
func (a *Assembler) Close() error {
	if err := a.spill(0); err != nil {
		return err
	}
	return a.out.Close()
}

func (a *Assembler) spill(keep int) error {
	if len(a.buf) <= keep {
		return nil
	}
	_, err := a.out.Write(a.buf)
	a.buf = a.buf[:0]
	return err
}

// A tree is a record or field of the document that is written.
type tree struct {
	definition *definition
	value      string
	children   []*tree
	place      fault.Place
}

// writer writes one document.
type writer struct {
	*Assembler
	scanner *xmlscan.Scanner
	schema  *Schema
	trees   int
}

// Write appends the message of a document of XML: a header, a message or a trailer, by the schema of each.
func (a *Assembler) Write(ctx context.Context, schema *Schema, document io.Reader) error {
	source, err := text.Open(document, "", true)
	if err != nil {
		return err
	}
	if a.last != nil && a.last.root.order == infix && a.last.root.delimiter != nil {
		if a.last == schema && !schema.breaksUpInfixRoot {
			return &fault.Fault{
				Message: fmt.Sprintf("a second message %s, whose root is infix: nothing would stand between them", schema.root.name.Local),
				Remedy:  "write one message into a file, make the root postfix, or set allow_message_breakup_of_infix_root",
			}
		}
		a.buf = append(a.buf, a.last.root.delimiter.text...)
	}
	a.schema = schema
	w := &writer{Assembler: a, schema: schema, scanner: xmlscan.New(source, xmlscan.Limits{})}
	if err := w.document(ctx); err != nil {
		return err
	}
	a.last = schema
	return nil
}

func (w *writer) document(ctx context.Context) error {
	for {
		kind, err := w.next()
		if err != nil {
			return err
		}
		if kind != xmlscan.StartElement {
			continue
		}
		root := w.schema.root
		if name := w.scanner.Name(); !name.Is(root.name.Space, root.name.Local) {
			return w.broken(fmt.Sprintf("the document is %s of namespace %q, and the schema is for %s of %q",
				name.Local, name.Space, root.name.Local, root.name.Space), "give the schema of this document")
		}
		if root.streams {
			err = w.stream(ctx, root)
		} else {
			var t *tree
			if t, err = w.read(root); err == nil {
				w.buf, err = w.appendTree(w.buf, t)
			}
		}
		if err != nil {
			return err
		}
		break
	}
	for {
		if _, err := w.scanner.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// next reads a token within the document; its end is an error.
func (w *writer) next() (xmlscan.Kind, error) {
	kind, err := w.scanner.Next()
	if errors.Is(err, io.EOF) {
		return 0, io.ErrUnexpectedEOF // the scanner reports documents that are cut off before
	}
	return kind, err
}

func (w *writer) broken(message, remedy string) error {
	return &fault.Fault{Message: message, Remedy: remedy, Place: w.scanner.Place()}
}

// read reads an element, whose start tag was read, with all it contains.
func (w *writer) read(d *definition) (*tree, error) {
	w.trees++
	if w.trees > instancesMost {
		return nil, w.broken(fmt.Sprintf("a record has more than %d parts", instancesMost), "split the document")
	}
	t := &tree{definition: d, place: w.scanner.Place()}
	if d.isField {
		return t, w.readValue(t)
	}
	if err := w.readAttributes(t); err != nil {
		return nil, err
	}
	for {
		kind, err := w.next()
		if err != nil {
			return nil, err
		}
		switch kind {
		case xmlscan.StartElement:
			c, err := w.childOf(d)
			if err != nil {
				return nil, err
			}
			inner, err := w.read(c.definition)
			if err != nil {
				return nil, err
			}
			t.children = append(t.children, inner)
		case xmlscan.EndElement:
			return t, nil
		case xmlscan.Text, xmlscan.CDATA:
			if err := w.onlyBlank(d); err != nil {
				return nil, err
			}
		case xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

// onlyBlank refuses text beside the fields of a record.
func (w *writer) onlyBlank(d *definition) error {
	if len(bytes.TrimSpace(w.scanner.Text())) > 0 {
		return w.broken(fmt.Sprintf("text in record %s, which has fields only", d.path), "put the text into a field")
	}
	return nil
}

func (w *writer) readValue(t *tree) error {
	for {
		kind, err := w.next()
		if err != nil {
			return err
		}
		switch kind {
		case xmlscan.Text, xmlscan.CDATA:
			t.value += string(w.scanner.Text())
		case xmlscan.EndElement:
			return nil
		case xmlscan.StartElement:
			return w.broken(fmt.Sprintf("element %s in field %s", w.scanner.Name().Local, t.definition.path),
				"write a text there, or correct the schema")
		case xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

func (w *writer) readAttributes(t *tree) error {
	for _, attr := range w.scanner.Attrs() {
		if attr.Name.Space == xmlscan.XMLNSSpace || attr.Name.Space == "http://www.w3.org/2001/XMLSchema-instance" {
			continue
		}
		found := false
		for _, d := range t.definition.attributes {
			if attr.Name.Is(d.name.Space, d.name.Local) {
				t.children = append(t.children, &tree{definition: d, value: attr.Value, place: t.place})
				found = true
			}
		}
		if !found {
			return w.broken(fmt.Sprintf("record %s has no attribute %s in the schema", t.definition.path, attr.Name.Local),
				"remove it, or add it to the schema")
		}
	}
	return nil
}

func (w *writer) childOf(d *definition) (child, error) {
	name := w.scanner.Name()
	c, ok := d.children[xsd.Name{Space: name.Space, Local: name.Local}]
	if ok {
		return c, nil
	}
	for known := range d.children {
		if known.Local == name.Local {
			return c, w.broken(fmt.Sprintf("element %s in record %s is of namespace %q, and in the schema of %q",
				name.Local, d.path, name.Space, known.Space),
				`write it in that namespace; elements that are not qualified need xmlns="" below a default namespace`)
		}
	}
	return c, w.broken(fmt.Sprintf("record %s has no element %s in the schema", d.path, name.Local), "remove it, or add it to the schema")
}
