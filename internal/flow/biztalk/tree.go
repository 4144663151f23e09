package biztalk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// bytesMost bounds a file, and elementsMost the elements of a document: a binding file of a whole group of servers has some 100,000.
const (
	bytesMost    = 64 << 20
	elementsMost = 1_000_000
)

// A node is an element of a document.
type node struct {
	name     xmlscan.Name
	attrs    map[string]string // without a namespace, and nil of XML Schema's instances
	children []*node
	text     string // of the element itself, without that of its children
	file     string
	place    fault.Place
}

// parse reads a document, in whatever charset it is.
func parse(file string, body []byte) (*node, error) {
	if len(body) > bytesMost {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("the file has more than %d bytes", bytesMost), File: file, Remedy: "export each application for itself",
		}
	}
	source, err := text.Open(bytes.NewReader(body), "", true)
	if err != nil {
		return nil, fault.InFile(err, file)
	}
	root, err := read(source, file)
	return root, fault.InFile(err, file)
}

// parseWithin reads a document that stands as text in an element. Its declaration names the charset of a file that there is not.
func (n *node) parseWithin() (*node, error) {
	within := strings.TrimLeft(n.text, "\uFEFF \t\r\n")
	if strings.HasPrefix(within, "<?xml") {
		if _, behind, found := strings.Cut(within, "?>"); found {
			within = behind
		}
	}
	root, err := read(strings.NewReader(within), n.file)
	if err == nil {
		root.placeWithin(n.place)
	}
	return root, err
}

// placeWithin gives all elements of a document the place of the one in which it stands as text.
func (n *node) placeWithin(place fault.Place) {
	n.place = place
	for _, c := range n.children {
		c.placeWithin(place)
	}
}

func read(body io.Reader, file string) (*node, error) {
	s := xmlscan.New(body, xmlscan.Limits{TokenBytes: 16 << 20})
	var root *node
	var open []*node
	count := 0
	var texts []*strings.Builder // of the open elements
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch kind {
		case xmlscan.StartElement:
			count++
			if count > elementsMost {
				return nil, &fault.Fault{
					Message: fmt.Sprintf("the document has more than %d elements", elementsMost), Place: s.Place(),
					Remedy: "export each application for itself",
				}
			}
			n := start(s, file)
			if len(open) > 0 {
				parent := open[len(open)-1]
				parent.children = append(parent.children, n)
			} else {
				root = n
			}
			open, texts = append(open, n), append(texts, &strings.Builder{})
		case xmlscan.EndElement:
			last := len(open) - 1
			open[last].text = texts[last].String()
			open, texts = open[:last], texts[:last]
		case xmlscan.Text, xmlscan.CDATA:
			if len(open) > 0 {
				texts[len(texts)-1].Write(s.Text())
			}
		case xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

func start(s *xmlscan.Scanner, file string) *node {
	n := &node{name: s.Name(), attrs: map[string]string{}, file: file, place: s.Place()}
	for _, a := range s.Attrs() {
		if a.Name.Space == "" || a.Name.Local == "nil" || a.Name.Local == "type" {
			n.attrs[a.Name.Local] = a.Value
		}
	}
	return n
}

// child gives the first child of this name, in whatever namespace; nil where there is none. It may be asked of nil.
func (n *node) child(local string) *node {
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.name.Local == local {
			return c
		}
	}
	return nil
}

// all gives the elements to which the names lead, from child to child.
func (n *node) all(path ...string) []*node {
	if n == nil {
		return nil
	}
	found := []*node{n}
	for _, local := range path {
		next := []*node{}
		for _, at := range found {
			for _, c := range at.children {
				if c.name.Local == local {
					next = append(next, c)
				}
			}
		}
		found = next
	}
	return found
}

// value gives what the element says of something, in the first of these names that it has: as a child element, or as an attribute.
func (n *node) value(locals ...string) string {
	if n == nil {
		return ""
	}
	for _, local := range locals {
		if c := n.child(local); c != nil && len(c.children) == 0 {
			if written := strings.TrimSpace(c.text); written != "" {
				return written
			}
		}
		if written := strings.TrimSpace(n.attrs[local]); written != "" {
			return written
		}
	}
	return ""
}

// isTrue reads a boolean, as XML Schema or as COM writes it.
func isTrue(written string) bool {
	switch strings.ToLower(strings.TrimSpace(written)) {
	case "true", "1", "-1":
		return true
	}
	return false
}
