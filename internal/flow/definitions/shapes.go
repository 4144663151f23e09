package definitions

// shapeSchema is that of a shape: an object with one kind, and a name.
func shapeSchema() object {
	list := object{"$ref": "#/$defs/shapes"}
	text := object{"type": "string", "minLength": 1}
	names := object{"type": "array", "items": text}
	expression := object{"type": []string{"string", "number", "boolean"}, "description": "an expression of CEL"}
	expressions := object{"type": "object", "additionalProperties": object{"type": []string{"string", "number", "boolean", "null"}}}
	value := object{"description": "a value whose texts are expressions"}
	filter := object{"$ref": "#/$defs/filter"}
	of := func(required []string, properties object) object {
		shape := object{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			shape["required"] = required
		}
		return shape
	}
	or := func(short, whole object) object { return object{"anyOf": []object{short, whole}} }
	receive := or(text, of([]string{"message"}, object{
		"message": text, "activate": object{"type": "boolean"}, "from": text, "filter": filter, "initialise": names, "follow": names,
	}))
	delay := or(text, of(nil, object{"for": text, "until": expression}))
	reason := or(text, of(nil, object{"message": text}))
	target := func(more object) object {
		more["orchestration"], more["parameters"] = text, expressions
		return or(text, of([]string{"orchestration"}, more))
	}
	kinds := object{
		"name":    object{"type": "string", "description": "shown by the picture and by tracking"},
		"receive": receive,
		"send": or(text, of([]string{"message"}, object{
			"message": text, "port": text, "answers": text, "initialise": names, "follow": names, "properties": expressions,
		})),
		"construct": of([]string{"message"}, object{
			"message": text, "from": text, "template": text, "value": value, "set": expressions, "properties": expressions,
		}),
		"transform": of([]string{"map", "from", "to"}, object{"map": text, "from": or(text, names), "to": text, "properties": expressions}),
		"set":       expressions,
		"decide": object{"type": "array", "minItems": 1, "items": of(nil, object{
			"when": expression, "do": list, "otherwise": list, "name": text,
		})},
		"while": of([]string{"when"}, object{"when": expression, "do": list}),
		"for_each": of([]string{"item", "in"}, object{
			"item": text, "in": text, "parallel": object{"type": "integer", "minimum": 1, "maximum": 1000}, "do": list,
			"messages": object{"type": "object"}, "variables": object{"type": "object"}, "correlations": object{"type": "object"},
		}),
		"parallel": object{"type": "object", "minProperties": 2, "additionalProperties": list},
		"listen": object{"type": "array", "minItems": 2, "items": of(nil, object{
			"receive": receive, "delay": delay, "do": list, "name": text,
		})},
		"delay": delay,
		"scope": of([]string{"do"}, object{
			"do": list, "transaction": object{"enum": []string{"atomic", "long_running"}}, "compensate": list, "timeout": text,
			"isolation": object{"enum": []string{"read committed"}},
			"messages":  object{"type": "object"}, "variables": object{"type": "object"}, "correlations": object{"type": "object"},
			"catch": object{"type": "array", "items": of(nil, object{"code": text, "as": text, "do": list})},
		}),
		"compensate": text,
		"throw":      or(text, of([]string{"code"}, object{"code": text, "message": text})),
		"terminate":  reason, "suspend": reason,
		"call":  target(object{"results": object{"type": "object", "additionalProperties": text}}),
		"start": target(object{}),
		"aggregate": of([]string{"receive", "into", "until"}, object{
			"receive": receive, "into": text,
			"until": of(nil, object{"count": object{"type": "integer", "minimum": 1}, "after": text, "when": expression}),
		}),
		"activity": of([]string{"name", "queue"}, object{
			"name": text, "queue": text, "input": value, "result": text, "timeout": text, "attempts": object{"type": "integer", "minimum": 1},
		}),
		"query": or(text, of([]string{"sql"}, object{"sql": text, "arguments": object{"type": "array", "items": expression}, "rows": text})),
	}
	return object{"type": "object", "properties": kinds, "additionalProperties": false, "minProperties": 1, "maxProperties": 2}
}
