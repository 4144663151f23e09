// Package flatfile reads and writes flat files, delimited, positional and both within each other, by XML schemas with the annotations that
// BizTalk Server's editor writes. A schema is compiled once; a file is read record by record, and only the record that is read is in
// memory.
package flatfile

import (
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// Settings choose what a schema leaves open.
type Settings struct {
	Root       string // name of the root element; empty: that of root_reference
	AnyNewline bool   // a delimiter that ends lines matches CR, LF and CR LF alike
}

// A Schema is compiled: a program that a reader and a writer follow.
type Schema struct {
	Source    *xsd.Schema
	root      *definition
	codePage  string
	byBytes   bool // positions are counted in bytes of the code page
	isComplex bool // parser_optimization complexity
	lookahead int  // choices that are taken back at most, 0: all
	namespace []namespace

	allowEarly         bool
	earlyOptional      bool
	suppressEmptyNodes bool
	generateEmptyNodes bool
	breaksUpInfixRoot  bool
	letterCase         string // upper, lower or empty
	wraps              bool   // a field has a wrap character
	restricted         []xsd.Range
}

// A namespace of the XML, with the prefix that is written for it.
type namespace struct{ space, prefix string }

// Load reads and compiles a schema file.
func Load(file string, settings Settings) (*Schema, error) {
	source, err := xsd.Load(file)
	if err != nil {
		return nil, err
	}
	return Compile(source, settings)
}

// IsFlatFile reports whether a schema says how a flat file is written.
func IsFlatFile(source *xsd.Schema) bool {
	standard := source.Info["standard"]
	return standard == "Flat File" || standard == "" && source.Info["root_reference"] != "" && (source.Info["codepage"] != "" ||
		source.Info["default_child_delimiter"] != "" || source.Info["count_positions_by_byte"] != "")
}

// Name is the namespace and the name of the root element.
func (s *Schema) Name() xsd.Name { return s.root.name }

// MessageType is namespace#root, as routing knows it.
func (s *Schema) MessageType() string {
	if s.root.name.Space == "" {
		return s.root.name.Local
	}
	return s.root.name.Space + "#" + s.root.name.Local
}

// Compile makes a program of a schema. Every error is a *fault.Fault that names the place in the schema.
func Compile(source *xsd.Schema, settings Settings) (*Schema, error) {
	root, err := source.Root(settings.Root)
	if err != nil {
		return nil, err
	}
	s := &Schema{
		Source: source, codePage: source.Info["codepage"], restricted: source.Restricted,
		byBytes:            isTrue(source.Info, "count_positions_by_byte", false) || isTrue(source.Info, "count_positions_by_bytes", false),
		isComplex:          source.Info["parser_optimization"] == "complexity",
		allowEarly:         isTrue(source.Info, "allow_early_termination", false),
		suppressEmptyNodes: isTrue(source.Info, "suppress_empty_nodes", false),
		generateEmptyNodes: isTrue(source.Info, "generate_empty_nodes", true),
		breaksUpInfixRoot:  isTrue(source.Info, "allow_message_breakup_of_infix_root", false),
		letterCase:         source.Info["case"],
		lookahead:          3,
	}
	s.earlyOptional = s.allowEarly && isTrue(source.Info, "early_terminate_optional_fields", false)
	if written, ok := source.Info["lookahead_depth"]; ok {
		depth, err := strconv.Atoi(strings.TrimSpace(written))
		if err != nil || depth < 0 {
			return nil, &fault.Fault{
				Message: "lookahead_depth is " + strconv.Quote(written), Remedy: "write a number from 0", File: source.File(),
			}
		}
		s.lookahead = depth
	}
	c := &compiler{schema: s, info: source.Info, anyNewline: settings.AnyNewline, file: source.File()}
	if s.root, err = c.record(root, "", nil); err != nil {
		return nil, err
	}
	if s.root.isField {
		return nil, c.broken(root.Place, "the root element has no content", "name a root that is a record")
	}
	c.nameTags(s.root)
	s.root.markStreams(s.isComplex)
	return s, nil
}

func isTrue(a xsd.Annotation, name string, byDefault bool) bool {
	switch strings.TrimSpace(strings.ToLower(a[name])) {
	case "true", "yes", "1":
		return true
	case "false", "no", "0":
		return false
	}
	return byDefault
}
