package definitions

import (
	"encoding/json"
	"fmt"
)

// A Setting is a row of parley_flow.setting_definitions.
type Setting struct {
	Kind        string
	Name        string
	Type        string
	IsRequired  bool
	Default     json.RawMessage // nil for none
	Lowest      *string
	Highest     *string
	Choices     []string
	Description string
}

type object = map[string]any

// anyVariable stands for a value that a variable gives.
var anyVariable = object{"type": "string", "pattern": `^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`}

// JSONSchema makes the schema (2020-12) by which editors complete and check files of definitions. It knows shapes, not what refers to what.
func JSONSchema(settings []Setting) ([]byte, error) {
	kindsOf := object{
		variablesSection: object{
			"description": "Variables that texts name by ${NAME}, with the values that they have where an environment gives none.",
			"type":        "object", "propertyNames": object{"pattern": variableName.String()},
			"additionalProperties": object{"type": []string{"string", "number", "boolean", "null"}},
		},
	}
	byKind := map[string][]Setting{}
	for _, s := range settings {
		byKind[s.Kind] = append(byKind[s.Kind], s)
	}
	for kind, of := range byKind {
		kindsOf[kind] = schemaOfKind(of)
	}
	written, err := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Definitions of Parley's integration engine",
		"type": []string{"object", "null"}, "properties": kindsOf, "additionalProperties": false, "$defs": sharedSchemas,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the JSON Schema: %w", err)
	}
	return append(written, '\n'), nil
}

func schemaOfKind(settings []Setting) object {
	properties, required := object{}, []string{}
	for _, s := range settings {
		properties[s.Name] = s.schema()
		if s.IsRequired {
			required = append(required, s.Name)
		}
	}
	return object{
		"type": []string{"object", "null"},
		"additionalProperties": object{
			"type": []string{"object", "null"}, "properties": properties, "required": required, "additionalProperties": false,
		},
	}
}

func (s Setting) schema() object {
	var shape object
	switch s.Type {
	case "integer", "number":
		shape = object{"type": s.Type}
		if s.Lowest != nil {
			shape["minimum"] = json.Number(*s.Lowest)
		}
		if s.Highest != nil {
			shape["maximum"] = json.Number(*s.Highest)
		}
	case "boolean":
		shape = object{"type": "boolean"}
	case "choice":
		shape = object{"enum": s.Choices}
	case "references":
		shape = object{"type": "array", "items": object{"type": "string"}}
	case "object", "declarations":
		shape = object{"type": "object"}
	case "filter", "secrets", "properties", "promotions", "stages", "shapes", "activations":
		shape = object{"$ref": "#/$defs/" + s.Type}
	default: // texts, names and intervals
		shape = object{"type": "string", "minLength": 1}
	}
	whole := object{"description": s.Description}
	alternatives := []object{shape, anyVariable}
	if !s.IsRequired {
		alternatives = append(alternatives, object{"type": "null"})
	}
	whole["anyOf"] = alternatives
	if s.Default != nil {
		whole["default"] = s.Default
	}
	return whole
}

var sharedSchemas = object{
	"scalar": object{"type": []string{"string", "number", "boolean"}},
	"filter": object{
		"description": "AND groups, of which one that is satisfied is enough.",
		"type":        "array",
		"items":       object{"type": "array", "minItems": 1, "items": object{"$ref": "#/$defs/predicate"}},
	},
	"predicate": object{
		"type": "object", "required": []string{"property", "operator"}, "additionalProperties": false,
		"properties": object{
			"property": object{"type": "string", "minLength": 1, "description": "namespace#Name, or a property of the engine"},
			"operator": object{"enum": []string{"exists", "=", "<>", "<", "<=", ">", ">=", "&", "in", "prefix"}},
			"value": object{"anyOf": []object{
				{"$ref": "#/$defs/scalar"}, {"type": "array", "minItems": 1, "items": object{"$ref": "#/$defs/scalar"}}, {"type": "null"},
			}},
		},
	},
	"activations": object{
		"description": "The receives that begin instances; parley flow apply takes them from body.", "type": "array",
		"items": object{"type": "object", "required": []string{"receive", "filter"}, "properties": object{
			"receive": object{"type": "string"}, "filter": object{"$ref": "#/$defs/filter"},
			"convoy": object{"type": []string{"array", "null"}, "items": object{"type": "string"}},
		}},
	},
	"shape": shapeSchema(),
	"shapes": object{
		"description": "What an orchestration does, one shape after the other: each is an object of its kind, and may have a name.",
		"type":        "array", "items": object{"$ref": "#/$defs/shape"},
	},
	"secrets": object{
		"description": "Where the host finds secrets; never the secrets themselves.", "type": "object",
		"additionalProperties": object{"type": "string", "pattern": `^(file|env|command):.|^\$\{[A-Za-z_][A-Za-z0-9_]*\}`},
	},
	"properties": object{
		"type": "object", "minProperties": 1,
		"additionalProperties": object{
			"type": "object", "additionalProperties": false,
			"properties": object{
				"type":    object{"enum": []string{"text", "integer", "number", "boolean", "timestamp"}},
				"tracked": object{"type": "boolean"}, "sensitive": object{"type": "boolean"}, "description": object{"type": "string"},
			},
		},
	},
	"promotions": object{"type": "object", "additionalProperties": object{"type": "string", "minLength": 1}},
	"stages": object{
		"type": "object", "additionalProperties": object{"type": "array", "items": object{
			"type": "object", "required": []string{"component"}, "additionalProperties": false,
			"properties": object{"component": object{"type": "string", "minLength": 1}, "settings": object{"type": "object"}},
		}},
	},
}
