package xsd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

// A node is an element of a schema document.
type node struct {
	name     xmlscan.Name
	attrs    map[string]string // without a namespace
	bindings map[string]string
	children []*node
	place    fault.Place
	file     string
}

// parse reads a schema document, in whatever charset it is.
func parse(file string, body []byte) (*node, error) {
	source, err := text.Open(bytes.NewReader(body), "", true)
	if err != nil {
		return nil, fault.InFile(err, file)
	}
	s := xmlscan.New(source, xmlscan.Limits{})
	var root *node
	var open []*node
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, fault.InFile(err, file)
		}
		switch kind {
		case xmlscan.StartElement:
			n := &node{name: s.Name(), attrs: map[string]string{}, place: s.Place(), file: file}
			declares := len(open) == 0
			for _, a := range s.Attrs() {
				declares = declares || a.Name.Space == xmlscan.XMLNSSpace
				if a.Name.Space == "" {
					n.attrs[a.Name.Local] = a.Value
				}
			}
			if declares {
				n.bindings = map[string]string{"xml": "http://www.w3.org/XML/1998/namespace"}
				maps.Insert(n.bindings, s.Bindings)
			} else {
				n.bindings = open[len(open)-1].bindings
			}
			if len(open) > 0 {
				parent := open[len(open)-1]
				parent.children = append(parent.children, n)
			} else {
				root = n
			}
			open = append(open, n)
		case xmlscan.EndElement:
			open = open[:len(open)-1]
		case xmlscan.Text, xmlscan.CDATA, xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

func (n *node) is(local string) bool { return n.name.Is(Space, local) }

// child gives the first child of one of these names.
func (n *node) child(locals ...string) *node {
	for _, c := range n.children {
		if slices.ContainsFunc(locals, c.is) {
			return c
		}
	}
	return nil
}

// qname resolves a name that is written with a prefix.
func (n *node) qname(written string) (Name, error) {
	prefix, local, has := strings.Cut(strings.TrimSpace(written), ":")
	if !has {
		return Name{Space: n.bindings[""], Local: prefix}, nil
	}
	space, ok := n.bindings[prefix]
	if !ok {
		return Name{}, n.broken(fmt.Sprintf("prefix %s of %s is not declared", prefix, written), "declare xmlns:"+prefix+" in the schema")
	}
	return Name{Space: space, Local: local}, nil
}

func (n *node) broken(message, remedy string) error {
	return &fault.Fault{Message: message, Remedy: remedy, File: n.file, Place: n.place}
}

// annotation gives the attributes of an annotation of BizTalk.
func (n *node) annotation(local string) Annotation {
	if found := n.appinfo(local); found != nil {
		return Annotation(found.attrs)
	}
	return nil
}

func (n *node) appinfo(local string) *node {
	for _, a := range n.children {
		if !a.is("annotation") {
			continue
		}
		for _, info := range a.children {
			if !info.is("appinfo") {
				continue
			}
			for _, c := range info.children {
				if c.name.Is(BizTalkSpace, local) {
					return c
				}
			}
		}
	}
	return nil
}
