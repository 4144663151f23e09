package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/envelope"
	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// typeOf gives a message type that a setting names. Problems of the type itself have the path of the type.
func (c *compiling) typeOf(setting, name string) *compiledType {
	t := c.types.of(name)
	if t == nil {
		c.fail(setting, &fault.Fault{
			Message: fmt.Sprintf("there is no message type %q", name),
			Remedy:  "define it, or name one that there is: " + c.types.someNames(),
		})
		return nil
	}
	for _, p := range t.problems {
		if !slices.Contains(c.typeProblems, p.String()) {
			c.typeProblems = append(c.typeProblems, p.String())
			c.problems = append(c.problems, p)
		}
	}
	return t
}

// someNames names message types, up to ten.
func (t *Types) someNames() string {
	if t == nil || len(t.byName) == 0 {
		return "none"
	}
	names := slices.Sorted(maps.Keys(t.byName))
	if len(names) > 10 {
		names = append(names[:10], "...")
	}
	return strings.Join(names, ", ")
}

// withXSD gives the XML schema of a message type that a setting names.
func (c *compiling) withXSD(setting, name string) *xsd.Schema {
	t := c.typeOf(setting, name)
	switch {
	case t == nil || t.xsd == nil && len(t.problems) > 0:
		return nil
	case t.xsd == nil:
		c.fail(setting, &fault.Fault{
			Message: fmt.Sprintf("message type %s has no XML schema", name), Remedy: "give it one, such as schema: {file: schemas/order.xsd}",
		})
		return nil
	}
	return t.xsd
}

// validator requires that messages of a type can be held against its XML schema.
func (c *compiling) validator(setting, name string) {
	if c.withXSD(setting, name) == nil {
		return
	}
	if _, err := c.types.of(name).validation(); err != nil {
		c.fail(setting, err)
	}
}

// flatSchema compiles the schema of a message type that a setting names; nil without a name.
func (c *compiling) flatSchema(setting, name string, anyNewline bool) *flatfile.Schema {
	if name == "" {
		return nil
	}
	source := c.withXSD(setting, name)
	if source == nil {
		return nil
	}
	if !flatfile.IsFlatFile(source) {
		c.fail(setting, &fault.Fault{
			Message: fmt.Sprintf("the schema of message type %s says nothing about flat files", name),
			Remedy:  "add the annotations of a flat file to it, or name another message type",
		})
		return nil
	}
	schema, err := flatfile.Compile(source, flatfile.Settings{Root: rootName(name).Local, AnyNewline: anyNewline})
	if err != nil {
		c.fail(setting, err)
		return nil
	}
	return schema
}

// envelope gives the envelope that the schema of the type describes.
func (c *compiledType) envelope() (*envelope.Envelope, error) {
	if c.xsd == nil {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("message type %s has no XML schema", c.name), Remedy: "give it the schema of the envelope",
		}
	}
	all, err := envelope.FromSchema(c.xsd)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Type == c.name {
			return &all[i], nil
		}
	}
	return nil, &fault.Fault{
		Message: fmt.Sprintf("root %s has no body_xpath", c.name), Remedy: "set it in the recordInfo of the root", File: c.xsd.File(),
	}
}

// envelopes are those of all message types whose schema describes one.
func (t *Types) envelopes() []envelope.Envelope {
	var all []envelope.Envelope
	if t == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if m := t.byName[name]; m == nil || m.Schema == nil || m.Schema.IsJSON() {
			continue
		}
		c := t.of(name)
		if c.xsd == nil || !c.xsd.IsEnvelope() {
			continue
		}
		if e, err := c.envelope(); err == nil { // one that cannot be read is reported where it is named, and at apply
			all = append(all, *e)
		}
	}
	return all
}

// jsonSchema compiles the JSON Schema of a message type; nil where it has none.
func (c *compiling) jsonSchema(setting, name string, assertFormat bool) *jsonbody.Schema {
	t := c.typeOf(setting, name)
	if t == nil || t.schema == nil || !t.schema.IsJSON() || len(t.problems) > 0 {
		return nil
	}
	schema, err := t.schema.JSON(assertFormat)
	if err != nil {
		c.fail(setting, err)
		return nil
	}
	return schema
}
