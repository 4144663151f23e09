package pipeline

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/jsonbody"
)

// jsonValidator holds messages against the JSON Schemas of their types.
type jsonValidator struct {
	isRecovered, assertsFormat, requiresSchema bool
	most                                       int64
	schemas                                    *schemaCache
}

// validator holds messages against something.
type validator interface {
	// reading gives what reads a message of a type while it is written; an error of it says what is wrong. typed is nil where the type is not
	// defined.
	reading(kind string, typed *compiledType) func(io.Reader) error
	// recovers says whether other messages go on where one is not valid.
	recovers() bool
}

func validators() []Component {
	return []Component{{
		Name: "xml-validator", Direction: directionBoth, Stages: []string{stageValidate, stagePreAssemble}, make: makeXMLValidator,
		Meaning: "Holds each message against the XML schema of its message type: elements, attributes and the types of values.",
		Settings: []Setting{
			setting("documents", MessageTypes, "[]", "Message types that are valid here; none: all."),
			setting("require_schema", Boolean, "true", "Whether a message whose type has no XML schema is refused."),
			setting("allow_unchecked", Boolean, "false",
				"Whether schemas may ask for what is not checked: keys, substitution, items of lists, the content of wildcards."),
			setting("recoverable", Boolean, "false", "To receive: whether valid messages go on where others are not, which are suspended."),
		},
	}, {
		Name: "json-validator", Direction: directionBoth, Stages: []string{stageValidate, stagePreAssemble}, make: makeJSONValidator,
		Meaning: "Holds each message against the JSON Schema of its message type.",
		Settings: []Setting{
			setting("assert_format", Boolean, "false", "Whether format is a rule of the schema, and not only a note."),
			setting("require_schema", Boolean, "true", "Whether a message whose type has no JSON Schema is refused."),
			setting("max_bytes", Integer, "16777216", "Most bytes of a message."),
			setting("recoverable", Boolean, "false", "To receive: whether valid messages go on where others are not, which are suspended."),
		},
	}}
}

func makeJSONValidator(c *compiling, settings json.RawMessage) any {
	s := decode[struct {
		AssertFormat  bool  `json:"assert_format"`
		RequireSchema bool  `json:"require_schema"`
		MaxBytes      int64 `json:"max_bytes"`
		Recoverable   bool  `json:"recoverable"`
	}](c, settings)
	return &jsonValidator{
		isRecovered: s.Recoverable, assertsFormat: s.AssertFormat, requiresSchema: s.RequireSchema, most: s.MaxBytes,
		schemas: &schemaCache{byType: map[*compiledType]*jsonbody.Schema{}},
	}
}

func (v *jsonValidator) recovers() bool { return v.isRecovered }

// reading implements [validator].
func (v *jsonValidator) reading(kind string, typed *compiledType) func(io.Reader) error {
	return func(body io.Reader) error {
		schema, err := v.schemas.of(typed, v.assertsFormat)
		switch {
		case err != nil:
			return err
		case schema == nil && v.requiresSchema:
			return withoutSchema(kind, "JSON Schema")
		case schema == nil:
			return nil
		}
		all, err := io.ReadAll(io.LimitReader(body, v.most+1))
		if err != nil {
			return err
		}
		if int64(len(all)) > v.most {
			return &fault.Fault{Message: "the message is too long to be validated", Err: jsonbody.ErrTooLong, Remedy: "raise max_bytes"}
		}
		if f := schema.Check(all); f != nil {
			return f
		}
		return nil
	}
}

// result implements [transformer].
func (v *jsonValidator) result(in Result, _ Source) Result { return in }

// transform implements [transformer].
func (v *jsonValidator) transform(_ context.Context, body io.Reader, w io.Writer, m outgoing) error {
	seen := io.TeeReader(body, w)
	if err := v.reading(m.source.Type, m.types.of(m.source.Type))(seen); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, seen) // where nothing was read
	return err
}

func withoutSchema(kind, what string) error {
	if kind == "" {
		kind = "none"
	}
	return &fault.Fault{
		Message: "there is no " + what + " for message type " + kind,
		Remedy:  "define the message type with its schema, or set require_schema: false",
	}
}

// schemaCache keeps the JSON Schemas of message types, compiled.
type schemaCache struct {
	mu     sync.Mutex
	byType map[*compiledType]*jsonbody.Schema
}

func (c *schemaCache) of(t *compiledType, assertFormat bool) (*jsonbody.Schema, error) {
	if t == nil || t.schema == nil || !t.schema.IsJSON() {
		return nil, nil //nolint:nilnil // there is none, and nothing wrong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if schema, ok := c.byType[t]; ok {
		return schema, nil
	}
	schema, err := t.schema.JSON(assertFormat)
	if err == nil {
		c.byType[t] = schema
	}
	return schema, err
}
