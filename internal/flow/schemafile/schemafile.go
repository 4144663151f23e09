// Package schemafile carries schemas in definitions: the text of a schema file and of the files that it names, so that each host has them
// and versions are in the database.
package schemafile

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/carried"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// BytesMost bounds the text of a schema with all the files that it names, in bytes.
const BytesMost = carried.BytesMost

// A Schema is what a message type has as its schema.
type Schema struct {
	// File is the path of the schema, with slashes, from the folder of the file that defines the message type.
	File string `json:"file"`
	// Documents are the texts of the schema and of the files that it names, by their paths.
	Documents map[string]string `json:"documents,omitempty"`
}

// IsJSON reports whether it is a JSON Schema, by the name of its file.
func (s *Schema) IsJSON() bool { return strings.EqualFold(path.Ext(s.File), ".json") }

var kind = carried.Kind{Name: "schema", Give: `give {"file": "schemas/order.xsd"}`, LeaveOut: "what messages do not need"}

// Check says why a schema cannot be used as it stands in a definition.
func (s *Schema) Check() *fault.Fault {
	return carried.Check(kind, s.File, s.Documents)
}

// mark lets a text be UTF-8 whatever its declaration says of the file that it came from.
const mark = "\uFEFF"

func (s *Schema) read(name string) ([]byte, error) {
	document, ok := s.Documents[path.Clean(name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return []byte(mark + document), nil
}

// XSD reads an XML schema.
func (s *Schema) XSD() (*xsd.Schema, error) {
	if f := s.Check(); f != nil {
		return nil, f
	}
	return parseXSD(path.Clean(s.File), s.read)
}

// JSON compiles a JSON Schema. format is a rule of it where assertFormat says so.
func (s *Schema) JSON(assertFormat bool) (*jsonbody.Schema, error) {
	if f := s.Check(); f != nil {
		return nil, f
	}
	return jsonbody.Parse(path.Clean(s.File), s.read, assertFormat)
}

func parseXSD(file string, read func(name string) ([]byte, error)) (*xsd.Schema, error) {
	body, err := read(file)
	if err != nil {
		return nil, err
	}
	return xsd.Parse(file, body, func(from, location string) (string, []byte, error) {
		name := path.Join(path.Dir(from), strings.ReplaceAll(location, `\`, "/"))
		body, err := read(name)
		return name, body, err
	})
}

// Read reads a schema from a folder with all the files that it names there, in whatever charset they are.
func Read(folder fs.FS, file string) (*Schema, error) {
	r := &reading{folder: folder, documents: map[string]string{}}
	s := &Schema{File: file}
	clean := path.Clean(file)
	var err error
	if s.IsJSON() {
		_, err = jsonbody.Parse(clean, r.read, false)
	} else {
		var parsed *xsd.Schema
		if parsed, err = parseXSD(clean, r.read); err == nil {
			err = buildAll(parsed)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	s.Documents = r.documents
	return s, err
}

// buildAll finds what the schema needs and is not there.
func buildAll(schema *xsd.Schema) error {
	for _, name := range schema.Elements {
		if _, err := schema.Element(name); err != nil {
			return err
		}
	}
	return nil
}

// reading keeps the texts of all that was read.
type reading struct {
	folder    fs.FS
	documents map[string]string
	bytes     int
	err       error
}

func (r *reading) read(name string) ([]byte, error) {
	if document, has := r.documents[name]; has {
		return []byte(mark + document), nil
	}
	if !fs.ValidPath(name) {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("the schema %s is not below the folder of the definition", name),
			Remedy:  "put it into the folder, or into one in it, and name it from there",
		}
	}
	file, err := r.folder.Open(name)
	if err != nil {
		return nil, &fault.Fault{Message: "read the schema: " + err.Error(), Err: err, Remedy: "name a file beside the definition"}
	}
	defer file.Close()
	written, err := io.ReadAll(io.LimitReader(file, BytesMost+1))
	if err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	source, err := text.Open(bytes.NewReader(written), "", !strings.EqualFold(path.Ext(name), ".json"))
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	document, err := io.ReadAll(source)
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	if r.bytes += len(document); r.bytes > BytesMost {
		r.err = &fault.Fault{
			Message: "the schema and the files that it names are too long", File: name,
			Expected: fmt.Sprintf("at most %d bytes in all", BytesMost), Remedy: "leave out what messages do not need",
		}
		return nil, r.err
	}
	r.documents[name] = string(document)
	return []byte(mark + string(document)), nil
}

// Names are the paths of the documents, in their order.
func (s *Schema) Names() []string { return slices.Sorted(maps.Keys(s.Documents)) }
