package mapping

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Difference is a place at which a result is not as expected.
type Difference struct {
	Path     string  `json:"path"`
	Got      *string `json:"got"`      // null: nothing is there
	Expected *string `json:"expected"` // null: nothing should be there
}

func (d Difference) String() string {
	switch {
	case d.Got == nil:
		return fmt.Sprintf("%s: missing, expected %q", d.Path, *d.Expected)
	case d.Expected == nil:
		return fmt.Sprintf("%s: %q, expected nothing", d.Path, *d.Got)
	}
	return fmt.Sprintf("%s: %q, expected %q", d.Path, *d.Got, *d.Expected)
}

// Compare gives the differences between a result and what is expected. XML is compared without prefixes, comments, the order of attributes
// and white space between elements; JSON without the order of keys, also where a stylesheet wrote it as text; anything else by its bytes.
func Compare(got, expected []byte, contentType string) ([]Difference, error) {
	switch {
	case strings.HasSuffix(contentType, "json"):
		return compareJSON(got, expected)
	case contentType == "application/xml" || strings.HasSuffix(contentType, "+xml"):
		return compareXML(got, expected)
	}
	if isComposed(got) && isComposed(expected) {
		return compareJSON(got, expected) // a stylesheet writes JSON as text
	}
	if bytes.Equal(got, expected) {
		return nil, nil
	}
	return []Difference{difference("", string(got), string(expected))}, nil
}

// isComposed reports whether a text is an object or an array of JSON.
func isComposed(body []byte) bool {
	return len(body) > 0 && (body[0] == '{' || body[0] == '[') && json.Valid(body)
}

func difference(path, got, expected string) Difference { return Difference{path, &got, &expected} }

// element is an element of XML, as it is compared.
type element struct {
	name     xml.Name
	attrs    []xml.Attr
	text     string
	children []*element
}

func readElements(body []byte) (*element, error) {
	top := &element{}
	open := []*element{top}
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return top, nil
		}
		if err != nil {
			return nil, err
		}
		current := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			child := &element{name: t.Name}
			for _, a := range t.Attr {
				if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
					child.attrs = append(child.attrs, a)
				}
			}
			slices.SortFunc(child.attrs, func(a, b xml.Attr) int {
				return cmp.Or(cmp.Compare(a.Name.Space, b.Name.Space), cmp.Compare(a.Name.Local, b.Name.Local))
			})
			current.children = append(current.children, child)
			open = append(open, child)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			current.text += string(t)
		}
	}
}

func compareXML(got, expected []byte) ([]Difference, error) {
	g, err := readElements(got)
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	e, err := readElements(expected)
	if err != nil {
		return nil, fmt.Errorf("read what is expected: %w", err)
	}
	var found []Difference
	g.compare(e, "", &found)
	return found, nil
}

// step is the name of an element in a path: with its number where it has brothers of the name.
func (e *element) step(number int) string {
	child := e.children[number]
	count, at := 0, 0
	for i, other := range e.children {
		if other.name == child.name {
			count++
			if i <= number {
				at++
			}
		}
	}
	if count == 1 {
		return "/" + child.name.Local
	}
	return fmt.Sprintf("/%s[%d]", child.name.Local, at)
}

func (e *element) String() string { return strings.TrimSpace(e.text) }

func nameOf(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + "#" + n.Local
}

// compare compares what is in two elements of the same name.
func (e *element) compare(expected *element, path string, found *[]Difference) {
	names := map[xml.Name][2]*string{}
	for i, list := range [][]xml.Attr{e.attrs, expected.attrs} {
		for _, a := range list {
			both := names[a.Name]
			both[i] = &a.Value
			names[a.Name] = both
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b xml.Name) int { return cmp.Compare(nameOf(a), nameOf(b)) }) {
		if both := names[name]; both[0] == nil || both[1] == nil || *both[0] != *both[1] {
			*found = append(*found, Difference{path + "/@" + name.Local, both[0], both[1]})
		}
	}
	isLeaf := len(e.children) == 0 && len(expected.children) == 0
	if isLeaf && e.text != expected.text || e.String() != expected.String() {
		*found = append(*found, difference(path, e.text, expected.text))
	}
	for i := range max(len(e.children), len(expected.children)) {
		switch {
		case i >= len(e.children):
			text := expected.children[i].String()
			*found = append(*found, Difference{path + expected.step(i), nil, &text})
		case i >= len(expected.children):
			text := e.children[i].String()
			*found = append(*found, Difference{path + e.step(i), &text, nil})
		case e.children[i].name != expected.children[i].name:
			*found = append(*found, difference(path+expected.step(i), nameOf(e.children[i].name), nameOf(expected.children[i].name)))
			return // those behind it stand elsewhere
		default:
			e.children[i].compare(expected.children[i], path+expected.step(i), found)
		}
	}
}

func compareJSON(got, expected []byte) ([]Difference, error) {
	g, err := readJSON(bytes.NewReader(got))
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	e, err := readJSON(bytes.NewReader(expected))
	if err != nil {
		return nil, fmt.Errorf("read what is expected: %w", err)
	}
	var found []Difference
	compareValues(g, e, "", &found)
	return found, nil
}

func compareValues(got, expected any, path string, found *[]Difference) {
	switch e := expected.(type) {
	case map[string]any:
		if g, is := got.(map[string]any); is {
			keys := maps.Clone(e)
			maps.Copy(keys, g)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				one, inGot := g[key]
				other, inExpected := e[key]
				compareMembers(one, other, inGot, inExpected, path+"/"+key, found)
			}
			return
		}
	case []any:
		if g, is := got.([]any); is {
			for i := range max(len(g), len(e)) {
				var one, other any
				if i < len(g) {
					one = g[i]
				}
				if i < len(e) {
					other = e[i]
				}
				compareMembers(one, other, i < len(g), i < len(e), fmt.Sprintf("%s/%d", path, i), found)
			}
			return
		}
	}
	if !reflect.DeepEqual(got, expected) {
		*found = append(*found, difference(path, inJSON(got), inJSON(expected)))
	}
}

func compareMembers(got, expected any, inGot, inExpected bool, path string, found *[]Difference) {
	if inGot && inExpected {
		compareValues(got, expected, path, found)
		return
	}
	d := Difference{Path: path}
	if inGot {
		text := inJSON(got)
		d.Got = &text
	}
	if inExpected {
		text := inJSON(expected)
		d.Expected = &text
	}
	*found = append(*found, d)
}

func inJSON(value any) string {
	written, err := json.Marshal(value)
	if err != nil { // only of what was read as JSON
		return err.Error()
	}
	return string(written)
}
