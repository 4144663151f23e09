package pipeline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/schemafile"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/validation"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// Types are the message types that pipelines know, with their schemas and promotions. They can be used by several pipelines at a time.
type Types struct {
	byName     map[string]*messageType
	properties map[string]property
	mu         sync.Mutex
	compiled   map[string]*compiledType
}

// messageType is a message type as definitions have it.
type messageType struct {
	Format     string             `json:"format"`
	Schema     *schemafile.Schema `json:"schema"`
	Promotions map[string]string  `json:"promotions"`
	Written    map[string]string  `json:"written"`
}

// property is a property as its schema declares it.
type property struct {
	Type        string `json:"type"`
	IsSensitive bool   `json:"sensitive"`
}

// NewTypes takes message types and property schemas, each an object of names and settings, as definitions and the configuration of a host
// have them; nil: none.
func NewTypes(messageTypes, propertySchemas json.RawMessage) (*Types, error) {
	t := &Types{byName: map[string]*messageType{}, properties: map[string]property{}, compiled: map[string]*compiledType{}}
	if len(messageTypes) > 0 {
		if err := json.Unmarshal(messageTypes, &t.byName); err != nil {
			return nil, fmt.Errorf("read the message types: %w", err)
		}
	}
	var schemas map[string]struct {
		Properties map[string]property `json:"properties"`
	}
	if len(propertySchemas) > 0 {
		if err := json.Unmarshal(propertySchemas, &schemas); err != nil {
			return nil, fmt.Errorf("read the property schemas: %w", err)
		}
	}
	for namespace, schema := range schemas {
		for name, p := range schema.Properties {
			t.properties[namespace+"#"+name] = p
		}
	}
	return t, nil
}

// IsSensitive reports whether values of a property are for the eyes of those alone who may read bodies.
func (t *Types) IsSensitive(property string) bool { return t.properties[property].IsSensitive }

// A destination is a property that a value of a message becomes.
type destination struct {
	name       string
	isPromoted bool
	path       *typing.Path
}

// A compiledType is a message type that pipelines use.
type compiledType struct {
	name         string
	isJSON       bool
	schema       *schemafile.Schema
	xsd          *xsd.Schema   // nil: it has none
	root         *xsd.Element  // of xsd
	destinations []destination // of the values that the promoter finds, by its numbers
	xml          *typing.Promoter
	json         *pointers
	runs         sync.Pool // of xml
	problems     []Problem

	validatorOnce sync.Once
	validator     *validation.Validator
	validatorErr  error
}

// validation gives what holds messages against the XML schema of the type; nil where it has none.
func (c *compiledType) validation() (*validation.Validator, error) {
	if c == nil || c.xsd == nil {
		return nil, nil //nolint:nilnil // there is none, and nothing wrong
	}
	c.validatorOnce.Do(func() { c.validator, c.validatorErr = validation.New(c.xsd) })
	return c.validator, c.validatorErr
}

// of gives a message type, compiled; nil where there is none of the name.
func (t *Types) of(name string) *compiledType {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.compiled[name]; ok {
		return c
	}
	m, ok := t.byName[name]
	if !ok {
		return nil // and not kept: names come from messages
	}
	if m == nil {
		m = &messageType{}
	}
	c := t.compile(name, m)
	t.compiled[name] = c
	return c
}

// rootName is the root element of messages of a type.
func rootName(messageType string) xsd.Name {
	if i := strings.LastIndexByte(messageType, '#'); i >= 0 {
		return xsd.Name{Space: messageType[:i], Local: messageType[i+1:]}
	}
	return xsd.Name{Local: messageType}
}

func (t *Types) compile(name string, m *messageType) *compiledType {
	c := &compiledType{name: name, isJSON: m.Format == formatJSON, schema: m.Schema}
	if m.Schema != nil {
		c.readSchema(m)
	}
	if c.isJSON {
		c.jsonPromotions(m)
		return c
	}
	c.xmlPromotions(m)
	return c
}

// readSchema reads the XML schema; a JSON Schema is compiled to see whether it can be.
func (c *compiledType) readSchema(m *messageType) {
	var err error
	if m.Schema.IsJSON() {
		_, err = m.Schema.JSON(false)
	} else if c.xsd, err = m.Schema.XSD(); err == nil {
		if c.root, err = c.xsd.Element(rootName(c.name)); err != nil {
			err = c.otherRoot(err)
		}
	}
	if err != nil {
		c.problem(err, "schema")
	}
}

// otherRoot says which types the schema has, where it does not have this one.
func (c *compiledType) otherRoot(err error) error {
	if slices.Contains(c.xsd.Elements, rootName(c.name)) {
		return err
	}
	var names []string
	for _, e := range c.xsd.Elements {
		names = append(names, typing.TypeOf(e.Space, e.Local))
	}
	return &fault.Fault{
		Message: fmt.Sprintf("the schema %s has no root of message type %s", c.schema.File, c.name),
		Remedy:  "name the message type after a root of the schema: " + strings.Join(names, ", "),
	}
}

// problem keeps what is wrong with a setting of the message type.
func (c *compiledType) problem(err error, setting ...string) {
	c.problems = append(c.problems, ProblemOf(err, append([]string{"message type", c.name}, setting...)))
}

// A namedPath is a path that a definition gives for a property.
type namedPath struct{ setting, name, path string }

// paths gives the promotions and written values of a definition in the order of their names.
func (m *messageType) paths() []namedPath {
	var all []namedPath
	for _, name := range slices.Sorted(maps.Keys(m.Promotions)) {
		all = append(all, namedPath{"promotions", name, m.Promotions[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Written)) {
		all = append(all, namedPath{"written", name, m.Written[name]})
	}
	return all
}

// distinguished is the namespace of values that a schema distinguishes. Their names are those of the elements on their way.
const distinguished = "http://schemas.microsoft.com/BizTalk/2003/btsDistinguishedFields"

func (c *compiledType) xmlPromotions(m *messageType) {
	var properties []typing.Property
	isNamed := map[string]bool{}
	for _, p := range m.paths() {
		isNamed[p.name] = true
		path, err := typing.ParsePath(p.path)
		if err == nil && path.Steps[0] != rootName(c.name) {
			err = &fault.Fault{
				Message: fmt.Sprintf("path %s begins with root %s, and messages are of type %s", p.path, path.Steps[0].Local, c.name),
				Remedy:  "begin it with the root of the message type",
			}
		}
		if err != nil {
			c.problem(c.instead(p.path, err), p.setting, p.name)
			continue
		}
		properties = append(properties, typing.Property{Path: path})
		c.destinations = append(c.destinations, destination{p.name, p.setting == "promotions", path})
	}
	if c.root != nil {
		properties = c.annotated(properties, isNamed)
	}
	if len(properties) > 0 {
		c.xml = typing.NewPromoter(properties)
		c.runs.New = func() any { return c.xml.NewRun() }
	}
}

// annotated adds what the schema promotes and distinguishes, except for what the definition names itself.
func (c *compiledType) annotated(properties []typing.Property, isNamed map[string]bool) []typing.Property {
	for _, p := range c.root.Properties {
		path, err := typing.ParsePath(p.XPath)
		if err != nil {
			if f, is := fault.Of(err); is {
				f.File, f.Place = c.root.File, p.Place
			}
			c.problem(c.instead(p.XPath, err), "schema")
			continue
		}
		d := destination{p.Namespace + "#" + p.Name, !p.Distinguished, path}
		if p.Distinguished || p.Name == "" {
			d = destination{name: distinguished + "#" + dotted(path), path: path}
		}
		if isNamed[d.name] {
			continue
		}
		properties = append(properties, typing.Property{Path: path})
		c.destinations = append(c.destinations, d)
	}
	return properties
}

func dotted(path *typing.Path) string {
	names := make([]string, len(path.Steps))
	for i, step := range path.Steps {
		names[i] = step.Local
	}
	return strings.Join(names, ".")
}
