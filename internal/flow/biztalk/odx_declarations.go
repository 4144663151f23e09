package biztalk

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var notInIdentifier = regexp.MustCompile(`[^A-Za-z0-9_]`)

// celWords are names that expressions have for themselves.
var celWords = []string{
	"now", "new_id", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
	"package", "namespace", "return", "var", "void", "while", "all", "exists", "map", "filter", "has", "size", "string", "int", "double",
	"bool",
	"duration", "timestamp",
	"list", "type", "dyn", "bytes", "uint", "true", "false", "null",
}

func (o *orchestration) nameOf(written string) string {
	name := notInIdentifier.ReplaceAllString(written, "_")
	if slices.Contains(celWords, name) || name[0] >= '0' && name[0] <= '9' {
		name = "my_" + name
	}
	for _, other := range o.names {
		if other == name {
			return name + "_" + strconv.Itoa(len(o.names))
		}
	}
	return name
}

// valueTypes are types of .NET with ours.
var valueTypes = map[string]string{
	"System.String": "text", "System.Int32": "integer", "System.Int64": "integer", "System.Int16": "integer", "System.Boolean": "boolean",
	"System.Double": "number", "System.Decimal": "number", "System.Single": "number", "System.DateTime": "timestamp",
	"System.TimeSpan": "duration",
	"System.Guid":     "text", "System.Char": "text", "System.UInt32": "integer",
}

// declare reads the declaration of a port, a message, a correlation set or a variable.
func (o *orchestration) declare(s statement, types map[string][]string) {
	w := s.words
	if len(w) < 2 {
		return
	}
	last := w[len(w)-1].text
	switch {
	case indexOf(w, "port") == 0:
		o.declarePort(s, last)
	case w[0].text == "message" && len(w) >= 3:
		found, _ := o.t.messageTypes(w[1].text)
		typ := ""
		if len(found) == 1 {
			typ = found[0]
		} else if w[1].text != "System.Xml.XmlDocument" {
			o.t.omit(o.at(s.line()), kindOrchestration, o.name, "the type of message "+last+", "+w[1].text, "its schema is not among the files",
				"give the .xsd of the schema too, or write the message type under messages")
		}
		o.messages[last] = &typ
		o.names[last] = o.nameOf(last)
		o.section("messages")[o.names[last]] = typ
		if typ == "" {
			o.section("messages")[o.names[last]] = "any"
		}
	case w[0].text == "correlation" && len(w) >= 3:
		var properties []any
		for _, class := range types[w[1].text[strings.LastIndexByte(w[1].text, '.')+1:]] {
			properties = append(properties, o.t.property(use{o.at(s.line()), kindOrchestration, o.name}, class))
		}
		if len(properties) > 0 {
			o.correlations[last] = true
			o.section("correlations")[last] = properties
		}
	case w[0].text == "System.Xml.XmlDocument":
		empty := ""
		o.documents[last] = &empty
	case valueTypes[w[0].text] != "" && len(w) == 2:
		o.variables[last] = valueTypes[w[0].text]
		o.names[last] = o.nameOf(last)
		o.section("variables")[o.names[last]] = valueTypes[w[0].text]
	}
}

func (o *orchestration) declarePort(s statement, name string) {
	if indexOf(s.words, "implements") > 0 {
		o.ports[name] = "in"
		o.t.add(kindReceivePort, name, object{"application": o.t.settings.Application})
		o.t.omit(o.at(s.line()), kindOrchestration, o.name, "the binding of port "+name, "the binding file has it",
			"name its receive port in the receive, and drop receive port "+name)
		return
	}
	o.ports[name] = "out"
	o.section("ports")[name] = object{}
	o.t.omit(o.at(s.line()), kindOrchestration, o.name, "the binding of port "+name, "the binding file has it",
		"write {send_port: NAME} under ports; without it a message is routed by content")
}

// parameters reads those of an orchestration that others call.
func (o *orchestration) parameters(body statement) {
	var one []lexeme
	flush := func() {
		if len(one) >= 2 && valueTypes[one[len(one)-2].text] != "" {
			name := one[len(one)-1].text
			o.variables[name], o.names[name] = valueTypes[one[len(one)-2].text], o.nameOf(name)
			if o.settings["parameters"] == nil {
				o.settings["parameters"] = object{}
			}
			o.section("parameters")[o.names[name]] = o.variables[name]
		} else if len(one) > 0 {
			o.isLeft = true
			o.t.omitStopping(o.at(body.line()), kindOrchestration, o.name, "parameter "+written(one), "only values can be parameters",
				"send a message instead, or give the values that are needed")
		}
		one = nil
	}
	for _, w := range body.words[1:] {
		switch w.kind {
		case '(', ')':
		case ',':
			flush()
		default:
			one = append(one, w)
		}
	}
	flush()
}
