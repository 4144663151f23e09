// Package definitions reads the definitions of the integration engine from files, with the place of every key, and writes them.
package definitions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// variablesSection is the key beside the kinds that gives variables their values.
const variablesSection = "variables"

// A Document is what files define, merged: {kind: {name: settings}}.
type Document struct {
	root     *value
	isPart   bool
	unusable []Place // of values that are not known
}

// IsPart is whether there is something that could not be read: a name that the document has not may be defined there.
func (d *Document) IsPart() bool { return d.isPart }

// IsUnusable reports whether a path leads to a value that could not be read, such as one with a variable that has no value.
func (d *Document) IsUnusable(path []string) bool {
	v := d.root.at(path)
	return v != nil && slices.Contains(d.unusable, v.place)
}

// JSON gives the document as parley_flow.apply takes it.
func (d *Document) JSON() (json.RawMessage, error) {
	written, err := d.root.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write the definitions as JSON: %w", err)
	}
	return written, nil
}

// Locate gives the place of what a path of keys and numbers of elements leads to. It is that of the last key on the way that is there, and
// none where the files have nothing of it.
func (d *Document) Locate(path []string) Place {
	// The root is of no file, and a kind may be of several.
	if len(path) == 0 {
		return Place{}
	}
	// An object that the files do not name is one of the database.
	if kind := d.root.member(path[0]); kind == nil || len(path) > 1 && kind.value.kind == isObject && kind.value.member(path[1]) == nil {
		return Place{}
	}
	return d.root.locate(path)
}

// A Source is a file of definitions.
type Source struct {
	Name    string // as messages name it; .json is JSON, everything else YAML
	Written []byte
}

// Settings give variables their values.
type Settings struct {
	Environment []Source          // files that give variables values in an environment
	Set         map[string]string // variables of the command line, which come before all others
}

// Read reads files of definitions and merges them. Its error is [Faults]: everything that is wrong. The document is there with an error
// too: it has what could be read.
func Read(sources []Source, settings Settings) (*Document, error) {
	faults := &faultList{}
	root := &value{kind: isObject}
	known := variables{values: map[string]*value{}, isUsed: map[string]bool{}}
	isPart := false
	for _, source := range sources {
		before := len(faults.faults)
		documents := source.read(faults)
		isPart = isPart || len(faults.faults) > before
		for _, document := range documents {
			isPart = isPart || document.kind != isObject && document.kind != isNull
			merge(root, document, &known, faults)
		}
	}
	environment := variables{values: map[string]*value{}}
	for _, source := range settings.Environment {
		for _, document := range source.read(faults) {
			environment.take(document, false, faults)
		}
	}
	maps.Copy(known.values, environment.values)
	names := []string{}
	for name, text := range settings.Set {
		known.set(name, text, faults)
		names = append(names, name)
	}
	read := len(faults.faults)
	known.put(root, faults)
	document := &Document{root: root, isPart: isPart}
	for _, f := range faults.faults[read:] {
		document.unusable = append(document.unusable, f.Place)
	}
	known.requireUsed(names, faults)
	if len(faults.faults) > 0 {
		return document, faults.faults.Sorted()
	}
	return document, nil
}

// merge adds the objects of a document to those that are there.
func merge(root, document *value, known *variables, faults *faultList) {
	if document.kind == isNull {
		return
	}
	if document.kind != isObject {
		faults.add(document.place, "give an object of kinds, such as application: {Orders: {}}", "the document is %s", describe(document))
		return
	}
	for _, kind := range document.members {
		if kind.name == variablesSection {
			known.take(kind.value, false, faults)
			continue
		}
		before := root.member(kind.name)
		if before == nil {
			root.add(kind)
			continue
		}
		// The database refuses a kind that is no object of names, and lists the kinds that there are.
		if kind.value.kind == isNull {
			continue
		}
		if kind.value.kind != isObject || before.value.kind != isObject {
			before.value, before.place = kind.value, kind.place
			continue
		}
		for _, object := range kind.value.members {
			if first := before.value.member(object.name); first != nil {
				faults.add(object.place, "define it in one place", "%s %q is defined twice, first at %s", kind.name, object.name, first.place)
				continue
			}
			before.value.add(object)
		}
	}
}

// sizeMax bounds a file in bytes.
const sizeMax = 16 << 20

func (s Source) read(faults *faultList) []*value {
	whole := Place{File: s.Name}
	s.Written = bytes.TrimPrefix(s.Written, []byte("\uFEFF"))
	switch {
	case len(s.Written) > sizeMax:
		faults.add(whole, "make several of it", "the file has more than %d bytes", sizeMax)
		return nil
	case !utf8.Valid(s.Written):
		faults.add(placeOfInvalid(s.Name, s.Written), "save the file as UTF-8", "the file is not in UTF-8")
		return nil
	case s.isJSON():
		return readJSON(s.Name, s.Written, faults)
	}
	return readYAML(s.Name, s.Written, faults)
}

// placeOfInvalid finds the first byte that is not UTF-8.
func placeOfInvalid(file string, written []byte) Place {
	place := Place{File: file, Line: 1, Column: 1}
	for len(written) > 0 {
		r, size := utf8.DecodeRune(written)
		if r == utf8.RuneError && size == 1 {
			break
		}
		place.Column++
		if r == '\n' {
			place.Line, place.Column = place.Line+1, 1
		}
		written = written[size:]
	}
	return place
}
