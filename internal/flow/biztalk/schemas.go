package biztalk

import (
	"path"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// types are the types of properties, by those of XML Schema; all others are texts.
var types = map[string]string{
	"boolean": "boolean", "dateTime": "timestamp",
	"decimal": "number", "double": "number", "float": "number",
	"integer": "integer", "int": "integer", "long": "integer", "short": "integer", "byte": "integer", "nonNegativeInteger": "integer",
	"positiveInteger": "integer", "negativeInteger": "integer", "nonPositiveInteger": "integer", "unsignedInt": "integer",
	"unsignedLong": "integer", "unsignedShort": "integer", "unsignedByte": "integer",
}

// translateSchemas translates schemas: property schemas first, because those of messages name them.
func (t *translation) translateSchemas(sources []Source) {
	read := []*xsd.Schema{}
	for _, source := range sources {
		schema, err := xsd.Parse(source.Name, source.Body, t.settings.Resolve)
		if err != nil {
			t.omitFault(source.Name, "schema", base(source.Name), "the schema", err)
			continue
		}
		read = append(read, schema)
	}
	for _, schema := range read {
		if schema.Info["schema_type"] == "property" {
			t.translateProperties(schema)
		}
	}
	for _, schema := range read {
		if schema.Info["schema_type"] != "property" {
			t.translateMessages(schema)
		}
	}
}

// omitFault lists something that cannot be read.
func (t *translation) omitFault(file, kind, name, what string, err error) {
	o := Omission{
		File: file, Line: 1, Column: 1, Kind: kind, Name: name, What: what, Why: err.Error(), Instead: "mend it, or write it by hand",
	}
	if f, is := fault.Of(err); is {
		o.Why, o.Instead = f.Message, f.Remedy
		if f.Place.Line > 0 {
			o.Line, o.Column = f.Place.Line, f.Place.Column
		}
		if f.File != "" && f.File != file {
			o.Why = f.File + ": " + o.Why
			o.Line, o.Column = 1, 1
		}
	}
	t.omissions = append(t.omissions, o)
}

func (t *translation) translateProperties(schema *xsd.Schema) {
	space := schema.TargetNamespace
	class := propertyClass{file: base(schema.File()), space: space, types: map[string]string{}}
	if !isNamespace(space) {
		t.omissions = append(t.omissions, Omission{
			File: schema.File(), Line: 1, Column: 1, Kind: kindPropertySchema, Name: space, What: "the property schema",
			Why: "a namespace has 1 to 200 bytes, without # and blanks at its ends", Instead: "give it another namespace",
		})
		return
	}
	for _, name := range schema.Elements {
		element, err := schema.Element(name)
		if err != nil {
			t.omitFault(schema.File(), kindPropertySchema, space, "property "+name.Local, err)
			continue
		}
		typ := "text"
		if element.Simple != nil && types[element.Simple.Base] != "" {
			typ = types[element.Simple.Base]
		}
		class.types[name.Local] = typ
		t.use(space, name.Local)
		t.declared[space][name.Local] = typ
	}
	t.classes = append(t.classes, class)
}

// translateMessages makes a message type of each root of a schema that BizTalk would have.
func (t *translation) translateMessages(schema *xsd.Schema) {
	roots := schema.Elements
	if reference := schema.Info["root_reference"]; reference != "" {
		roots = []xsd.Name{{Space: schema.TargetNamespace, Local: reference}}
	}
	for _, root := range roots {
		name := typing.TypeOf(root.Space, root.Local)
		if len(name) > nameMost || name != strings.TrimSpace(name) || token.MatchString(name) {
			t.omissions = append(t.omissions, Omission{
				File: schema.File(), Line: 1, Column: 1, Kind: kindMessageType, Name: name, What: "the message type",
				Why: "its name has more than 200 bytes, or signs with a meaning of their own", Instead: "give it a shorter namespace",
			})
			continue
		}
		file := strings.ToLower(base(schema.File()))
		t.roots[file] = append(t.roots[file], name)
		element, err := schema.Element(root)
		if err != nil {
			t.omitFault(schema.File(), kindMessageType, name, "the message type", err)
			continue
		}
		if _, hasBody := element.Record["body_xpath"]; hasBody && schema.IsEnvelope() {
			t.envelopes[name] = true
		}
		t.add(kindApplication, t.settings.Application, object{})
		settings := object{"application": t.settings.Application}
		if carried := t.carry(schema, element, name); carried != nil {
			settings["schema"] = carried
		}
		if promotions := t.promotions(schema, name, element); len(promotions) > 0 {
			settings["promotions"] = promotions
		}
		if !t.add(kindMessageType, name, settings) {
			t.omitFault(schema.File(), kindMessageType, name, "a second schema of this type", &fault.Fault{
				Message: "there is one", Remedy: "keep one version of the schema",
			})
		}
	}
}

// carry gives the schema of a message type with its texts, nil where they cannot be had.
func (t *translation) carry(schema *xsd.Schema, element *xsd.Element, name string) object {
	for _, property := range element.Properties {
		if _, err := typing.ParsePath(property.XPath); err != nil {
			t.omissions = append(t.omissions, Omission{
				File: schema.File(), Line: property.Place.Line, Column: property.Place.Column, Kind: kindMessageType, Name: name,
				What: "the schema", Why: "a path in it is not in the canonical form", Instead: "mend the path in the schema, and import it again",
			})
			return nil
		}
	}
	carried := object{"file": path.Base(strings.ReplaceAll(schema.File(), `\`, "/"))}
	if t.settings.Carry == nil {
		return carried
	}
	documents, err := t.settings.Carry(schema.File())
	if err != nil {
		t.omitFault(schema.File(), kindMessageType, name, "the schema", err)
		return nil
	}
	carried["documents"] = documents
	return carried
}

func (t *translation) promotions(schema *xsd.Schema, name string, element *xsd.Element) object {
	promotions := object{}
	for _, property := range element.Properties {
		if property.Distinguished || property.Name == "" {
			continue // for orchestrations alone
		}
		place := Omission{File: schema.File(), Line: property.Place.Line, Column: property.Place.Column, Kind: kindMessageType, Name: name}
		if !isNamespace(property.Namespace) || strings.ContainsAny(property.Name, "#\n") {
			place.What, place.Why = "the promotion of "+property.Name, "its prefix stands for no namespace of a property schema"
			place.Instead = "declare the prefix in the schema"
			t.omissions = append(t.omissions, place)
			continue
		}
		path, err := typing.ParsePath(property.XPath)
		if err != nil {
			place.What, place.Why, place.Instead = "the promotion of "+property.Name, err.Error(), "write a path in the canonical form"
			if f, is := fault.Of(err); is {
				place.Why, place.Instead = f.Message, f.Remedy
			}
			t.omissions = append(t.omissions, place)
			continue
		}
		if t.use(property.Namespace, property.Name) && !t.hasClass(property.Namespace) {
			place.What = "the type of property " + property.Namespace + "#" + property.Name
			place.Why = "its property schema is not among the files; it is a text now"
			place.Instead = "import the .xsd of the property schema too"
			t.omissions = append(t.omissions, place)
		}
		promotions[property.Namespace+"#"+property.Name] = path.String()
	}
	return promotions
}

func (t *translation) hasClass(space string) bool {
	return slices.ContainsFunc(t.classes, func(c propertyClass) bool { return c.space == space })
}
