// Package jsonbody takes JSON apart into its messages, with the bytes that they have, and holds them against a JSON Schema.
package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// A Schema is a compiled JSON Schema. It refers to files beside it only.
type Schema struct {
	schema *jsonschema.Schema
	Type   string // its $id, which is the type of its messages
}

// Load reads a schema. format is only a note in a schema, as the standard has it, unless assertFormat makes it a rule.
func Load(file string, assertFormat bool) (*Schema, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, &fault.Fault{Message: "the schema is no JSON: " + err.Error(), File: file, Err: err, Remedy: "correct the file"}
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(full)} // a path may hold #, which an address does not mean
	return compile(file, at.String(), document, jsonschema.SchemeURLLoader{"file": jsonschema.FileLoader{}}, assertFormat)
}

// scheme is that of the addresses of documents that are in no file.
const scheme = "schema"

// Parse compiles the schema of this name, a path with slashes. read gives it, and the documents beside it to which it refers.
func Parse(name string, read func(name string) ([]byte, error), assertFormat bool) (*Schema, error) {
	load := func(name string) (any, error) {
		body, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("read schema %s: %w", name, err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(body, []byte("\uFEFF"))))
		if err != nil {
			return nil, &fault.Fault{Message: "the schema is no JSON: " + err.Error(), File: name, Err: err, Remedy: "correct the file"}
		}
		return document, nil
	}
	document, err := load(name)
	if err != nil {
		return nil, err
	}
	loader := jsonschema.SchemeURLLoader{scheme: loading(func(address string) (any, error) {
		at, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		return load(strings.TrimPrefix(at.Path, "/"))
	})}
	address := url.URL{Scheme: scheme, Path: "/" + name}
	return compile(name, address.String(), document, loader, assertFormat)
}

// loading is a function that loads documents by their addresses.
type loading func(address string) (any, error)

// Load implements [jsonschema.URLLoader].
func (l loading) Load(address string) (any, error) { return l(address) }

func compile(file, address string, document any, loader jsonschema.URLLoader, assertFormat bool) (*Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(loader)
	if assertFormat {
		compiler.AssertFormat()
	}
	if err := compiler.AddResource(address, document); err != nil {
		return nil, &fault.Fault{Message: err.Error(), File: file, Err: err, Remedy: "correct the schema"}
	}
	schema, err := compiler.Compile(address)
	if err != nil {
		return nil, &fault.Fault{
			Message: err.Error(), File: file, Err: err,
			Remedy: "correct the schema; it may refer to files beside it, and to nothing on the network",
		}
	}
	s := &Schema{schema: schema}
	if object, ok := document.(map[string]any); ok {
		s.Type, _ = object["$id"].(string)
	}
	return s, nil
}

var english = message.NewPrinter(language.English)

// Check holds a message against the schema. The fault names the innermost value that is wrong.
func (s *Schema) Check(body []byte) *fault.Fault {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return notJSON(body, err)
	}
	err = s.schema.Validate(value)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return &fault.Fault{Message: err.Error(), Err: err, Remedy: "correct the message or the schema"}
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	f := &fault.Fault{
		Message: invalid.ErrorKind.LocalizedString(english), Field: pointer(invalid.InstanceLocation), Err: err,
		Place: placeOf(body, offsetOf(body, invalid.InstanceLocation)), Remedy: "correct the value, or the schema at " + invalid.SchemaURL,
	}
	if required, ok := invalid.ErrorKind.(*kind.Required); ok {
		f.Expected = "member " + strings.Join(required.Missing, ", ")
	}
	return f
}

func notJSON(body []byte, err error) *fault.Fault {
	f := &fault.Fault{Message: "this is no JSON: " + err.Error(), Err: err, Remedy: "send a JSON document"}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		f.Place = placeOf(body, max(0, int(syntax.Offset)-1))
	}
	return f
}

func pointer(location []string) string {
	if len(location) == 0 {
		return "/"
	}
	var b strings.Builder
	for _, step := range location {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// placeOf gives line and column of a byte.
func placeOf(body []byte, at int) fault.Place {
	before := body[:min(at, len(body))]
	place := fault.Place{Byte: int64(at), Line: int64(bytes.Count(before, []byte{'\n'})) + 1}
	place.Column = utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return place
}

// offsetOf finds where the value at a location begins, or 0.
func offsetOf(body []byte, location []string) int {
	d := json.NewDecoder(bytes.NewReader(body))
	at := 0
	for _, step := range location {
		open, err := d.Token()
		if err != nil {
			return 0
		}
		found := false
		for i := 0; d.More() && !found; i++ {
			name := fmt.Sprint(i)
			if open == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return 0
				}
				name = fmt.Sprint(key)
			}
			if found = name == step; found {
				break
			}
			var skipped json.RawMessage
			if err := d.Decode(&skipped); err != nil {
				return 0
			}
		}
		if !found {
			return at
		}
		at = int(d.InputOffset())
		for at < len(body) && strings.IndexByte(" \t\r\n:,", body[at]) >= 0 {
			at++
		}
	}
	return at
}
